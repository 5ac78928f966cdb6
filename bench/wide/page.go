package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/bench/accuracy"
	"github.com/unthrottle/unthrottle/bench/predict"
	"github.com/unthrottle/unthrottle/bench/study"
	"github.com/unthrottle/unthrottle/internal/experiment/capacity"
	"github.com/unthrottle/unthrottle/internal/stats"
)

// page is docs/results/wide.md under way.
type page struct {
	study.Page
	have *records
	at   host // of the section under way
}

// notYet is a cell that has no measurement.
const notYet = "not measured yet"

// names of remedies on the page.
var names = map[string]string{
	capacity.Quota: "quota", capacity.Burst: "burst of one quota", capacity.NarrowSchedExt: "narrow by sched_ext", longCredit: "narrow by sched_ext, long credit", noCredit: "narrow by sched_ext, no credit", capacity.Pin: "pin or narrow by cpuset",
	capacity.Period: "period of 10 ms", capacity.Cpuset: "quota on as many CPUs", capacity.Pools: "pools sized by the limit",
	capacity.BurstPeriod: "period of 10 ms with a burst of one quota", capacity.Twice: "twice the quota", capacity.Budget: "the library in the program", capacity.Weight: "shares only, no quota",
	capacity.PinPools: "pin with pools sized by it", capacity.RateLimit: "requests beyond what the limit carries are refused",
}

// repeats is how many repeats a page looks for.
const repeats = 5

// markdown is the page of all records.
func markdown(have *records) string {
	p := page{have: have}
	p.Line("# Wide: a container that may be four times as wide as its limit, on 8, 16 and 32 CPUs")
	p.Line("\nWritten by `make results-wide` and `make accuracy-wide` from bench/wide/records.jsonl.gz. Milliseconds are those of guests of the [lab](../lab.md) with Linux %s,", p.release())
	p.Line("which run K times slower than their host.")
	p.answers()
	p.predictability()
	p.Rest()
	for _, h := range []host{wide, small, widest} {
		p.at = h
		p.Line("\n## %d CPUs, a limit of %d, K = %d", h.CPUs, h.Limit, h.K)
		p.short()
		if h == small {
			p.fixes()
		}
		for _, shape := range shapes {
			p.shape(shape)
		}
	}
	p.Line("\nWhere 8 CPUs do not stand for more: their run queues are balanced in one domain, and a pin takes a quarter of few CPUs.")
	p.narrow()
	p.settings()
	p.seed003()
	p.factors()
	p.accuracy()
	p.how()
	return p.String()
}

// release is the guests' kernel in full.
func (p *page) release() string {
	var all []string
	for _, r := range p.have.All {
		if r.Release != "" && !slices.Contains(all, r.Release) {
			all = append(all, r.Release)
		}
	}
	if len(all) == 0 {
		return kernel
	}
	return strings.Join(all, ", ")
}

// gain is the highest load of a remedy over the quota's: from what to what, of each repeat. Both are equal where both loads are
// known, else 0 or infinity where nothing bounds it. The zero value: it is not known.
type gain struct {
	low, high []float64
	open      bool // no repeat's search has ended
}

// gain compares all repeats whose searches have ended. What is out of the grid is a bound, and so is what the plan has some loads of.
func (p *page) gain(shape, remedy string) gain {
	ended, open := gain{}, gain{open: true}
	for repeat := 1; repeat <= repeats; repeat++ {
		of, ok := p.have.kneeOf(p.at, shape, remedy, repeat)
		quota, okQuota := p.have.kneeOf(p.at, shape, capacity.Quota, repeat)
		if !ok || !okQuota {
			continue
		}
		g := &ended
		if (of.Open || quota.Open) && searched(p.at, shape, remedy) {
			g = &open
		}
		low, high := of.bounds()
		quotaLow, quotaHigh := quota.bounds()
		g.low, g.high = append(g.low, low/quotaHigh), append(g.high, high/quotaLow) // over infinity it is 0, over 0 infinity
	}
	if len(ended.low) > 0 {
		return ended
	}
	return open
}

// median is from what to what the repeats' median lies.
func (g gain) median() (low, high float64) { return stats.Median(g.low), stats.Median(g.high) }

// factor is the median, or its bound; false: neither is known.
func (g gain) factor() (float64, bool) {
	if g.open || len(g.low) == 0 {
		return 0, false
	}
	low, high := g.median()
	switch {
	case low > 0:
		return low, true
	case !math.IsInf(high, 1):
		return high, true
	}
	return 0, false
}

