package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/bench/study"
	"github.com/unthrottle/unthrottle/internal/cure/fix"
	"github.com/unthrottle/unthrottle/internal/text"
)

// page is docs/results/fix.md under way.
type page struct{ study.Page }

// judged is a case with what was kept of it.
type judged struct {
	c testCase
	k caseRun
	f finding
}

// markdown is the page of all cases: misses first, then all in their order.
func markdown(of []testCase, all, first []caseRun) string {
	var p page
	var done, missed []judged
	var open []string
	for i, c := range of {
		k := all[i]
		j := judged{c, k, judge(c, k)}
		switch {
		case k.NotRun != "":
			open = append(open, fmt.Sprintf("- `%s`: not run: %s", c.name, text.Shown(k.NotRun)))
		case k.Complete && k.Fix == nil:
			open = append(open, fmt.Sprintf("- `%s`: fix was not run; what each remedy brings stands in [truth](truth.md)", c.name))
		case !k.Complete:
			open = append(open, fmt.Sprintf("- `%s`: not measured yet", c.name))
		default:
			done = append(done, j)
			if !j.f.good() {
				missed = append(missed, j)
			}
		}
	}
	p.head()
	p.summary(done)
	p.misses(missed)
	p.first(of, first)
	if len(open) > 0 {
		p.Line("\n## Without fix\n\n%s", strings.Join(open, "\n"))
	}
	for _, j := range done {
		p.service(j)
	}
	return p.String()
}

func (p *page) head() {
	p.Line("# What fix chooses for real services")
	p.Line("\nWritten by `make truth`. Each case is a real program from Debian's packages, in a")
	p.Line("cgroup of its own with a limit. A client outside that cgroup sends requests at times")
	p.Line("of its own choosing and measures from the intended time. `fix --yes` ran on each")
	p.Line("service first and was undone. Then every remedy was applied for real, in rounds that")
	p.Line("also leave the service alone.")
	p.Line("\nThe choice is *the best at equal CPU* where no remedy that grants no more CPU than the")
	p.Line("limit is better beyond the noise. Beyond the noise means: all rounds of one are below all")
	p.Line("rounds of the other, and the medians differ by a tenth and by half a millisecond. It is")
	p.Line("*worse* where the chosen remedy, or what fix left in force, is worse than leaving it.")
	p.Line("An answer that applies nothing (leave it, more CPU, a setting) counts as leaving it.")
	p.Line("Of a service with which nothing is wrong, leaving it is the best by definition.")
	p.Line("\nfix chooses by a [trial](../reference/fix.md#the-trial): it tries the remedies on the service in turns,")
	p.Line("and the forecast says in which order. What the forecast alone would have chosen stands beside it.")
}

func (p *page) summary(done []judged) {
	p.Line("\n## In short")
	n, slow, requests := choicesOf(done), 0, 0
	for _, j := range done {
		if t := j.k.Fix.Trial; t != nil {
			slow, requests = slow+t.Slow, requests+t.Requests
		}
	}
	p.Line("\nOf %s the choice was the best at equal CPU in %d, what fix left in force in %d. The choice was worse than leaving it in %d.",
		text.Count(len(done), "service"), n.best, n.left, n.worse)
	p.Line("\nThe choice of the forecast alone would have been the best in %d.", n.forecast)
	if len(done) == 0 {
		return
	}
	if requests > 0 {
		p.Line("\nThe trials made %.2f %% of the requests in them slower than twice what leaving the service had (%d of %d).", 100*float64(slow)/float64(requests), slow, requests)
	}
	p.Line("\nCame is p99 of the client as a factor of leaving it. The forecast is a factor too. What a trial cost is the share of the requests in it that took longer than")
	p.Line("twice the judged quantile of leaving it.")
	p.beside(done)
}

