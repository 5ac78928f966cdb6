package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/bench/study"
	"github.com/unthrottle/unthrottle/internal/experiment/capacity"
	"github.com/unthrottle/unthrottle/internal/stats"
	"github.com/unthrottle/unthrottle/internal/text"
)

// page is docs/results/service.md under way.
type page struct{ study.Page }

// markdown is the page of all measured parts, in their order.
func markdown(all []measured) string {
	var p page
	p.head()
	p.summary(all)
	var missing []string
	first := []string{"spike", "price"} // what pages quote
	shapes := slices.DeleteFunc(parts(), func(name string) bool { return slices.Contains(first, name) })
	for n, name := range slices.Concat(first, shapes) {
		if n == len(first) {
			p.Rest()
		}
		i := slices.IndexFunc(all, func(m measured) bool { return m.Part == name })
		if i < 0 {
			missing = append(missing, "`"+name+"`")
			continue
		}
		p.part(all[i])
	}
	if len(missing) > 0 {
		p.Line("\nNot measured yet: %s.", strings.Join(missing, ", "))
	}
	return p.String()
}

// summary is what the shapes' tables come to: a column per remedy.
func (p *page) summary(all []measured) {
	var remedies []capacity.Remedy
	for _, m := range all {
		if m.Shape != nil && len(m.Shape.Remedies) > len(remedies)+1 {
			remedies = m.Shape.Remedies[1:] // the quota is what they are compared with
		}
	}
	if len(remedies) == 0 {
		return
	}
	p.Line("\n## In short")
	p.Line("\nThe highest load within the objective, as a multiple of the plain quota's; bold where the whole interval lies on one side of 1. In brackets: predicted.")
	heads := []string{"shape"}
	for _, r := range remedies {
		heads = append(heads, fmt.Sprintf("%s (%s)", r.Remedy, text.CPUs(*r.CPUsGranted)))
	}
	t := p.Table(heads...)
	for _, m := range all {
		if m.Shape == nil {
			continue
		}
		row := []any{"`" + m.Shape.Shape + "`"}
		for _, r := range remedies {
			row = append(row, m.ratioText(r.Remedy))
		}
		t.Row(row...)
	}
	p.fix(all)
	p.Line("\nRequests that are all alike can gain little at equal CPUs: their work has to be done, in whichever order. Where long work competes with short, what keeps the")
	p.Line("long from spending the quota is worth most: pools sized by the limit, long requests off the I/O threads, a burst. With a shorter period or fewer CPUs both wait")
	p.Line("their turn. A container here can be at most twice as wide as its limit; how much more a wider one gains is not measured here.")
}

// ratioText is the load that a remedy carries, measured and forecast.
func (m *measured) ratioText(remedy string) string {
	i := slices.IndexFunc(m.Shape.Remedies, func(r capacity.Remedy) bool { return r.Remedy == remedy })
	if i < 0 || m.Shape.Remedies[i].Ratio == nil {
		return "-"
	}
	r := m.Shape.Remedies[i]
	text := study.Decimals(r.Ratio, 2)
	if *r.RatioLow > 1 || *r.RatioHigh < 1 {
		text = "**" + text + "**"
	}
	if is, _, ok := m.Predicted.ratio(remedy); ok {
		text += fmt.Sprintf(" (%.2f)", is)
	}
	return text
}

func (p *page) part(m measured) {
	switch {
	case m.Failed != "":
		p.Line("\n## `%s`\n\nNot measured: %s", m.Part, m.Failed)
	case m.Shape != nil:
		p.shape(m)
	case m.Library != nil:
		p.library(m.Library)
	case m.Spiral != nil:
		p.spike(*m.Spiral)
	case m.Price != nil:
		p.prices(*m.Price)
	}
	p.Line("\n%s, on %s, in %s: scale %s, %s.", m.Machine, m.Day(), m.Took.Round(time.Second), m.Scale, m.extent())
}

// extent is the number of repeats of each measurement.
func (m measured) extent() string {
	extent := text.Count(m.Repeats, "repeat")
	if m.Steps > 0 {
		extent += " of each search, " + text.Count(m.Steps, "step")
	}
	if m.Step > 0 {
		extent += fmt.Sprintf(" of %v", m.Step)
	}
	return extent
}