func (g gain) String() string {
	if len(g.low) == 0 {
		return notYet
	}
	low, high := g.median()
	switch {
	case g.open && low == 0:
		return notYet
	case g.open:
		return fmt.Sprintf("at least %.2f so far", low)
	case low < high:
		return boundsText(low, high)
	case len(g.low) == 1:
		return fmt.Sprintf("**%.2f**", low)
	}
	return fmt.Sprintf("**%.2f** (%s)", low, boundsText(slices.Min(g.low), slices.Max(g.high)))
}

func boundsText(low, high float64) string {
	switch {
	case low == 0 && math.IsInf(high, 1):
		return "not told by these loads"
	case math.IsInf(high, 1):
		return fmt.Sprintf("at least %.2f", low)
	case low == 0:
		return fmt.Sprintf("at most %.2f", high)
	}
	return fmt.Sprintf("%.2f to %.2f", low, high)
}

// short is the page's first table.
func (p *page) short() {
	heads := []string{"shape", "highest load with the quota"}
	compared := slices.DeleteFunc(rows(), func(name string) bool {
		return name == capacity.Quota || !slices.ContainsFunc(p.shapes(), func(shape string) bool { return planned(point, p.at, shape, name) })
	})
	for _, name := range compared {
		heads = append(heads, names[name])
	}
	p.Line("\nThe highest load that keeps p99 of the short requests within %d ms, over that of the plain quota in the same repeat (range of the repeats):", boundMs)
	t := p.Table(heads...)
	for _, shape := range p.shapes() {
		row := []any{"`" + shape + "`", p.knees(shape, capacity.Quota)}
		for _, name := range compared {
			if !planned(point, p.at, shape, name) {
				row = append(row, "-")
				continue
			}
			row = append(row, p.gain(shape, name))
		}
		t.Row(row...)
	}
	p.Line("\nLoads are shares of what %d CPUs can carry. Pin and narrow by a cpuset have the same settings here: the limit is whole, and nothing else runs. \"Quota on", p.at.Limit)
	p.Line("as many CPUs\" keeps the quota too, as in Uber's experiment. Narrow has a credit of %v, with the long one %v.", creditOf(capacity.NarrowSchedExt, p.at.Limit), creditOf(longCredit, p.at.Limit))
}

// shapes are those with a point on the host of the section; without any, all that the plan has there.
func (p *page) shapes() (all []string) {
	for _, shape := range shapes {
		if p.measured(shape) {
			all = append(all, shape)
		}
	}
	if len(all) == 0 {
		return shapes
	}
	return all
}

func (p *page) measured(shape string) bool {
	return slices.ContainsFunc(p.have.All, func(r record) bool {
		return r.Piece.Kind == point && r.Piece.Shape == shape && r.Piece.Machine == p.at.machine()
	})
}

// knees are the highest loads of all repeats, as text.
func (p *page) knees(shape, remedy string) string {
	var all []string
	for repeat := 1; repeat <= repeats; repeat++ {
		k, ok := p.have.kneeOf(p.at, shape, remedy, repeat)
		if !ok {
			continue
		}
		text := k.String()
		if k.Open && searched(p.at, shape, remedy) {
			text += ", open"
		}
		all = append(all, text)
	}
	if len(all) == 0 {
		return notYet
	}
	return strings.Join(all, ", ")
}

func (k knee) String() string {
	switch {
	case k.Open && math.IsInf(k.Upto, 1):
		return fmt.Sprintf("above %.0f %%", 100*k.Share)
	case k.Open && k.Share == k.Upto:
		return fmt.Sprintf("below %.0f %%", 100*k.Share)
	case k.Open:
		return fmt.Sprintf("%.0f to %.0f %%", 100*k.Share, 100*k.Upto)
	case k.AtLeast:
		return fmt.Sprintf("at least %.0f %%", 100*k.Share)
	case k.AtMost:
		return fmt.Sprintf("below %.0f %%", 100*k.Share)
	}
	return fmt.Sprintf("%.0f %%", 100*k.Share)
}

// points are a remedy's figures at a level, of all repeats.
func (p *page) points(shape, remedy string, level int) (all []*figures) {
	for repeat := 1; repeat <= repeats; repeat++ {
		if r := p.have.find(pointOf(p.at, shape, remedy, level, repeat)); r != nil {
			all = append(all, r.Point)
		}
	}
	return all
}

