package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/bench/services"
	"github.com/unthrottle/unthrottle/internal/stats"
	"github.com/unthrottle/unthrottle/test/study"
)

// figures of a variant that decide: p99s in ms, or seconds for a unit of work.
func (k *caseRun) figures(variant string) study.Spread {
	var values []float64
	for _, r := range k.Runs {
		switch {
		case r.Variant != variant || r.Round == 0:
		case r.Done != nil && *r.Done > 0:
			values = append(values, 1 / *r.Done)
		case r.P99 != nil:
			values = append(values, *r.P99)
		}
	}
	return study.SpreadOf(values)
}

// less tells whether a is lower than b beyond the noise: the rounds do not overlap, and
// the medians differ by what counts. work: the figures are no latencies.
func less(a, b study.Spread, work bool) bool {
	return a.High < b.Low && (stats.Gains(b.Median, a.Median) || work && a.Median < b.Median*(1-stats.LeastGain))
}

// leastExtra is how many CPUs beyond the limit count as more than the limit.
const leastExtra = 0.01

// grantsNoMore tells whether a variant grants no more CPU than the case's limit.
func grantsNoMore(c services.Case, v variant) bool {
	return v.Granted != nil && *v.Granted <= c.Limit+leastExtra
}

// finding is what a case shows about fix's choice.
type finding struct {
	// Chosen is the variant that fix's choice comes to, Best the lowest at equal CPU.
	Chosen, Best string
	// Known: both were measured, so that the next three mean something.
	Known bool
	// IsBest: no variant at equal CPU is lower than the chosen one beyond the noise.
	IsBest bool
	// LeftIsBest says the same of what fix left in force after its own verdict, ForecastIsBest of what the forecast
	// alone recommends, ByForecast.
	LeftIsBest, ForecastIsBest bool
	ByForecast                 string
	// Worse: the chosen one, or what fix left in force, is higher than leaving it
	// beyond the noise.
	Worse bool
	// Why says what differs, where something does.
	Why string
}

// judge compares what fix chose with every variant that grants no more CPU than the
// limit. An answer without a remedy at equal CPU comes to leaving it, and so does a fix that failed.
func judge(c services.Case, k caseRun) finding {
	if k.Fix == nil {
		return finding{Why: "fix was not run"}
	}
	f := finding{Chosen: leaveIt}
	if k.Fix.Applied {
		f.Chosen = k.Fix.Chosen
	}
	var variants []variant
	for _, v := range k.Variants {
		if grantsNoMore(c, v) && k.figures(v.Name).Rounds > 0 {
			variants = append(variants, v)
		}
	}
	chosen, leave := k.figures(f.Chosen), k.figures(leaveIt)
	if chosen.Rounds == 0 || leave.Rounds == 0 || len(variants) == 0 {
		if f.Why = "nothing was measured of " + f.Chosen; k.Fix.Failed != "" {
			f.Why = k.Fix.whyFailed()
		}
		return f
	}
	work := k.work()
	best := slices.MinFunc(variants, func(a, b variant) int { return cmp.Compare(k.figures(a.Name).Median, k.figures(b.Name).Median) })
	f.Known, f.Best = true, best.Name
	none := func(lower study.Spread) bool {
		return !slices.ContainsFunc(variants, func(v variant) bool { return less(k.figures(v.Name), lower, work) })
	}
	left := leave
	if k.Fix.Left != "" {
		left = k.figures(k.Fix.Left)
	}
	f.IsBest, f.LeftIsBest = none(chosen), left.Rounds > 0 && none(left)
	f.ByForecast = leaveIt
	if k.Look.Answer == "remedy" {
		f.ByForecast = k.Look.Recommended
	}
	forecast := k.figures(f.ByForecast)
	f.ForecastIsBest = forecast.Rounds > 0 && none(forecast)
	if c.Healthy { // another remedy may win by the neighbours' load, and none is called for
		f.Best, f.IsBest, f.LeftIsBest, f.ForecastIsBest = leaveIt, f.Chosen == leaveIt, k.Fix.Left == "", f.ByForecast == leaveIt
	}
	f.Worse = less(leave, chosen, work) || left.Rounds > 0 && less(leave, left, work)
	f.Why = f.differs(c, k, work)
	return f
}

// whyFailed is the error of a fix that failed: the last line of what it printed.
func (x *fixed) whyFailed() string {
	lines := strings.Split(strings.TrimSpace(x.Failed), "\n")
	return "fix failed: " + strings.TrimPrefix(lines[len(lines)-1], "unthrottle: ")
}

// differs says in a sentence what is wrong; "": nothing is.
func (f *finding) differs(c services.Case, k caseRun, work bool) string {
	var all []string
	if k.Fix.Failed != "" {
		all = append(all, k.Fix.whyFailed())
	}
	if f.Worse {
		all = append(all, fmt.Sprintf("worse than leaving it (%s, leaving it %s)",
			spreadText(k.figures(f.Chosen), work), spreadText(k.figures(leaveIt), work)))
	}
	if !f.IsBest && !c.Healthy {
		all = append(all, fmt.Sprintf("%s is better (%s, %s %s)", f.Best, spreadText(k.figures(f.Best), work), f.Chosen,
			spreadText(k.figures(f.Chosen), work)))
	}
	if f.IsBest && !f.LeftIsBest {
		all = append(all, fmt.Sprintf("fix undid it, and it helps (%s, leaving it %s)",
			spreadText(k.figures(f.Chosen), work), spreadText(k.figures(leaveIt), work)))
	}
	if c.Healthy && f.Chosen != leaveIt {
		all = append(all, "nothing was wrong, and fix changed it")
	}
	return strings.Join(all, "; ")
}

// good tells whether nothing is wrong with the choice.
func (f *finding) good() bool { return f.Known && f.IsBest && !f.Worse && f.Why == "" }

// work tells whether the case counts work instead of latencies.
func (k *caseRun) work() bool {
	return slices.ContainsFunc(k.Runs, func(r oneRun) bool { return r.Done != nil })
}

// text shows the median and the rounds.
func spreadText(s study.Spread, work bool) string {
	if s.Rounds == 0 {
		return "-"
	}
	if work {
		return fmt.Sprintf("%.2f s each (%.2f to %.2f)", s.Median, s.Low, s.High)
	}
	return fmt.Sprintf("%s ms (%s to %s)", short(s.Median), short(s.Low), short(s.High))
}

// short shows three digits or so.
func short(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