func (p *page) head() {
	p.Line("# Results")
	p.Line("\nWritten by `make results`; how each figure is measured stands in [bench service](../reference/bench-service.md). Below each part stand")
	p.Line("the machine, the day, and how much was measured. Ratios compare with the plain quota in the same repeat; the interval")
	p.Line("holds 95 %% (Student's t over the logarithms) of the scatter of the repeats, not the grid of the searches: with two steps")
	p.Line("10 to 20 %%, with four 3 to 5 %%. \"Noisy\" rows say why, and are worth that much less. Rows that are granted more CPUs")
	p.Line("than the quota are no comparison, but a price list.")
}

func (p *page) shape(of measured) {
	r := *of.Shape
	p.Line("\n## Shape `%s`", r.Shape)
	p.Line("\n%s. Limit %s; objective p%s within %s ms, at most %s %% errors.", upper(r.About), text.Count(r.Limit, "CPU"), number(100*r.Quantile), number(r.BoundMs), number(100*r.Errors))
	t := p.Table("remedy", "CPUs granted", "highest load /s (repeats)", "to the quota", "interval", "predicted", "noisy")
	for _, m := range r.Remedies {
		t.Rowf("%s | %s | %s | %s | %s | %s | %s", m.Remedy, study.Decimals(m.CPUsGranted, 1), loadsText(m), study.Decimals(m.Ratio, 2), intervalText(m),
			of.Predicted.text(m.Remedy), strings.Join(m.Why, "; "))
	}
	p.Line("\n%s", verdict(r))
	if told, _ := besideFix(r); told != "" {
		p.Line("\n%s", told)
	}
	p.predicted(of)
	t = p.Table("at", "load /s", "remedy", "p50", "p90", "p99", "p99.9", "max ms", "failed", "CPUs used", "throttled periods", "stopped %", "switches /s")
	for i := range 2 {
		for _, m := range r.Remedies {
			if i < len(m.Points) {
				point(t, m.Remedy, m.Points[i])
			}
		}
	}
}

// loadsText is the highest load of a remedy, with those of its repeats.
func loadsText(m capacity.Remedy) string {
	load := "none met"
	if m.MaxLoad != nil {
		load = fmt.Sprintf("%.0f", *m.MaxLoad)
	}
	var loads []string
	for _, l := range m.Loads {
		loads = append(loads, fmt.Sprintf("%.0f", l))
	}
	return fmt.Sprintf("%s (%s)", load, strings.Join(loads, ", "))
}

// intervalText is that of the ratio to the quota.
func intervalText(m capacity.Remedy) string {
	if m.RatioLow == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f to %.2f", *m.RatioLow, *m.RatioHigh)
}

// library is the table of the variant with the library in the program.
func (p *page) library(all []capacity.Result) {
	p.Line("\n## The library in the program")
	p.Line("\n`budget`: long work within the budget of [the library](../howto/in-your-go-code.md), as [bench service](../reference/bench-service.md#remedies) has it, beside pools")
	p.Line("sized by the limit. Each step runs %v longer before it counts.", capacity.Learns)
	t := p.Table("shape", "remedy", "highest load /s (repeats)", "of what the limit carries", "to the quota", "interval", "noisy")
	for _, r := range all {
		carries, err := capacity.Carries(r.Shape, r.Limit)
		for _, m := range r.Remedies {
			share := "-"
			if err == nil && m.MaxLoad != nil {
				share = fmt.Sprintf("%.0f %%", 100**m.MaxLoad/carries)
			}
			t.Rowf("`%s` | %s | %s | %s | %s | %s | %s", r.Shape, m.Remedy, loadsText(m), share, study.Decimals(m.Ratio, 2), intervalText(m), strings.Join(m.Why, "; "))
		}
	}
	p.Line("\nThe objective is on the short requests. Above 100 %% of what the limit carries they are within it all the same, and the long ones wait without end:")
	p.Line("such a row says that the short ones no longer depend on the load, and no more. Ratios up to 100 %% are worth their number.")
}

// text is a remedy's forecast in a table.
func (f *predicted) text(remedy string) string {
	r, modelled, ok := f.ratio(remedy)
	switch {
	case !ok || remedy == capacity.Quota:
		return "-"
	case modelled:
		return fmt.Sprintf("%.2f (modelled)", r)
	}
	return fmt.Sprintf("%.2f", r)
}