// beside is a table of what the forecast alone would choose beside what fix chose.
func (p *page) beside(all []judged) {
	t := p.Table("service", "limit", "cause", "forecast alone", "forecast", "came", "fix chose", "came", "best at equal CPU", "fix left in force", "verdict", "trial", "cost", "measured")
	for _, j := range all {
		t.Rowf("`%s` | %g | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s", j.c.name, j.c.limit, orMissing(j.k.Look.Cause), j.byForecast(),
			j.forecast(j.f.ByForecast), j.came(j.f.ByForecast), j.chose(), j.came(j.named()), j.best(), j.left(), j.verdict(), j.trial(), j.cost(), j.k.measuredAt())
	}
}

// first are the services that were measured once before any rule was changed for them.
func (p *page) first(of []testCase, first []caseRun) {
	var all []judged
	fair, near, within := 0, 0, 0
	for i, c := range of {
		if k := first[i]; k.Complete && k.Fix != nil {
			all = append(all, judged{c, k, judge(c, k)})
			for _, e := range scoreOf(c, k).Effects {
				if !e.Fair {
					continue
				}
				fair++
				near, within = near+one(e.Close), within+one(e.Within)
			}
		}
	}
	if len(all) == 0 {
		return
	}
	n, missed := choicesOf(all), slices.DeleteFunc(slices.Clone(all), func(j judged) bool { return j.f.good() })
	p.Line("\n## Services that the program met for the first time")
	p.Line("\nEach was added with its load and its truth before anybody looked at it with the tool, and measured once. Rules that were changed since had no part in these")
	p.Line("figures. What fix left in force was the best at equal CPU in %d of %d, and worse than leaving it in %d. The choice of the forecast alone would have been the best in %d.",
		n.left, len(all), n.worse, n.forecast)
	p.Line("Of %d forecasts of p99 %d came within a quarter, and %d within the interval of that day.", fair, near, within)
	p.beside(all)
	if len(missed) > 0 {
		p.Line("")
		p.missed(missed)
	}
}

// choices count services: where the choice was the best, what fix left in force, and what the forecast alone would choose; and where it was worse.
type choices struct{ best, left, forecast, worse int }

func choicesOf(all []judged) (n choices) {
	for _, j := range all {
		n.best, n.left = n.best+one(j.f.Known && j.f.IsBest), n.left+one(j.f.Known && j.f.LeftIsBest)
		n.forecast, n.worse = n.forecast+one(j.f.Known && j.f.ForecastIsBest), n.worse+one(j.f.Worse)
	}
	return n
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}

// byForecast is what the forecast alone would choose, marked where another remedy is better.
func (j judged) byForecast() string {
	if j.f.Known && !j.f.ForecastIsBest {
		return j.f.ByForecast + " (**miss**)"
	}
	return orMissing(j.f.ByForecast)
}

// trial says how long the trial was.
func (j judged) trial() string {
	t := j.k.Fix.Trial
	if t == nil {
		return "none"
	}
	return fmt.Sprintf("%s, %.0f s", text.Count(t.Rounds, "round"), t.Seconds)
}

// cost is the share of the trial's requests that it made slow.
func (j judged) cost() string {
	t := j.k.Fix.Trial
	if t == nil || t.Requests == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(t.Slow)/float64(t.Requests))
}

// named is the variant that fix names, applied or not.
func (j judged) named() string {
	if j.k.Fix.Chosen != "" {
		return j.k.Fix.Chosen
	}
	return leaveIt
}

// chose is fix's answer in words.
func (j judged) chose() string {
	x := j.k.Fix
	switch {
	case x.Failed != "":
		return "failed"
	case x.Applied:
		return x.Chosen
	case x.Chosen != "":
		return fmt.Sprintf("%s: %s (not applied)", x.Answer, x.Chosen)
	case x.Answer != "":
		return x.Answer
	}
	return orMissing(x.Verdict)
}

func (j judged) best() string {
	switch j.f.Best {
	case "":
		return "-"
	case leaveIt:
		return leaveIt
	}
	return fmt.Sprintf("%s (%s)", j.f.Best, j.came(j.f.Best))
}

func (j judged) left() string {
	if j.k.Fix.Left == "" {
		return "nothing"
	}
	return j.k.Fix.Left
}

func (j judged) verdict() string {
	switch {
	case j.f.good():
		return "best"
	case !j.f.Known:
		return "not known"
	case j.f.Worse:
		return "**worse**"
	}
	return "**miss**"
}

