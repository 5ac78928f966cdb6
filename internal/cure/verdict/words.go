package verdict

import (
	"fmt"
	"math"

	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/stats"
	"github.com/unthrottle/unthrottle/internal/text"
)

// why says what a decision rests on.
func (d decision) why(e Evidence, unit string, harmed []string) string {
	switch d.grounds {
	case byNeighbours:
		return "these containers, whose CPUs shrank or are shared, are now stopped longer or use less than before: " + text.Names(harmed)
	case byNoSource:
		return "no latencies of the user's own were given (--slo), so the effect on tails is not known"
	case byNoAnswer:
		return "the latency source gave nothing for the time after the change"
	case byFewBefore:
		return tooFew("before", len(e.Before), e.Quantile)
	case byFewAfter:
		return tooFew("after", len(e.After), e.Quantile)
	case byStaleAnswer:
		return e.notFresh()
	case byLookedBack:
		return e.looksBack()
	}
	why := fmt.Sprintf("%s from %s to %s, longest from %.4g %s to %.4g %s, %d and %d samples", objective.InWords(e.Quantile),
		d.before.words(unit), d.after.words(unit), d.before.Longest, unit, d.after.Longest, unit, d.before.Samples, d.after.Samples)
	if d.faster {
		why += fmt.Sprintf("; a backlog of the same work takes %.2g of the time", d.factor)
	}
	return why
}

func (s *Spread) words(unit string) string {
	return fmt.Sprintf("%.4g %s (%.4g to %.4g)", s.Value, unit, s.Low, s.High)
}

func tooFew(when string, n int, q float64) string {
	says := fmt.Sprintf("%d samples %s are too few to tell %s: at least %d are needed; ", n, when, objective.InWords(q), stats.Need(q))
	if lower, ok := stats.Tells(n, q); ok {
		says += fmt.Sprintf("ask for %s, which needs %d (--slo), or ", objective.InWords(lower), stats.Need(lower))
	}
	return says + longer(n, q)
}

// mostTimes is the factor up to which a longer look is told in numbers.
const mostTimes = 20

// longer says how much longer to look for enough samples, where n are too few.
func longer(n int, q float64) string {
	if times := math.Ceil(float64(stats.Need(q)) / float64(n)); times <= mostTimes {
		return fmt.Sprintf("look %.0f times as long (--for)", times)
	}
	return "look longer (--for)"
}

// String shows a neighbour's figures.
func (n Neighbour) String() string {
	return fmt.Sprintf("%s: stopped %s of each second, now %s; CPUs used %s, now %s", text.Name(n.Name),
		interval(n.Before.StoppedLow, n.Before.StoppedHigh), interval(n.After.StoppedLow, n.After.StoppedHigh),
		figure(n.Before.UsedCPUs), figure(n.After.UsedCPUs))
}

func interval(low, high *float64) string {
	switch {
	case low == nil || high == nil:
		return "-"
	case *low == *high:
		return fmt.Sprintf("%.0f ms", *low*1000)
	}
	return fmt.Sprintf("%.0f to %.0f ms", *low*1000, *high*1000)
}

func figure(x *float64) string {
	if x == nil {
		return "-"
	}
	return fmt.Sprintf("%.3g", *x)
}
