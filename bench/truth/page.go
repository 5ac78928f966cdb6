package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/bench/study"
	"github.com/unthrottle/unthrottle/internal/text"
)

// page is a page of results under way.
type page struct{ study.Page }

// judged is a case with what was kept of it.
type judged struct {
	c testCase
	k caseRun
	f finding
}

// done are the cases whose fix can be judged, and a line for each of the others.
func done(of []testCase, all []caseRun) (found []judged, open []string) {
	for i, c := range of {
		switch k := all[i]; {
		case k.NotRun != "":
			open = append(open, fmt.Sprintf("- `%s`: not run: %s", c.name, text.Shown(k.NotRun)))
		case !k.Complete:
			open = append(open, fmt.Sprintf("- `%s`: not measured yet", c.name))
		case k.Fix == nil:
			open = append(open, fmt.Sprintf("- `%s`: fix was not run", c.name))
		default:
			found = append(found, judged{c, k, judge(c, k)})
		}
	}
	return found, open
}

// missedOf are those with which something is wrong.
func missedOf(all []judged) []judged {
	return slices.DeleteFunc(slices.Clone(all), func(j judged) bool { return j.f.good() })
}

// markdown is docs/results/fix.md: misses first, and what fix left in force.
func markdown(of []testCase, all, first []caseRun) string {
	var p page
	judged, open := done(of, all)
	p.Line(`# Does fix choose the best remedy for real services?

A case is a real program from Debian's packages in a cgroup with a limit, and a client outside that measures from the intended time of each
request. ` + "`fix --yes`" + ` ran on it, was undone, and then every remedy was applied for real, in rounds that also leave the service alone.`)
	p.summary(judged)
	if missed := missedOf(judged); len(missed) > 0 {
		p.Line("\n## Misses\n")
		p.missed(missed)
	}
	p.first(of, first)
	if len(open) > 0 {
		p.Line("\n## Without fix\n\n%s", strings.Join(open, "\n"))
	}
	p.leftTable(judged)
	p.eachTable(judged)
	p.Rest()
	p.Text(details(of, all, first))
	return p.String()
}

func (p *page) summary(all []judged) {
	n, slow, requests, tried := choicesOf(all), 0, 0, 0
	for _, j := range all {
		if t := j.k.Fix.Trial; t != nil {
			slow, requests, tried = slow+t.Slow, requests+t.Requests, tried+1
		}
	}
	p.Line("\n## In short\n\nOf %s what fix left in force was the best at equal CPU in %d, and worse than leaving the service alone in %d. The forecast alone would have chosen the best in %d.",
		text.Count(len(all), "service"), n.left, n.worse, n.forecast)
	if requests > 0 {
		p.Line("Fix tried remedies in turns on %d; %.2f %% of the requests in these trials took longer than twice the judged quantile of leaving it.", tried, 100*float64(slow)/float64(requests))
	}
	p.Line("\nThe best: no remedy that grants no more CPU than the limit has all its rounds below all rounds of the one that is in force, and a median lower by a tenth and half a\nmillisecond. Of a healthy service, leaving it is the best.")
}

// leftTable has the services that fix changed.
func (p *page) leftTable(all []judged) {
	var alone []string
	p.Line("\n## What fix left in force\n\nBeside it what the forecast alone would choose. Milliseconds are the median of the rounds' p99, by the client.")
	t := p.Table("service", "limit", "p99 alone", "by forecast", "p99", "in force", "p99", "day")
	for _, j := range all {
		if j.k.Fix.Left == "" {
			alone = append(alone, "`"+j.c.name+"`")
			continue
		}
		t.Rowf("`%s` | %g | %s | %s | %s | %s | %s | %s", j.c.name, j.c.limit, j.ms(leaveIt), j.f.ByForecast, j.ms(j.f.ByForecast), j.k.Fix.Left, j.ms(j.k.Fix.Left), j.k.At.Format("01-02"))
	}
	if len(alone) > 0 {
		p.Line("\nLeft alone: %s.", strings.Join(alone, ", "))
	}
}

