package confusion

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/load/provoke"
	"github.com/unthrottle/unthrottle/test/study"
)

// order of the rows and columns. A cause that is not in it comes last.
var order = []diagnose.Cause{
	diagnose.Burst, diagnose.Pool, diagnose.Shortage, diagnose.TinyLimit, diagnose.Ancestor, diagnose.Inside,
	diagnose.Realtime, diagnose.Debt, diagnose.Neighbours, diagnose.Cpuset, diagnose.SliceWaste, diagnose.Scheduler, diagnose.None,
}

// About says what the results are of.
type About struct {
	Kernel string
	CPUs   int // that each mix may use
	Mixes  int // that were to be run
}

// Score is how many of the scored mixes were named right.
func Score(results []Result) (right, scored int) {
	for _, r := range results {
		if r.Unscored() != "" {
			continue
		}
		scored++
		if r.right() {
			right++
		}
	}
	return right, scored
}

//go:embed page.md
var pageText string

// page is what its template is filled in with.
type page struct {
	All                          []Result
	About                        About
	Right, Scored                int
	Lead, LeastHarm, MostForeign float64
}

// Markdown is the page: the score, the matrix, and why other mixes are not scored.
func Markdown(results []Result, about About) string {
	right, scored := Score(results)
	return study.Fill(pageText, template.FuncMap{"percent": func(share float64) float64 { return 100 * share }},
		page{results, about, right, scored, Lead, leastHarm, provoke.MostForeign})
}

// Share is the part that was named right; "": none is scored.
func (p page) Share() string {
	if p.Scored == 0 {
		return ""
	}
	return fmt.Sprintf(" (%.0f %%)", 100*float64(p.Right)/float64(p.Scored))
}

// causesIn are the causes that occur, in their order.
func causesIn(results []Result, pick func(Result) diagnose.Cause) []diagnose.Cause {
	var found []diagnose.Cause
	for _, r := range results {
		if c := pick(r); r.Unscored() == "" && !slices.Contains(found, c) {
			found = append(found, c)
		}
	}
	place := func(c diagnose.Cause) int {
		if i := slices.Index(order, c); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortFunc(found, func(a, b diagnose.Cause) int { return cmp.Or(place(a)-place(b), cmp.Compare(a, b)) })
	return found
}

func truth(r Result) diagnose.Cause {
	c, _ := r.Truth()
	return c
}

// Matrix are the rows of the table, its head first.
func (p page) Matrix() []string {
	rows, columns := causesIn(p.All, truth), causesIn(p.All, Result.First)
	if len(rows) == 0 {
		return nil
	}
	heads := []any{"truth \\ named first"}
	for _, c := range columns {
		heads = append(heads, c)
	}
	table := []string{study.Row(append(heads, "right")...), "|---|" + strings.Repeat("---:|", len(columns)+1)}
	for _, row := range rows {
		cells := []any{row}
		sum, right := 0, 0
		counts := map[diagnose.Cause]int{}
		for _, r := range p.All {
			if r.Unscored() != "" || truth(r) != row {
				continue
			}
			sum++
			counts[r.First()]++
			if r.right() {
				right++
			}
		}
		for _, c := range columns {
			text := ""
			if n := counts[c]; n > 0 {
				text = fmt.Sprint(n)
			}
			if c == row {
				text = "**" + cmp.Or(text, "0") + "**"
			}
			cells = append(cells, text)
		}
		table = append(table, study.Row(append(cells, fmt.Sprintf("%d of %d", right, sum))...))
	}
	return table
}

// Unscored is how many mixes are not scored for which reason.
func (p page) Unscored() string {
	counts := map[string]int{}
	for _, r := range p.All {
		if why := r.Unscored(); why != "" {
			counts[why]++
		}
	}
	var parts []string
	for why, n := range counts {
		parts = append(parts, fmt.Sprintf("%s: %d", why, n))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
