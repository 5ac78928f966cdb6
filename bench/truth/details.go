package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/bench/study"
	"github.com/unthrottle/unthrottle/internal/cure/fix"
	"github.com/unthrottle/unthrottle/internal/text"
)

// details are the rest of both pages.
func details(of []testCase, all, first []caseRun) string {
	var p page
	scores, _ := scoredOf(of, all)
	p.tallyDetails(tallyOf(scores))
	fixed, _ := done(of, all)
	p.Line("\n## Choices\n\nCame is p99 of the client as a factor of leaving it, and the forecast is one. Cost is the share of the trial's requests that took longer than twice the judged quantile of leaving it.")
	p.beside(fixed)
	if met, _ := done(of, first); len(met) > 0 {
		p.Line("\n## Choices, when the program met them for the first time")
		p.beside(met)
	}
	p.causesTable(scores)
	for _, s := range scores {
		p.effects(s)
		if k := s.k; k.Complete && k.Fix != nil {
			p.service(judged{s.c, k, judge(s.c, k)})
		}
		p.measuredOn(s.k)
	}
	return p.String()
}

// beside is a table of what the forecast alone would choose beside what fix chose.
func (p *page) beside(all []judged) {
	t := p.Table("service", "limit", "cause", "forecast alone", "forecast", "came", "fix chose", "came", "best at equal CPU", "fix left in force", "verdict", "trial", "cost", "measured")
	for _, j := range all {
		t.Rowf("`%s` | %g | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s", j.c.name, j.c.limit, orMissing(j.k.Look.Cause), j.byForecast(),
			j.forecast(j.f.ByForecast), j.came(j.f.ByForecast), j.chose(), j.came(j.named()), j.best(), j.left(), j.verdict(), j.trial(), j.cost(), j.k.measuredAt())
	}
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

func (p *page) service(j judged) {
	p.Line("\n- the forecast took %.1f s of CPU time", j.k.Look.ForecastCPU)
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

func (p *page) causesTable(all []scored) {
	p.Line("\n## Causes\n\nThrottled is the share of the periods in the recording, stopped that of its time.")
	t := p.Table("service", "limit", "truth", "said", "guilty", "right", "throttled", "alert", "stopped", "measured")
	for _, j := range all {
		l := j.k.Look
		truth := "none"
		if !j.c.healthy {
			truth = strings.Join(j.c.causes, " or ")
		}
		throttled := "-"
		if l.Periods > 0 {
			throttled = fmt.Sprintf("%.0f %%", 100*float64(l.Throttled)/float64(l.Periods))
		}
		right := text.Either(j.s.Guilty, "yes", "**no**")
		t.Rowf("`%s` | %g | %s | %s | %s | %s | %s | %s | %.0f %% | %s", j.c.name, j.c.limit, truth, orMissing(l.Cause),
			orMissing(shownNames(l.Guilty)), right, throttled, text.Either(j.s.Alert, "yes", "no"), 100*l.Stopped, j.k.measuredAt())
	}
}

func (p *page) effects(j scored) {
	p.begin(j.c, j.k)
	for _, a := range j.k.Look.Advice {
		p.Line("- **advice**: %s", text.Sanitize(a, 0))
	}
	p.followed(followedOf(j.c, j.k))
	p.Line("- **forecast** judges %s and recommends: %s", orMissing(text.Shown(j.k.Look.Judged)), orMissing(strings.TrimSpace(j.k.Look.Answer+" "+j.k.Look.Recommended)))
	var t *study.Table
	if len(j.s.Effects) > 0 {
		t = p.Table("remedy", "p99 forecast (ms)", "p99 came (ms)", "within a quarter", "forecast", "came", "sign")
	}
	for _, e := range j.s.Effects {
		near := "-"
		if e.Fair {
			near = text.Either(e.Close, "yes", text.Either(e.Within, "interval only", "no"))
			switch {
			case e.Mixed:
				near += " (other requests)"
			case !e.Steady:
				near += " (rounds differ)"
			}
		}
		sign := "-"
		if e.Real {
			sign = text.Either(e.Sign, "right", "**wrong**")
		} else if e.Variant != leaveIt {
			sign = "noise"
		}
		t.Rowf("%s | %s (%s to %s) | %s | %s | %.2f | %.2f | %s", e.Variant, short(e.ForecastMs), short(e.Low), short(e.High),
			strings.Replace(spreadText(j.k.figures(e.Variant), false), " ms", "", 1), near, e.Forecast, e.Came, sign)
	}
}

// followed tells what following the advice brought.
func (p *page) followed(f *followed) {
	if f == nil {
		return
	}
	verdict := "no difference beyond the noise"
	switch {
	case f.harmed:
		verdict = "**slower**"
	case f.helped:
		verdict = "faster"
	}
	p.Line("- **advice followed** (`%s`): p99 from %s to %s: %s", f.setting, spreadText(f.before, false), spreadText(f.after, false), verdict)
	for _, name := range slices.Sorted(maps.Keys(f.beside)) {
		p.Line("- p99 of %s: from %s to %s ms", name, short(f.beside[name][0]), short(f.beside[name][1]))
	}
}

// measuredAt is when and with which program a case was measured, for a table.
func (k *caseRun) measuredAt() string {
	if k.Commit == "" {
		return k.Day()
	}
	return k.Day() + " " + text.Shown(k.Commit)
}
