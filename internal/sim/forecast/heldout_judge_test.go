package forecast

import (
	"fmt"
	"math"
	"slices"
)

// nearly is the difference of two times that count as the same: 25 %. A difference below leastNoise is never
// above the noise.
var (
	nearly     = math.Log(1.25)
	leastNoise = math.Log(1.1)
)

// off is the logarithm of high over low; below a microsecond all times are the same.
func off(low, high float64) float64 { return math.Log(max(1e-3, high) / max(1e-3, low)) }

// came is the median over a row's runs; of two runs it is their mean.
func (row *heldOutRow) came(pick func(*heldOutFigures) float64) float64 {
	var all []float64
	for i := range row.Came {
		all = append(all, pick(&row.Came[i]))
	}
	slices.Sort(all)
	n := len(all)
	return (all[(n-1)/2] + all[n/2]) / 2
}

func p99(f *heldOutFigures) float64       { return f.P99 }
func throttled(f *heldOutFigures) float64 { return f.Throttled }
func stopped(f *heldOutFigures) float64   { return f.Stopped }

// noise is how far apart the runs' p99 are, and how far off each may be because few of its requests are above
// it. One run alone shows no noise.
func (row *heldOutRow) noise() float64 {
	if len(row.Came) < 2 {
		return math.Inf(1)
	}
	low, high, noise := row.Came[0].P99, row.Came[0].P99, leastNoise
	for _, f := range row.Came {
		low, high = min(low, f.P99), max(high, f.P99)
		if s := f.Sampled; s != nil {
			noise = max(noise, off(f.P99, s.High), off(s.Low, f.P99))
		}
	}
	return max(noise, off(low, high))
}

// count is n cases out of so many.
type count struct{ n, of int }

func (c *count) add(is bool) {
	if c.of++; is {
		c.n++
	}
}

func (c count) String() string {
	if c.of == 0 {
		return "-"
	}
	return fmt.Sprintf("%d of %d (%.0f %%)", c.n, c.of, 100*float64(c.n)/float64(c.of))
}

// heldOutVerdict is how good forecasts were.
type heldOutVerdict struct {
	sign, named, within, covered count
	agree                        count // agreement of the kernel with itself: p99 of one run within 25 % of another's
}

// judgeHeldOut compares forecasts with real runs. It calibrates the errors of each workload with the others.
func judgeHeldOut(drawn []heldOut) (v heldOutVerdict) {
	for i := range drawn {
		h := &drawn[i]
		calibration := calibrate(slices.Concat(drawn[:i:i], drawn[i+1:]))
		none := &h.Rows[0]
		predicted, best := none, none
		for k := range h.Rows {
			row := &h.Rows[k]
			v.within.add(math.Abs(off(row.Predicted.P99, row.came(p99))) <= nearly)
			expected := row.Own.P99.scaled(calibration[row.Remedy].ifTested().P99, row.Predicted.P99)
			for n, run := range row.Came {
				v.covered.add(run.P99 >= expected.Low && run.P99 <= expected.High)
				for _, other := range row.Came[:n] {
					v.agree.add(math.Abs(off(other.P99, run.P99)) <= nearly)
				}
			}
			if row.Predicted.P99 < predicted.Predicted.P99 {
				predicted = row
			}
			if row.came(p99) < best.came(p99) {
				best = row
			}
			if effect := off(none.came(p99), row.came(p99)); math.Abs(effect) > max(none.noise(), row.noise()) {
				v.sign.add(effect*(row.Predicted.P99-none.Predicted.P99) > 0)
			}
		}
		// Of several remedies that are equal within the noise, each counts as the best.
		noise := leastNoise
		for _, row := range []*heldOutRow{best, predicted} {
			if n := row.noise(); !math.IsInf(n, 0) {
				noise = max(noise, n)
			}
		}
		v.named.add(off(best.came(p99), predicted.came(p99)) <= noise)
	}
	return v
}

