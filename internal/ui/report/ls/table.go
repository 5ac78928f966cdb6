package ls

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
)

// color marks a row by its stopped time.
func color(o *observe.Observation) string {
	switch stopped := stopped(o); {
	case stopped >= alarm:
		return page.Red
	case stopped >= noticed:
		return page.Amber
	case stopped >= 0:
		return page.Green
	}
	return "" // not measured
}

// maxFootnotes bounds the footnotes; hosts where nothing can be read have one for each container.
const maxFootnotes = 8

// footnotes says what was not measured and why, each reason once with the number of containers it holds for.
func footnotes(p *page.Page, observations []observe.Observation) {
	counts := map[string]int{}
	var notes []string
	for _, o := range observations {
		for _, n := range o.NotMeasured {
			if counts[n]++; counts[n] == 1 {
				notes = append(notes, n)
			}
		}
	}
	slices.SortStableFunc(notes, func(a, b string) int { return cmp.Compare(counts[b], counts[a]) })
	for i, n := range notes {
		if i == 0 {
			p.WriteString("\nNot measured:\n")
		}
		if i == maxFootnotes {
			fmt.Fprintf(p, "  and %d other reasons: see -o json\n", len(notes)-i)
			return
		}
		fmt.Fprintf(p, "  %s (%s)\n", shownText(n), countText(counts[n], len(observations)))
	}
}

func countText(n, of int) string {
	if n == of && of > 1 {
		return "all containers"
	}
	return text.Count(n, "container")
}

// enoughPeriods is how many periods of the longest quota a window needs: in fewer, when a stop began and ended is much of what there is.
const enoughPeriods = 5

// fewPeriods says how long to look where the window has few periods of a container's quota.
func fewPeriods(p *page.Page, observations []observe.Observation) {
	of, longest := 0, time.Duration(0)
	for _, o := range observations {
		period := time.Duration(0)
		for _, l := range o.Levels {
			if l.Limit.Limited() {
				period = max(period, l.Limit.Period)
			}
		}
		if o.Window > 0 && o.Window < enoughPeriods*period {
			of, longest = of+1, max(longest, period)
		}
	}
	if of > 0 {
		fmt.Fprintf(p, "\nFew periods: the window has fewer than %d of the quota of %s, which is refilled every %s: --for %s tells more\n",
			enoughPeriods, text.Count(of, "container"), text.Duration(longest), 2*enoughPeriods*longest)
	}
}
