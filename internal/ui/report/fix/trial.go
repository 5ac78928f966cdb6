package fix

import (
	"fmt"
	"io"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/fix"
	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/figure"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/table"
)

// Trial writes what was measured of each remedy in turns, beside what was forecast of it.
func Trial(w io.Writer, t *fix.Trial, style page.Style) error {
	q := objective.InWords(t.Quantile)
	rows := table.New([]table.Column{
		{Name: "  remedy"}, {Name: q + " ms", Right: true}, {Name: "95 % of cases", Right: true, Spare: 2}, {Name: "p50 ms", Right: true}, {Name: "p90 ms", Right: true, Spare: 3},
		{Name: "forecast", Right: true, Spare: 1}, {Name: "rounds", Right: true, Spare: 4}, {Name: "requests", Right: true, Spare: 5}, {Name: "", Least: 10, Fill: true},
	})
	for _, r := range t.Rows {
		mark, interval, color := "  ", figure.Missing, ""
		if r.Kept {
			mark, color = "> ", page.Green
		}
		if r.LowMs != nil && r.HighMs != nil {
			interval = text.Milliseconds(*r.LowMs) + " to " + text.Milliseconds(*r.HighMs)
		}
		rows.Add([]table.Cell{{Text: mark + text.Shown(r.Name), Color: color}, {Text: milliseconds(r.MeasuredMs)}, {Text: interval}, {Text: milliseconds(r.P50Ms)}, {Text: milliseconds(r.P90Ms)},
			{Text: milliseconds(r.ForecastMs)}, {Text: fmt.Sprint(r.Rounds)}, {Text: fmt.Sprint(r.Requests)}, {Text: text.Shown(r.Why)}})
	}
	p := page.New(style, 0, 0)
	p.Line("")
	rows.Fit(p.Columns)
	rows.Write(p, true)
	p.Line("")
	p.Paragraph(fmt.Sprintf("%s in turns, %s; %d of %s took longer than twice the %s when it was left.", text.Count(t.Rounds, "round"),
		text.Duration(time.Duration(t.Seconds*float64(time.Second))), t.Slow, text.Count(t.Requests, text.Either(t.Of == forecast.OfPool, "run", "request")), q))
	return p.Send(w)
}

// milliseconds is a figure that may be missing.
func milliseconds(ms *float64) string {
	if ms == nil {
		return figure.Missing
	}
	return text.Milliseconds(*ms)
}
