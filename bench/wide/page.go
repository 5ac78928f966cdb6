package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strings"
	"text/template"

	"github.com/unthrottle/unthrottle/internal/experiment/capacity"
	"github.com/unthrottle/unthrottle/internal/stats"
	"github.com/unthrottle/unthrottle/test/study"
)

//go:embed page.md
var pageText string

// page is docs/results/wide.md: its template calls what follows.
type page struct {
	have           *records
	Small, Patient host
	BoundMs        int
	Gains          []gained
}

// gained is a shape on a host whose gains the page tells.
type gained struct {
	At           host
	Shape, About string
}

// names of remedies on the page.
var names = map[string]string{
	capacity.Quota: "quota", capacity.Burst: "burst of one quota", capacity.NarrowSchedExt: "narrow by sched_ext",
	longCredit: "narrow by sched_ext, long credit", noCredit: "narrow by sched_ext, no credit", capacity.Pin: "pin or narrow by cpuset",
	capacity.Burst300: "burst of one quota in 300 ms", capacity.Burst1s: "burst of one quota in 1 s",
	capacity.Period: "period of 10 ms", capacity.Cpuset: "quota on as many CPUs", capacity.Pools: "pools sized by the limit",
	capacity.Budget: "the library in the program", capacity.Weight: "shares only, no quota",
	capacity.PinPools: "pin with pools sized by it", capacity.BurstPeriod: "period of 10 ms with a burst of one quota",
	capacity.Twice: "twice the quota", capacity.RateLimit: "requests beyond what the limit carries are refused",
}

// repeats is how many repeats a page looks for.
const repeats = 5

// markdown is the page of all records.
func markdown(have *records) string {
	return study.Fill(pageText, template.FuncMap{"join": func(all []string) string { return strings.Join(all, "; ") }},
		page{have, small, patient, boundMs, []gained{
			{small, "pools", "short requests beside bursts of jobs"},
			{small, "mixed", "pings and bursts of long work on the same threads"},
			{small, capacity.PoolsGC, "the first with a stop-the-world collector"},
			{wide, "pools", "the same as the first"},
			{wide, capacity.Shard, "a shard of a stateful service"},
		}})
}

// Share is the load that all are compared at, in percent.
func (p page) Share() float64 { return 100 * levels[comparedLevel] }

// Levels are the loads of the grid, in percent.
func (p page) Levels() (percent []string) {
	for _, share := range levels {
		percent = append(percent, fmt.Sprintf("%.0f", 100*share))
	}
	return percent
}

// Release is the guests' kernel in full.
func (p page) Release() string {
	var all []string
	for _, r := range p.have.All {
		if r.Release != "" && !slices.Contains(all, r.Release) {
			all = append(all, r.Release)
		}
	}
	return cmp.Or(strings.Join(all, ", "), kernel)
}

// gain is the highest load of a remedy over the quota's: from what to what, of each repeat. Both are equal where both loads are
// known, else 0 or infinity where nothing bounds it. The zero value: it is not known.
type gain struct {
	low, high []float64
	// ended are the repeats' highest loads where none was missed: the grid had no more; 0: one was.
	ended []float64
}

// gain compares all repeats whose searches have ended. What is out of the grid is a bound, and so is what the plan has some loads of.
func (p page) gain(at host, shape, remedy string) (g gain) {
	for repeat := 1; repeat <= repeats; repeat++ {
		of, ok := p.have.kneeOf(at, shape, remedy, repeat)
		quota, okQuota := p.have.kneeOf(at, shape, capacity.Quota, repeat)
		if !ok || !okQuota || (of.Open || quota.Open) && searched(at, shape, remedy) {
			continue
		}
		low, high := of.bounds()
		quotaLow, quotaHigh := quota.bounds()
		ended := 0.0
		if of.AtLeast {
			ended = of.Share
		}
		// Over infinity it is 0, over 0 infinity.
		g.low, g.high, g.ended = append(g.low, low/quotaHigh), append(g.high, high/quotaLow), append(g.ended, ended)
	}
	return g
}

// factor is the repeats' median, or its bound; 0: neither is known.
func (g gain) factor() float64 {
	if len(g.low) == 0 {
		return 0
	}
	low, high := stats.Median(g.low), stats.Median(g.high)
	if low == 0 && !math.IsInf(high, 1) {
		return high
	}
	return low
}

// String is the repeats' median, or its bound, and what each repeat came to.
func (g gain) String() string {
	text := boundsText(stats.Median(g.low), stats.Median(g.high))
	if low, high := stats.Median(g.low), stats.Median(g.high); low > 0 && low < high && slices.ContainsFunc(g.high, isInf) {
		text = fmt.Sprintf("at least %.2f", low) // what no load bounds above is no scatter
	}
	if len(g.low) == 1 {
		return text + g.end(0) + " (1 repeat)"
	}
	var each []string
	for i := range g.low {
		each = append(each, boundsText(g.low[i], g.high[i])+g.end(i))
	}
	return fmt.Sprintf("%s (%d repeats: %s)", text, len(each), strings.Join(each, "; "))
}