// predicted says where the forecasts come from, and how well they did.
func (p *page) predicted(of measured) {
	if of.NotPredicted != "" {
		p.Line("\nNot predicted: %s.", of.NotPredicted)
	}
	f := of.Predicted
	if f == nil {
		return
	}
	within, compared := 0, 0
	for _, m := range of.Shape.Remedies {
		if r, _, ok := f.ratio(m.Remedy); ok && m.Ratio != nil {
			compared++
			if r >= *m.RatioLow && r <= *m.RatioHigh || math.Abs(r / *m.Ratio - 1) <= predictedWithin {
				within++
			}
		}
	}
	p.Line("\nPredicted: [forecast](../reference/forecast.md) from one recording of %.0f s of the plain quota at %.0f requests per second, as it is and as arrivals come faster: the",
		f.Window.Seconds(), f.Load)
	p.Line("load at which a remedy misses the objective over that at which the plain quota does%s.", f.quotaText())
	p.Line("%d of %d are within the interval, or within %.0f %% of the measured ratio.", within, compared, 100*predictedWithin)
}

// predictedWithin is how far a forecast ratio may be from one that was measured
// without an interval worth the name.
const predictedWithin = 0.15

// quotaText is the plain quota's own forecast.
func (f *predicted) quotaText() string {
	if quota := f.row(capacity.Quota); quota != nil {
		return fmt.Sprintf(" (predicted: %.0f requests per second)", *quota.BreaksAt*f.Load)
	}
	return ", which is predicted to miss it at no load tried"
}

func point(t *study.Table, remedy string, at capacity.Point) {
	throttled, stopped := "-", "-"
	if at.ThrottledPeriods != nil {
		throttled = fmt.Sprintf("%d of %d", *at.ThrottledPeriods, *at.Periods)
	}
	if at.StoppedHigh != nil {
		stopped = fmt.Sprintf("%.1f to %.1f", 100**at.StoppedLow, 100**at.StoppedHigh)
	}
	t.Rowf("%.0f %% | %.0f | %s | %s | %s | %s | %s | %s | %d | %s | %s | %s | %s", 100*at.OfBest, at.Load, remedy,
		study.Decimals(at.P50, 1), study.Decimals(at.P90, 1), study.Decimals(at.P99, 1), study.Decimals(at.P999, 1), study.Decimals(at.Max, 0), at.Failed,
		study.Decimals(at.CPUUsed, 2), throttled, stopped, study.Decimals(at.Switches, 0))
}

// verdict says what a shape's figures hold at equal CPUs.
func verdict(r capacity.Result) string {
	var more, less, same []string
	for _, m := range r.Remedies {
		if m.Ratio == nil || *m.CPUsGranted != *r.Remedies[0].CPUsGranted {
			continue
		}
		text := fmt.Sprintf("%s (%.2f)", m.Remedy, *m.Ratio)
		switch {
		case *m.RatioLow > 1:
			more = append(more, text)
		case *m.RatioHigh < 1:
			less = append(less, text)
		default:
			same = append(same, text)
		}
	}
	var parts []string
	for _, group := range []struct {
		what  string
		names []string
	}{{"carried more load than the plain quota", more}, {"carried less", less}, {"made no difference that these repeats could tell", same}} {
		if len(group.names) > 0 {
			parts = append(parts, strings.Join(group.names, ", ")+" "+group.what)
		}
	}
	if len(parts) == 0 {
		return "No remedy could be compared at equal CPUs."
	}
	return "At equal CPUs " + strings.Join(parts, "; ") + "."
}