// rows are those of the forecast that fix made, else of the one before it.
func (j judged) rows() []row {
	if len(j.k.Fix.Rows) > 0 {
		return j.k.Fix.Rows
	}
	return j.k.Look.Rows
}

// forecast is the predicted change of the judged figure as a factor.
func (j judged) forecast(name string) string {
	r, none := rowOf(j.rows(), name), rowOf(j.rows(), leaveIt)
	if name == leaveIt || r == nil || none == nil || r.Judged == nil || none.Judged == nil || *none.Judged <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", *r.Judged / *none.Judged)
}

// came is the measured change of the deciding figure as a factor.
func (j judged) came(name string) string {
	of, leave := j.k.figures(name), j.k.figures(leaveIt)
	if name == leaveIt || of.Rounds == 0 || leave.Rounds == 0 || leave.Median <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", of.Median/leave.Median)
}

func (p *page) misses(all []judged) {
	if len(all) == 0 {
		return
	}
	p.Line("\n## Misses\n")
	p.missed(all)
}

// missed is a line for each miss.
func (p *page) missed(all []judged) {
	for _, j := range all {
		p.Line("- `%s`: fix chose %s; %s", j.c.name, j.chose(), text.Shown(j.f.Why))
	}
}

func (p *page) service(j judged) {
	p.begin(j.c, j.k)
	p.Line("- **forecast** recommends: %s. It took %.1f s of CPU time.", orMissing(strings.TrimSpace(j.k.Look.Answer+" "+j.k.Look.Recommended)), j.k.Look.ForecastCPU)
	p.Line("- **fix**: %s. %s", j.chose(), text.Sanitize(j.k.Fix.Why+j.k.Fix.Failed, 0))
	for _, t := range j.k.Fix.Tries {
		p.Line("  - tried %s: %s (%s), %s", t.Remedy, t.Verdict, text.Shown(t.Why), text.Either(t.Kept, "kept", "undone"))
	}
	p.trialRows(j.k.Fix.Trial)
	p.Line("- **verdict**: %s", strings.TrimSuffix(j.verdict()+": "+j.f.Why, ": "))
	heads := []string{"remedy", "CPUs granted", "forecast (ms)", "forecast", "came", "p99 in ms (rounds)", "p50 in ms", "CPUs used", "others' CPUs", "throttled"}
	if j.k.work() {
		heads = []string{"remedy", "CPUs granted", "seconds for one (rounds)", "came", "CPUs used", "others' CPUs", "throttled"}
	}
	table := p.Table(heads...)
	for _, v := range j.k.Variants {
		j.variant(table, v)
	}
	if notes := j.notes(); len(notes) > 0 {
		p.Line("\n%s", strings.Join(notes, "\n"))
	}
	p.measuredOn(j.k)
}

// trialRows are what a trial measured of each remedy beside its forecast.
func (p *page) trialRows(t *fix.Trial) {
	if t == nil {
		return
	}
	for _, r := range t.Rows {
		measured, forecast := "too few requests", "-"
		if r.MeasuredMs != nil && r.LowMs != nil && r.HighMs != nil {
			measured = fmt.Sprintf("%s ms (%s to %s) of %d", short(*r.MeasuredMs), short(*r.LowMs), short(*r.HighMs), r.Requests)
		}
		if r.ForecastMs != nil {
			forecast = short(*r.ForecastMs) + " ms"
		}
		p.Line("  - %s, %s: %s; forecast %s%s", text.Shown(r.Name), text.Count(r.Rounds, "round"), measured, forecast, text.Shown(strings.TrimSuffix("; "+r.Why, "; ")))
	}
}

// begin writes the head of a case and what explain says of it.
func (p *page) begin(c testCase, k caseRun) {
	p.Line("\n## `%s`, limit %s\n\n%s", c.name, text.CPUs(c.limit), c.truth)
	p.Line("\n- **explain**: %s. %s", orMissing(k.Look.Cause), text.Sanitize(k.Look.Verdict, 0))
}

