package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"

	"github.com/unthrottle/unthrottle/bench/services"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/test/study"
)

//go:embed pages/fix.md
var fixPage string

//go:embed pages/truth.md
var truthPage string

var pageFuncs = template.FuncMap{
	"count": text.Count, "shown": text.Shown, "share": share,
	"leaveIt": func() string { return leaveIt }, "join": func(all []string) string { return strings.Join(all, ", ") },
}

// judged is a case with what was kept of it.
type judged struct {
	C services.Case
	K caseRun
	F finding
}

// done are the cases whose fix can be judged, and a line for each of the others.
func done(testCases []services.Case, runs []caseRun) (found []judged, open []string) {
	for i, c := range testCases {
		switch k := runs[i]; {
		case !k.Complete:
			open = append(open, fmt.Sprintf("`%s`: not measured yet", c.Name))
		case k.Fix == nil:
			open = append(open, fmt.Sprintf("`%s`: fix was not run", c.Name))
		default:
			found = append(found, judged{c, k, judge(c, k)})
		}
	}
	return found, open
}

// choices are what fix did of all cases.
type choices struct {
	All []judged
	// Cases where what fix left in force was the best, where the forecast's choice would have been, and where fix's was worse.
	Left, Forecast, Worse int
	// Tried are the trials, Slow those of their Requests that took longer than twice the judged quantile of leaving it.
	Tried, Slow, Requests int
	// Near of the forecasts that are Fair came within a quarter, and Within their interval.
	Fair, Near, Within int
}

func choicesOf(judgeds []judged) choices {
	n := choices{All: judgeds}
	for _, j := range judgeds {
		n.Left += count(j.F.Known && j.F.LeftIsBest)
		n.Forecast += count(j.F.Known && j.F.ForecastIsBest)
		n.Worse += count(j.F.Worse)
		if t := j.K.Fix.Trial; t != nil {
			n.Tried, n.Slow, n.Requests = n.Tried+1, n.Slow+t.Slow, n.Requests+t.Requests
		}
		for _, e := range scoreOf(j.C, j.K).Effects {
			if e.Fair {
				n.Fair, n.Near, n.Within = n.Fair+1, n.Near+count(e.Close), n.Within+count(e.Within)
			}
		}
	}
	return n
}

// SlowPercent is the share of the trials' requests that were slow.
func (n choices) SlowPercent() float64 { return 100 * float64(n.Slow) / float64(n.Requests) }

// Missed are those with which something is wrong.
func (n choices) Missed() []judged {
	return n.without(func(j judged) bool { return j.F.good() })
}

// Alone are the names of the others.
func (n choices) Alone() string {
	var names []string
	for _, j := range n.without(func(j judged) bool { return j.K.Fix.Left != "" }) {
		names = append(names, "`"+j.C.Name+"`")
	}
	return strings.Join(names, ", ")
}

// Wide are those that were measured without a limit too.
func (n choices) Wide() []judged {
	return n.without(func(j judged) bool {
		return j.C.Healthy || j.K.work() || j.Ms(noLimit) == "-"
	})
}

func (n choices) without(drop func(judged) bool) []judged {
	return slices.DeleteFunc(slices.Clone(n.All), drop)
}

// The variants with more CPU: twice the limit, and only a share of what is free. Exclusive use of a CPU is more where the limit is
// less than one.
const twiceTheLimit, noLimit, exclusive = "raise 2x", forecast.Weight, "pin 1"

// burst tells whether a variant is a burst in that period; "": in the one that it finds.
func burst(period string) func(variant string) bool {
	return func(variant string) bool {
		_, in, _ := strings.Cut(variant, ", period ")
		return strings.HasPrefix(variant, "burst ") && in == period
	}
}

// muchLonger is from how many times the p99 of leaving a service on a burst in 1 s harms it.
const muchLonger = 2

// LongHarms are the services whose p99 a burst in 1 s makes muchLonger, the worst last, and of how many it was measured.
func (n choices) LongHarms() (harms struct {
	Of    int
	Times []string
	// MuchLonger is the threshold.
	MuchLonger int
}) {
	times := map[string]float64{}
	for _, j := range n.Wide() {
		i := slices.IndexFunc(j.K.Variants, func(v variant) bool { return burst("1s")(v.Name) && j.K.figures(v.Name).Rounds > 0 })
		if i < 0 {
			continue
		}
		harms.Of++
		if over := j.K.figures(j.K.Variants[i].Name).Median / j.K.figures(leaveIt).Median; over >= muchLonger {
			times[fmt.Sprintf("`%s` %.1f times", j.C.Name, over)] = over
		}
	}
	harms.MuchLonger = muchLonger
	harms.Times = slices.SortedFunc(maps.Keys(times), func(a, b string) int { return cmp.Compare(times[a], times[b]) })
	return harms
}

// Each are the cells of a service in the table of every remedy.
func (j judged) Each() (cells []string) {
	is := func(variant string) func(string) bool { return func(name string) bool { return name == variant } }
	for _, column := range []func(name string) bool{
		is(leaveIt), burst(""), burst("20ms"), burst("300ms"), burst("1s"),
		is("narrow"), is("period 20ms"), is(exclusive), is(twiceTheLimit), is(noLimit),
	} {
		cell := "-"
		if i := slices.IndexFunc(j.K.Variants, func(v variant) bool { return column(v.Name) }); i >= 0 {
			name := j.K.Variants[i].Name
			if cell = j.Ms(name); name == cmp.Or(j.K.Fix.Left, leaveIt) {
				cell = "**" + cell + "**"
			}
		}
		cells = append(cells, cell)
	}
	return cells
}

// Ms is a variant's p99.
func (j judged) Ms(variant string) string {
	s := j.K.figures(variant)
	if s.Rounds == 0 {
		return "-"
	}
	return short(s.Median)
}

// Chose is fix's answer in words.
func (j judged) Chose() string {
	x := j.K.Fix
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

// markdown is docs/results/fix.md: misses first, and what fix left in force.
func markdown(testCases []services.Case, runs, first []caseRun) string {
	now, open := done(testCases, runs)
	met, _ := done(testCases, first)
	return study.Fill(fixPage, pageFuncs, struct {
		Now, First choices
		Open       []string
	}{choicesOf(now), choicesOf(met), open})
}

// truthMarkdown is docs/results/truth.md: how right explain and forecast are on real services, and look.
func truthMarkdown(testCases []services.Case, runs []caseRun, sampled []sampledLook) string {
	return study.Fill(truthPage, pageFuncs, struct {
		tally
		Sampled   *sampledTally
		Throttled *throttledShares
	}{tallyOf(testCases, runs), sampledOf(testCases, sampled), throttledOf(testCases, runs)})
}

func orMissing(s string) string { return cmp.Or(s, "-") }
