package capacity

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
	"github.com/unthrottle/unthrottle/internal/load/workload"
	"github.com/unthrottle/unthrottle/internal/stats"
)

// beyond is how many samples must lie beyond a quantile that is printed.
const beyond = 10

// result makes the figures of all measured steps.
func (r *run) result(cpus, limit int) Result {
	res := describe(r.o)
	res.CPUs, res.Limit, res.Shape, res.About = cpus, limit, r.shape.Name, r.shape.About
	res.BackgroundToo = hasBackground(r.shape.Streams)
	res.RealTime = true
	for i, a := range r.variants {
		m := remedyOf(a.name, r.found[i], r.steps[i], r.o.Objective)
		m.CPUsGranted = ptr(a.granted)
		if ratio, ok := stats.Ratios(r.found[i], r.found[0], stats.Grid(median(r.within[i]), median(r.within[0]))); ok && i > 0 {
			m.Ratio, m.RatioLow, m.RatioHigh = ptr(round3(ratio.Mean)), ptr(round3(ratio.Low)), ptr(round3(ratio.High))
		}
		every := slices.Clone(r.steps[i])
		for l, steps := range r.points[i] {
			every = append(every, steps...)
			if len(steps) > 0 {
				m.Points = append(m.Points, pointOf(levels[l], steps, r.o.Objective))
			}
		}
		m.Why = append(m.Why, noise(every, r.found[i])...)
		m.Noisy = len(m.Why) > 0
		res.RealTime = res.RealTime && !slices.ContainsFunc(every, func(s step) bool { return !s.own.RealTime })
		res.Remedies = append(res.Remedies, m)
	}
	if r.o.Repeats < minCompared {
		res.Notes = append(res.Notes, fmt.Sprintf("%d repeats only: the intervals are wide", r.o.Repeats))
	}
	if !res.RealTime {
		res.Notes = append(res.Notes, "the generator did not get real-time priority: some of the latencies may be its own waits")
	}
	res.Seconds = round3((workload.Now() - r.started).Seconds())
	return res
}

// remedyOf is a row without points and ratio.
func remedyOf(name string, found []float64, steps []step, o Objective) Remedy {
	m := Remedy{Remedy: name, Loads: []float64{}, Points: []Point{}, Curve: []Sample{}, Why: []string{}}
	for _, load := range found {
		m.Loads = append(m.Loads, round3(load))
	}
	if load := median(found); load > 0 {
		m.MaxLoad = ptr(round3(load))
	}
	for _, s := range steps {
		sample := Sample{Load: round3(s.load), Met: o.judge(s.service) == ""}
		if at, ok := s.service.Latency.Quantile(o.Quantile, 0); ok {
			sample.At = ptr(millis(at))
		}
		m.Curve = append(m.Curve, sample)
	}
	slices.SortStableFunc(m.Curve, func(a, b Sample) int { return int(math.Copysign(1, a.Load-b.Load)) })
	return m
}

// The bounds from which on a row is noisy.
const (
	maxOwnCPU    = 0.05 // of the generator, in CPUs
	maxOthersCPU = 0.10 // of everybody else on the host, in CPUs
	maxSpread    = 0.15 // standard deviation of the repeats' loads, of their mean
)

// noise says why a row is noisy.
func noise(steps []step, found []float64) (why []string) {
	var own, others []float64
	for _, s := range steps {
		if s.own.Seconds > 0 {
			own = append(own, s.own.CPUSeconds/s.own.Seconds)
		}
		if s.others != nil {
			others = append(others, *s.others)
		}
	}
	if m := median(own); m > maxOwnCPU {
		why = append(why, fmt.Sprintf("the generator used %.2f CPUs", m))
	}
	if m := median(others); m > maxOthersCPU {
		why = append(why, fmt.Sprintf("others on the host used %.2f CPUs", m))
	}
	if slices.Contains(found, 0) {
		return append(why, "not every repeat found a load that met the objective")
	}
	if len(found) > 1 {
		if mean, deviation := stats.MeanDeviation(found); mean > 0 && deviation > maxSpread*mean {
			why = append(why, fmt.Sprintf("the repeats scatter by %.0f %%", 100*deviation/mean))
		}
	}
	return why
}

// pointOf puts the repeats at one load together.
func pointOf(level float64, steps []step, o Objective) Point {
	p := Point{OfBest: level, Load: round3(steps[0].load), Met: true}
	var latency loadgen.Latency
	used, switched, seconds := 0.0, 0.0, 0.0
	periods, throttledPeriods, throttled, low := uint64(0), uint64(0), time.Duration(0), 0.0
	known := true
	for _, s := range steps {
		latency.Merge(s.service.Latency)
		p.Requests += s.service.Intended
		p.Failed += s.service.Errors()
		p.Met = p.Met && o.judge(s.service) == ""
		seconds += s.seconds
		if s.used == nil || s.switches == nil || s.limited && s.throttled == nil {
			known = false
			continue
		}
		used += *s.used * s.seconds
		switched += float64(*s.switches)
		if s.limited {
			periods += *s.periods
			throttledPeriods += *s.throttledPeriods
			throttled += *s.throttled
			low += s.throttled.Seconds() / float64(s.cpus)
		}
	}
	for q, into := range map[float64]**float64{0.5: &p.P50, 0.9: &p.P90, 0.99: &p.P99, 0.999: &p.P999} {
		if at, ok := latency.Quantile(q, beyond); ok {
			*into = ptr(millis(at))
		}
	}
	if most, ok := latency.Max(); ok {
		p.Max = ptr(millis(most))
	}
	p.Histogram = histogram(latency.Bins())
	if known && seconds > 0 {
		p.CPUUsed, p.Switches = ptr(round3(used/seconds)), ptr(round3(switched/seconds))
		p.StoppedLow, p.StoppedHigh = ptr(round3(low/seconds)), ptr(round3(min(1, throttled.Seconds()/seconds)))
		if steps[0].limited {
			p.Periods, p.ThrottledPeriods = ptr(periods), ptr(throttledPeriods)
		}
	}
	return p
}

func ptr[T any](v T) *T { return &v }

// round3 keeps three decimals: further ones would be noise.
func round3(v float64) float64 { return math.Round(v*1000) / 1000 }