func (p *page) shape(shape string) {
	if !p.measured(shape) {
		return
	}
	p.Line("\n### `%s`", shape)
	heads := []string{"remedy", "highest load (repeats)"}
	predicted := planned(recording, p.at, shape, capacity.Quota)
	if predicted {
		heads = append(heads, "predicted")
	}
	for _, share := range levels {
		heads = append(heads, fmt.Sprintf("p99 ms at %.0f %%", 100*share))
	}
	t := p.Table(heads...)
	for _, name := range rows() {
		if !planned(point, p.at, shape, name) {
			continue
		}
		row := []any{names[name], p.knees(shape, name)}
		if predicted {
			row = append(row, p.predicted(shape, name))
		}
		for level := range levels {
			row = append(row, p.p99(shape, name, level))
		}
		t.Row(row...)
	}
	p.told(shape)
	p.details(shape)
}

// p99 of a level, as text; "": it is not measured.
func (p *page) p99(shape, remedy string, level int) string {
	if len(p.points(shape, remedy, level)) == 0 {
		return ""
	}
	return study.Decimals(p.p99Ms(shape, remedy, level), 0)
}

// p99Ms of a level: that of all repeats together. Nil: it is not measured, or too few requests lie beyond.
func (p *page) p99Ms(shape, remedy string, level int) *float64 {
	points := p.points(shape, remedy, level)
	switch len(points) {
	case 0:
		return nil
	case 1:
		return points[0].P99
	}
	return pooled(points, 0.99)
}

// forecasts of a shape's recording, nil where there is none.
func (p *page) forecasts(shape string) *forecasts {
	for level := range levels {
		of := pointOf(p.at, shape, capacity.Quota, level, 1)
		of.Kind = recording
		if r := p.have.find(of); r != nil {
			return r.Forecast
		}
	}
	return nil
}

// predicted is the load at which a forecast has a remedy miss the objective, as a share of what the limit can carry.
func (p *page) predicted(shape, remedy string) string {
	for level := range levels {
		of := pointOf(p.at, shape, capacity.Quota, level, 1)
		of.Kind = recording
		r := p.have.find(of)
		if r == nil || r.Forecast == nil {
			continue
		}
		for _, row := range r.Forecast.Rows {
			if row.Remedy == remedy && row.BreaksAt == nil {
				return fmt.Sprintf("above %.0f %%", 100*predict.To*levels[level])
			}
			if row.Remedy == remedy {
				return fmt.Sprintf("%.0f %%", 100**row.BreaksAt*levels[level])
			}
		}
		return "-"
	}
	return notYet
}

// told says where the prediction comes from.
func (p *page) told(shape string) {
	f := p.forecasts(shape)
	switch {
	case f == nil:
	case f.Why != "":
		p.Line("\nNot predicted: %s.", f.Why)
	default:
		p.Line("\nPredicted: the load from which on [forecast](../reference/forecast.md) has the objective missed, from a recording of %d s of the plain quota at %.0f requests per second in such a guest.", pointSeconds, f.Load)
	}
}

// details are all figures of the points that were measured.
func (p *page) details(shape string) {
	t := p.Table("load", "/s", "remedy", "repeats", "p50 ms", "p99", "p99.9", "requests", "failed", "CPUs used", "throttled periods", "switches /s", "widest")
	for level, share := range levels {
		for _, name := range rows() {
			points := p.points(shape, name, level)
			if len(points) == 0 {
				continue
			}
			var requests, failed, periods, throttled uint64
			used, switches, counted := 0.0, 0.0, 0
			widest := "-"
			for _, f := range points {
				requests, failed = requests+f.Requests, failed+f.Failed
				if f.Periods != nil && f.Throttled != nil {
					periods, throttled = periods+*f.Periods, throttled+*f.Throttled
				}
				if f.CPUUsed != nil && f.Switches != nil {
					used, switches, counted = used+*f.CPUUsed, switches+*f.Switches, counted+1
				}
				if f.Widest != nil {
					widest = fmt.Sprint(*f.Widest)
				}
			}
			ofPeriods, cpus, perSecond := "-", "-", "-"
			if periods > 0 {
				ofPeriods = fmt.Sprintf("%d of %d", throttled, periods)
			}
			if counted > 0 {
				cpus, perSecond = fmt.Sprintf("%.2f", used/float64(counted)), fmt.Sprintf("%.0f", switches/float64(counted))
			}
			t.Rowf("%.0f %% | %.0f | %s | %d | %s | %s | %s | %d | %d | %s | %s | %s | %s", 100*share, points[0].Load, names[name], len(points),
				study.Decimals(pooled(points, 0.5), 1), study.Decimals(pooled(points, 0.99), 1), study.Decimals(pooled(points, 0.999), 0), requests, failed, cpus, ofPeriods, perSecond, widest)
		}
	}
}