func isInf(v float64) bool { return math.IsInf(v, 1) }

// end says where the grid ended in a repeat, if it did below what was carried.
func (g gain) end(i int) string {
	if i >= len(g.ended) || g.ended[i] == 0 {
		return ""
	}
	return fmt.Sprintf(", the grid ended at %.0f %%", 100*g.ended[i])
}

// boundsText is from what to what a factor lies.
func boundsText(low, high float64) string {
	switch {
	case low == high:
		return fmt.Sprintf("%.2f", low)
	case low == 0 && isInf(high):
		return "not told by these loads"
	case isInf(high):
		return fmt.Sprintf("at least %.2f", low)
	case low == 0:
		return fmt.Sprintf("at most %.2f", high)
	}
	return fmt.Sprintf("%.2f to %.2f", low, high)
}

// Compared are the remedies' gains of a shape, the largest first.
func (p page) Compared(at host, shape string) string {
	factors, texts := map[string]float64{}, []string{}
	for _, name := range allRemedies()[1:] {
		if g := p.gain(at, shape, name); g.factor() > 0 {
			text := fmt.Sprintf("**%s** %v", names[name], g)
			factors[text], texts = g.factor(), append(texts, text)
		}
	}
	slices.SortStableFunc(texts, func(a, b string) int { return cmp.Compare(factors[b], factors[a]) })
	return strings.Join(texts, "; ")
}

// Fixed says what fix left in force.
func (p page) Fixed() string {
	var left []string
	for _, shape := range shapes {
		r := p.have.find(fixedOf(small, shape, comparedLevel, 1))
		if r == nil {
			continue
		}
		text := "nothing"
		if t := r.Fix.left(); t != nil {
			text = t.String()
			if j := r.Fix.Judgement; j != nil && j.Before != nil && j.After != nil {
				before, after := judged(j)
				text += fmt.Sprintf(" (p%g of threads %s to %s)", 100*j.Quantile, before, after)
			}
		}
		left = append(left, fmt.Sprintf("`%s` %s", shape, text))
	}
	return strings.Join(left, "; ")
}

// Bounded is the largest gain of narrow with credit for each shape that has one.
func (p page) Bounded() string {
	var all []string
	best := map[string]float64{} // on the small host
	for _, at := range []host{small, wide} {
		for _, shape := range shapes {
			most, text := 0.0, ""
			for _, name := range []string{capacity.NarrowSchedExt, longCredit} {
				if g := p.gain(at, shape, name); g.factor() > most && searched(at, shape, name) {
					most, text = g.factor(), fmt.Sprintf("`%s` on %d CPUs %v", shape, at.CPUs, g)
				}
			}
			if text != "" {
				all = append(all, text)
			}
			if at == small {
				best[shape] = most
			}
		}
	}
	if len(all) == 0 {
		return ""
	}
	text := "narrow with credit comes to " + strings.Join(all, ", ")
	if without, with := best["pools"], best[capacity.PoolsGC]; without > 0 && with > without {
		text += fmt.Sprintf(". With a collector it is %.2f instead of %.2f: a stop during a collection makes all requests wait", with, without)
	}
	return text
}

// Room says what any remedy can gain: where the quota already carries a large share of what its CPUs can, little is left.
func (p page) Room() string {
	var all []string
	for _, of := range p.Gains {
		var most []float64
		for repeat := 1; repeat <= repeats; repeat++ {
			if k, ok := p.have.kneeOf(of.At, of.Shape, capacity.Quota, repeat); ok && k.exact() {
				most = append(most, 1/k.Share)
			}
		}
		if len(most) > 0 {
			all = append(all, fmt.Sprintf("`%s` on %d CPUs %.2f", of.Shape, of.At.CPUs, stats.Median(most)))
		}
	}
	return strings.Join(all, ", ")
}

// halving is where p99 on exclusive CPUs is half of the quota's: of All loads those where it Comes, and all with pools
// that are Sized by these CPUs. Longer are the loads where p99 is longer than under the quota, LongerP50 those where p50 is.
type halving struct {
	All, SizedCome    int
	Longer, LongerP50 int
	Come, Sized       []string
}

// halved is how much of the quota's p99 counts as half. The page says it.
const halved = 0.5