// measuredOn ends a case.
func (p *page) measuredOn(k caseRun) {
	by := ""
	if k.Commit != "" {
		by = ", commit " + text.Shown(k.Commit)
	}
	p.Line("\n%s, on %s%s; %s of %v each.", k.Machine, k.Day(), by, text.Count(k.Rounds, "round"), k.Each)
}

func (j judged) variant(t *study.Table, v variant) {
	granted := "no bound"
	if v.Granted != nil {
		granted = fmt.Sprintf("%.3g", *v.Granted)
	}
	runs := j.k.runsOf(v.Name)
	if v.Refused != "" && len(runs) == 0 {
		t.Rowf("%s | %s | refused: %s", v.Name, granted, text.Shown(v.Refused))
		return
	}
	used, others := medianOf(runs, func(r oneRun) float64 { return r.UsedCPUs }), medianOf(runs, func(r oneRun) float64 { return r.OthersCPUs })
	throttled, periods := uint64(0), uint64(0)
	for _, r := range runs {
		throttled, periods = throttled+r.Throttled, periods+r.Periods
	}
	name := v.Name
	if name == j.f.Chosen {
		name = "**" + name + "**"
	}
	ofPeriods := fmt.Sprintf("%d of %d", throttled, periods)
	figures := spreadText(j.k.figures(v.Name), j.k.work())
	if j.k.work() {
		t.Row(name, granted, figures, j.came(v.Name), used, others, ofPeriods)
		return
	}
	forecast := "-"
	if r := rowOf(j.rows(), v.Name); r != nil && r.Judged != nil {
		forecast = short(*r.Judged)
		if r.Range != nil {
			forecast += fmt.Sprintf(" (%s to %s)", short(r.Range.Low), short(r.Range.High))
		}
	}
	p50 := "-"
	var medians []float64
	for _, r := range runs {
		if r.P50 != nil {
			medians = append(medians, *r.P50)
		}
	}
	if s := study.SpreadOf(medians); s.Rounds > 0 {
		p50 = short(s.Median)
	}
	t.Row(name, granted, forecast, j.forecast(v.Name), j.came(v.Name), strings.Replace(figures, " ms", "", 1), p50, used, others, ofPeriods)
}

// runsOf returns the measured rounds of a variant.
func (k *caseRun) runsOf(variant string) []oneRun {
	var all []oneRun
	for _, r := range k.Runs {
		if r.Variant == variant && r.Round > 0 {
			all = append(all, r)
		}
	}
	return all
}

// medianOf shows the median of a figure; "-": there is none.
func medianOf(runs []oneRun, of func(oneRun) float64) string {
	var all []float64
	for _, r := range runs {
		all = append(all, of(r))
	}
	if len(all) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", study.SpreadOf(all).Median)
}

// notes are what makes figures of a case worth less, each once.
func (j judged) notes() []string {
	var all []string
	for _, v := range j.k.Variants {
		if n := len(j.k.runsOf(v.Name)); v.Refused != "" && n > 0 && n < j.k.Rounds {
			all = append(all, fmt.Sprintf("- %s: refused in %s: %s", v.Name, text.Count(j.k.Rounds-n, "round"), text.Shown(v.Refused)))
		}
	}
	for _, r := range j.k.Runs {
		if r.clientLate() {
			all = append(all, fmt.Sprintf("- %s, round %d: the client itself was late (p99 %s ms of %s ms)", r.Variant, r.Round, short(*r.LateP99), short(*r.P99)))
		}
		if r.Errors > 0 {
			all = append(all, fmt.Sprintf("- %s, round %d: %d of %d requests failed: %s", r.Variant, r.Round, r.Errors, r.Requests, text.Shown(r.FirstFail)))
		}
	}
	return slices.Compact(all)
}

// mostLate is the share of a p99 that the client's own lateness may have.
const mostLate = 0.2

// clientLate tells whether the client lacked CPU itself, so that the figure is too high.
func (r *oneRun) clientLate() bool {
	return r.LateP99 != nil && r.P99 != nil && *r.LateP99 > mostLate**r.P99
}

func orMissing(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