// accuracy is the simulator beside the guest's kernel.
func (p *page) accuracy() {
	p.Line("\n## The simulator beside this kernel\n\nScenarios on %d CPUs, %d s, by the rule of [accuracy](accuracy.md): the median of %d simulated runs beside the real ones. Self: the share of real runs that agree with the others.", wide.CPUs, scenarioSeconds, simulatedSeeds)
	t := p.Table("scenario", "", "K", "real runs", "figures that agree", "misses: simulated, real", "self")
	agree, all := 0, 0
	for _, w := range wideScenarios {
		agreed, of := p.scenarioRow(t, wide, w)
		agree, all = agree+agreed, all+of
		if slices.Contains(doubted, w.name) {
			p.scenarioRow(t, slower, w)
		}
	}
	if all > 0 {
		p.Line("\n%d of %d figures agree at K = %d.", agree, all, wide.K)
		p.Line("What differs at one K and less at twice that K is the emulator's: virtual CPUs that wake up at once share two real ones.")
	}
	p.Line("\nCompared are %s, %s, %s, p50 and p95.", accuracy.ThrottledPeriods, accuracy.Use, accuracy.ThrottledTime)
}

// scenarioRow adds the row of one scenario on one host, and returns how many figures agree, and how many were compared.
func (p *page) scenarioRow(t *study.Table, h host, w wideScenario) (agree, all int) {
	j, runs, err := judgement(p.have, h, w)
	switch {
	case err != nil:
		t.Rowf("%s | %s | %d | %d | cannot be simulated: %v", w.name, w.about, h.K, runs, err)
		return 0, 0
	case runs < 2:
		t.Rowf("%s | %s | %d | %d | %s", w.name, w.about, h.K, runs, notYet)
		return 0, 0
	}
	var misses []string
	for _, v := range j.Verdicts {
		if v.Agrees {
			agree++
			continue
		}
		low, high := v.Range()
		misses = append(misses, fmt.Sprintf("%s of %s %.3g, %.3g to %.3g", v.Figure, v.Of, v.Simulated, low, high))
	}
	t.Rowf("%s | %s | %d | %d | %d of %d | %s | %.0f %%", w.name, w.about, h.K, runs, agree, len(j.Verdicts), strings.Join(misses, "; "), 100*j.SelfAll)
	return agree, len(j.Verdicts)
}

// how says how it was measured, and what is missing.
func (p *page) how() {
	p.Line("\n## How it is measured\n")
	p.Line("A piece is one shape under one remedy at one load for %d s of guest time, with the requests of one repeat: about %.0f s of two host CPUs on 16. A search halves the", pointSeconds,
		pointOf(wide, capacity.Shard, capacity.Quota, 0, 1).takes().Seconds())
	p.Line("interval on the grid of loads. Between the highest load that kept the objective and the lowest that missed it, p99 is taken to grow by equal factors. p99 and")
	p.Line("p99.9 of several repeats are of all their requests together; \"-\" where fewer than 10 requests lie beyond. A piece counts only if its calibration is ok.")
	points, others, late := 0, []float64{}, []float64{}
	days := map[string]bool{}
	for _, r := range p.have.All {
		points++
		days[r.Day()] = true
		if s := r.Calibration.StealShare; s != nil {
			others = append(others, *s)
		}
		late = append(late, r.Calibration.SleepLateUs)
	}
	if points > 0 {
		p.Line("\n%d pieces on %d days. While they ran, others had %.0f %% of the host's CPUs (median; at most %.0f %%). A sleep of 1 ms ended %.0f us late (median).", points, len(days),
			100*stats.Median(others), 100*slices.Max(others), stats.Median(late))
	}
	next := missing(p.have)
	if len(next) > 0 {
		p.Line("\nNext: %v. `make results-wide WIDE_FOR=30m` goes on from there.", next[0])
	}
	p.Line("\nCaches, memory bandwidth, hardware threads and NUMA distance have no effect in an emulator.")
}