// Halving compares p99 on exclusive CPUs with the quota's, at each load where both are measured.
func (p page) Halving() (h halving) {
	for _, at := range []host{small, wide, widest} {
		for _, shape := range shapes {
			for level, share := range levels {
				quota, pin, both := p.p99Ms(at, shape, capacity.Quota, level), p.p99Ms(at, shape, capacity.Pin, level),
					p.p99Ms(at, shape, capacity.PinPools, level)
				if quota == nil || pin == nil {
					continue
				}
				h.All++
				if *pin > *quota {
					h.Longer++
				}
				middle, onOwn := p.ms(at, shape, capacity.Quota, level, 0.5), p.ms(at, shape, capacity.Pin, level, 0.5)
				if middle != nil && onOwn != nil && *onOwn > *middle {
					h.LongerP50++
				}
				text := fmt.Sprintf("`%s` at %.0f %% on %d CPUs %.0f, %.0f", shape, 100*share, at.CPUs, *quota, *pin)
				if both != nil {
					text += fmt.Sprintf(", %.0f", *both)
					h.Sized = append(h.Sized, text)
					if *both <= halved**quota {
						h.SizedCome++
					}
				}
				if *pin <= halved**quota {
					h.Come = append(h.Come, text)
				}
			}
		}
	}
	return h
}

// p99Ms is p99 of a level.
func (p page) p99Ms(at host, shape, remedy string, level int) *float64 {
	return p.ms(at, shape, remedy, level, 0.99)
}

// ms is a quantile of a level, p50 or p99: that of all repeats together. Nil: it is not measured, or too few requests lie beyond.
func (p page) ms(at host, shape, remedy string, level int, quantile float64) *float64 {
	var points []*figures
	for repeat := 1; repeat <= repeats; repeat++ {
		if r := p.have.find(pointOf(at, shape, remedy, level, repeat)); r != nil {
			points = append(points, r.Point)
		}
	}
	switch len(points) {
	case 0:
		return nil
	case 1:
		if quantile == 0.5 {
			return points[0].P50
		}
		return points[0].P99
	}
	return pooled(points, quantile)
}

// predictable are the remedies whose predictability is compared.
var predictable = []string{noCredit, capacity.NarrowSchedExt, capacity.Burst, capacity.Weight}

// bounding are those that keep the limit, which are compared where a piece is dear.
var bounding = []string{noCredit, capacity.NarrowSchedExt, capacity.Burst}

// Sizes are p99 of both shards at the load that all are compared at, on hosts of each size, over that without a limit; none: not measured.
func (p page) Sizes() (rows []string) {
	for _, shape := range sizedBursts {
		for _, at := range sizes {
			cells, known := []any{}, 0
			free := p.p99Ms(at, shape, capacity.Weight, comparedLevel)
			for _, name := range widths {
				p99 := p.p99Ms(at, shape, name, comparedLevel)
				cell := study.Decimals(p99, 1)
				if p99 != nil {
					known++
				}
				if p99 != nil && free != nil && name != capacity.Weight {
					cell += fmt.Sprintf(" (%.1f)", *p99 / *free)
				}
				cells = append(cells, cell)
			}
			if known > 1 {
				rows = append(rows, study.Row(append([]any{"`" + shape + "`", at.CPUs, at.Limit, at.K}, cells...)...))
			}
		}
	}
	return rows
}

// predicted is a row of predictability.
type predicted struct {
	Remedy string
	K      int
	Cells  []string
}

// Predictability are the rows of the remedies on an empty and on a full host.
func (p page) Predictability() (rows []predicted) {
	for _, of := range []struct {
		at       host
		remedies []string
	}{{small, predictable}, {patient, bounding}} {
		for _, name := range of.remedies {
			row := predicted{Remedy: names[name], K: of.at.K}
			empty, full := p.emptyAndFull(of.at, name)
			if empty != nil && full != nil {
				for _, f := range []*figures{empty.Point, full.Point} {
					row.Cells = append(row.Cells, study.Decimals(f.P50, 1), study.Decimals(f.P99, 1), study.Decimals(f.LateP99, 1))
				}
				row.Cells = append(row.Cells, fmt.Sprintf("%.2f", *full.Point.P99 / *empty.Point.P99), study.Decimals(full.Point.Others, 1))
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// emptyAndFull are a remedy's pieces on an empty and on a full host; nil: no p99 of it was measured.
func (p page) emptyAndFull(at host, remedy string) (empty, full *record) {
	chosen := func(p *record) *record {
		if p == nil || p.Point.P99 == nil || !(*p.Point.P99 > 0) {
			return nil
		}
		return p
	}
	return chosen(p.have.find(pointOf(at, capacity.Shard, remedy, comparedLevel, 1))),
		chosen(p.have.find(besideOthers(at, capacity.Shard, remedy, comparedLevel, 1)))
}

// Faster is how much faster a CPU of a small guest is while it is the only busy one; "": that is not known.
func (p page) Faster() string {
	var all []float64
	for _, name := range predictable {
		empty, full := p.emptyAndFull(small, name)
		if empty != nil && full != nil && full.Calibration.LoopRateAll > 0 {
			all = append(all, full.Calibration.LoopRateOne/full.Calibration.LoopRateAll)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f", stats.Median(all))
}