// calibrate computes how much wider a forecast's own error must be so that Coverage of all runs lie within it
// (split conformal prediction; Vovk, Gammerman and Shafer, "Algorithmic learning in a random world", 2005).
func calibrate(drawn []heldOut) Calibration {
	rows := map[string][]*heldOutRow{}
	for i := range drawn {
		for k := range drawn[i].Rows {
			row := &drawn[i].Rows[k]
			rows[row.Remedy] = append(rows[row.Remedy], row)
		}
	}
	calibration := Calibration{}
	for name, outRows := range rows {
		beyond := func(score func(row *heldOutRow, run *heldOutFigures) float64) float64 {
			var scores []float64
			for _, row := range outRows {
				for i := range row.Came {
					scores = append(scores, score(row, &row.Came[i]))
				}
			}
			slices.Sort(scores)
			at := int(math.Ceil(float64(len(scores)+1)*Coverage)) - 1
			return math.Round(scores[min(at, len(scores)-1)]*1e4) / 1e4
		}
		ratio := func(own func(*Error) *Range, pick func(*heldOutFigures) float64) float64 {
			return beyond(func(row *heldOutRow, run *heldOutFigures) float64 {
				r := own(&row.Own)
				return max(off(r.High, pick(run)), off(pick(run), r.Low))
			})
		}
		apart := func(own func(*Error) *Range, pick func(*heldOutFigures) float64) float64 {
			return beyond(func(row *heldOutRow, run *heldOutFigures) float64 {
				r := own(&row.Own)
				return max(pick(run)-r.High, r.Low-pick(run))
			})
		}
		calibration[name] = Residual{
			N:                len(outRows),
			P50:              ratio(func(e *Error) *Range { return e.P50 }, func(f *heldOutFigures) float64 { return f.P50 }),
			P99:              ratio(func(e *Error) *Range { return e.P99 }, p99),
			Max:              ratio(func(e *Error) *Range { return e.Max }, func(f *heldOutFigures) float64 { return f.Max }),
			ThrottledPeriods: apart(func(e *Error) *Range { return e.ThrottledPeriods }, throttled),
			Stopped:          apart(func(e *Error) *Range { return e.Stopped }, stopped),
		}
	}
	return calibration
}

// heldOutMarkdown returns the page. noisy counts the runs in which other programs used too much of the CPUs
// at every try.
func heldOutMarkdown(drawn []heldOut, release string, noisy count) string {
	v := judgeHeldOut(drawn)
	least, most := heldOutRepeats, 1
	for i := range drawn {
		for k := range drawn[i].Rows {
			n := len(drawn[i].Rows[k].Came)
			least, most = min(least, n), max(most, n)
		}
	}
	times := fmt.Sprintf("%d times", most)
	if least < most {
		times = fmt.Sprintf("%d to %d times", least, most)
	}
	return fmt.Sprintf(`# Forecasts against what came

%d random workloads of %v on 2 CPUs, Linux %s: each recorded %s as it was and under each remedy, those
runs far apart in time, and forecast from the first recording alone. They are held out: the forecast was made with others of the same kind
(0 to %d). Generated by `+"`make accuracy-forecast`"+`.

| | bound | came out |
|---|---|---|
| the right sign, where the effect on p99 is above the noise | all | %v |
| the best remedy named | 80 %% | %v |
| p99 within 25 %% | 80 %% | %v |
| p99 of a run within the 90 %% error | 85 to 95 %% | %v |
| the kernel agrees with itself: p99 of two runs within 25 %% | | %v |

- What came is the median of the runs. An effect is above the noise if the medians are further apart than 10 %%, than the runs under either
  remedy are among themselves, and than p99 may be off in either because few requests are above it: all runs of a workload have the same
  requests, and do not show that. Remedies that are as good within the noise are all the best.
- The 90 %% error of each forecast is calibrated with what came of the others.
- The hypervisor may have %.0f %% of the CPUs during a run, and other processes %.0f %%; else it is repeated, up to %d times. In %v it
  stayed above.
`, len(drawn), heldOutRunTime, release, times, heldOutFirst-1, v.sign, v.named, v.within, v.covered, v.agree, 100*mostSteal, 100*mostOthers, mostTries, noisy)
}
