package ls

import (
	"cmp"
	"fmt"
	"slices"

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