// eachTable has every remedy of the services where also a larger limit and none were measured.
func (p *page) eachTable(all []judged) {
	all = slices.DeleteFunc(slices.Clone(all), func(j judged) bool {
		return j.c.healthy || j.k.work() || j.ms(twiceTheLimit) == "-" || j.ms(noLimit) == "-"
	})
	if len(all) == 0 {
		return
	}
	p.Line("\n## Each remedy, in ms of p99\n\nServices whose p99 was measured at twice the limit and without one as well. Bold is what fix left in force; alone, where it left nothing.")
	columns := []struct {
		head    string
		variant func(name string) bool
	}{
		{"alone", func(name string) bool { return name == leaveIt }},
		{"burst", func(name string) bool { return strings.HasPrefix(name, "burst ") && !strings.Contains(name, ",") }},
		{"burst, period", func(name string) bool { return strings.HasPrefix(name, "burst ") && strings.Contains(name, ",") }},
		{"narrow", func(name string) bool { return name == "narrow" }},
		{"period 20 ms", func(name string) bool { return name == "period 20ms" }},
		{"twice the limit", func(name string) bool { return name == twiceTheLimit }},
		{"no limit", func(name string) bool { return name == noLimit }},
	}
	heads := []string{"service", "limit"}
	for _, c := range columns {
		heads = append(heads, c.head)
	}
	t := p.Table(heads...)
	for _, j := range all {
		cells := []any{"`" + j.c.name + "`", j.c.limit}
		for _, c := range columns {
			cell := "-"
			if i := slices.IndexFunc(j.k.Variants, func(v variant) bool { return c.variant(v.Name) }); i >= 0 {
				name := j.k.Variants[i].Name
				if cell = j.ms(name); name == cmp.Or(j.k.Fix.Left, leaveIt) {
					cell = "**" + cell + "**"
				}
			}
			cells = append(cells, cell)
		}
		t.Row(cells...)
	}
}

// The variants with more CPU: twice the limit, and only a share of what is free.
const twiceTheLimit, noLimit = "raise 2x", "weight"

// ms is a variant's p99.
func (j judged) ms(variant string) string {
	s := j.k.figures(variant)
	if s.Rounds == 0 {
		return "-"
	}
	return short(s.Median)
}

// first are the services that were measured once before any rule was changed for them.
func (p *page) first(of []testCase, first []caseRun) {
	all, _ := done(of, first)
	fair, near, within := 0, 0, 0
	for _, j := range all {
		for _, e := range scoreOf(j.c, j.k).Effects {
			if e.Fair {
				fair, near, within = fair+1, near+count(e.Close), within+count(e.Within)
			}
		}
	}
	if len(all) == 0 {
		return
	}
	n := choicesOf(all)
	p.Line("\n## Services that the program met for the first time")
	p.Line("\nThese were added with their load and truth before anybody ran the program on them, and measured once. What fix left in force was the best in %d of %d, and worse than\nleaving it in %d. The forecast alone would have chosen the best in %d.", n.left, len(all), n.worse, n.forecast)
	p.Line("Of %d forecasts of p99 %d came within a quarter, and %d within the interval of that day.", fair, near, within)
	if missed := missedOf(all); len(missed) > 0 {
		p.Line("")
		p.missed(missed)
	}
}

// choices count services: where what fix left in force was the best, where the forecast's choice would have been, and where fix's was worse.
type choices struct{ left, forecast, worse int }

func choicesOf(all []judged) (n choices) {
	for _, j := range all {
		n.left, n.forecast, n.worse = n.left+count(j.f.Known && j.f.LeftIsBest), n.forecast+count(j.f.Known && j.f.ForecastIsBest), n.worse+count(j.f.Worse)
	}
	return n
}

// byForecast is what the forecast alone would choose, marked where another remedy is better.
func (j judged) byForecast() string {
	if j.f.Known && !j.f.ForecastIsBest {
		return j.f.ByForecast + " (**miss**)"
	}
	return orMissing(j.f.ByForecast)
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

// missed is a line for each miss.
func (p *page) missed(all []judged) {
	for _, j := range all {
		p.Line("- `%s`: fix chose %s; %s", j.c.name, j.chose(), text.Shown(j.f.Why))
	}
}

func orMissing(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