// besideFix compares what fix chose with the best single remedy that apply knows and that grants no more CPU; "": fix was not
// measured. asGood: it carries as much, or their intervals meet.
func besideFix(r capacity.Result) (told string, asGood bool) {
	var fix, best *capacity.Remedy
	for i, m := range r.Remedies {
		switch {
		case m.Ratio == nil:
		case m.Remedy == capacity.Fix:
			fix = &r.Remedies[i]
		case m.Remedy == capacity.Quota || m.Remedy == capacity.Pools || *m.CPUsGranted > *r.Remedies[0].CPUsGranted:
		case best == nil || *m.Ratio > *best.Ratio:
			best = &r.Remedies[i]
		}
	}
	if fix == nil || best == nil {
		return "", false
	}
	chose := "`fix`"
	for _, note := range r.Notes {
		if choice, ok := strings.CutPrefix(note, capacity.Fix+" chose "); ok {
			chose = "`fix` chose " + choice + ". It"
		}
	}
	asGood = *fix.Ratio >= *best.Ratio || *fix.RatioHigh >= *best.RatioLow
	than := "as much as"
	if !asGood {
		than = "**less** than"
	}
	return fmt.Sprintf("%s carries %s the best single remedy at equal CPUs, %s: %.2f (%.2f to %.2f) beside %.2f (%.2f to %.2f).", chose, than, best.Remedy,
		*fix.Ratio, *fix.RatioLow, *fix.RatioHigh, *best.Ratio, *best.RatioLow, *best.RatioHigh), asGood
}

// fix says in how many shapes the choice of fix is as good as the best single remedy.
func (p *page) fix(all []measured) {
	good, of := 0, 0
	for _, m := range all {
		if m.Shape == nil {
			continue
		}
		if told, asGood := besideFix(*m.Shape); told != "" {
			of++
			if asGood {
				good++
			}
		}
	}
	if of > 0 {
		p.Line("\nWhat `fix` chose carries as much as the best single remedy at equal CPUs, or their intervals meet, in %d of %s.", good, text.Count(of, "shape"))
	}
}

func (p *page) spike(s capacity.Spiral) {
	p.Line("\n## A spike, and the way back")
	p.Line("\nOne pool, %.0f requests per second: for %.0f s %.0f per second, then %.0f again, watched for %.0f s. A client gives a try up after %.0f ms and",
		s.Normal, s.For, s.Spike, s.Normal, s.Watched, 1000*s.Timeout)
	p.Line("tries once more; work grows by 0.1 %% for each request that waits, of at most 1,000. Recovered is a service that answers nine of ten requests in time, and keeps to it.")
	t := p.Table("remedy", "CPUs granted", "left out", "recovered after s (repeats)", "answered in time at the end")
	for _, r := range s.Runs {
		var after []string
		for _, v := range r.Recovery {
			if v < 0 {
				after = append(after, "never")
			} else {
				after = append(after, number(v))
			}
		}
		left := r.Left
		if left == "" {
			left = "-"
		}
		t.Rowf("%s | %.1f | %s | %s | %.0f %%", r.Remedy, r.Granted, left, strings.Join(after, ", "), 100*r.Good)
	}
}

func (p *page) prices(r capacity.Price) {
	p.Line("\n## The price: predictability, and the neighbour")
	p.Line("\nOne pool at %.0f requests per second, alone on the host and beside a neighbour of the same weight that burns on every CPU it may use (with pin:", r.Load)
	p.Line("every CPU that is not pinned). Predictability is p99 on the full host over p99 on the empty one: 1 is best. The neighbour's work is relative to what it")
	p.Line("gets done beside the plain quota.")
	t := p.Table("remedy", "CPUs granted", "p99 ms empty", "p99 ms full", "predictability", "interval", "neighbour's work", "interval")
	for _, row := range r.Rows {
		predictable, interval := ratio(row.Predictability)
		neighbour, between := ratio(row.NeighbourRatio)
		t.Rowf("%s | %.1f | %s | %s | %s | %s | %s | %s", row.Remedy, row.Granted, all(row.Empty), all(row.Full), predictable, interval, neighbour, between)
	}
}

func ratio(r *stats.Ratio) (mean, interval string) {
	if r == nil {
		return "-", "-"
	}
	return fmt.Sprintf("%.2f", r.Mean), fmt.Sprintf("%.2f to %.2f", r.Low, r.High)
}

func all(values []float64) string {
	var texts []string
	for _, v := range values {
		texts = append(texts, strconv.FormatFloat(v, 'f', 1, 64))
	}
	return strings.Join(texts, ", ")
}

func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

func upper(text string) string {
	return strings.ToUpper(text[:min(1, len(text))]) + text[min(1, len(text)):]
}
