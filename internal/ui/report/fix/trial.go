package fix

import (
	"fmt"
	"io"
	"slices"
	"strings"
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
	fields := []table.Field[fix.TrialRow]{
		{Column: table.Column{Name: "  remedy"},
			Text:  func(r fix.TrialRow) string { return text.Either(r.Kept, "> ", "  ") + text.Shown(r.Name) },
			Color: func(r fix.TrialRow) string { return text.Either(r.Kept, page.Green, "") }},
		{Column: table.Column{Name: q + " ms", Right: true}, Text: func(r fix.TrialRow) string { return milliseconds(r.MeasuredMs) }},
		{Column: table.Column{Name: "95 % of cases", Right: true, Spare: 2}, Text: func(r fix.TrialRow) string {
			if r.LowMs == nil || r.HighMs == nil {
				return figure.Missing
			}
			return text.Milliseconds(*r.LowMs) + " to " + text.Milliseconds(*r.HighMs)
		}},
		{Column: table.Column{Name: "p50 ms", Right: true}, Text: func(r fix.TrialRow) string { return milliseconds(r.P50Ms) }},
		{Column: table.Column{Name: "p90 ms", Right: true, Spare: 3}, Text: func(r fix.TrialRow) string { return milliseconds(r.P90Ms) }},
		{Column: table.Column{Name: forecastOf(t), Right: true, Spare: 1},
			Text: func(r fix.TrialRow) string { return milliseconds(r.ForecastMs) }},
		{Column: table.Column{Name: "stopped", Right: true, Spare: 4}, Text: func(r fix.TrialRow) string { return perSecond(r.StoppedMs) }},
		{Column: table.Column{Name: "others wait", Right: true, Spare: 5},
			Text: func(r fix.TrialRow) string { return perSecond(r.OthersWaitMs) }},
		{Column: table.Column{Name: "rounds", Right: true, Spare: 6}, Text: func(r fix.TrialRow) string { return fmt.Sprint(r.Rounds) }},
		{Column: table.Column{Name: "requests", Right: true, Spare: 7},
			Text: func(r fix.TrialRow) string { return fmt.Sprint(r.Requests) }},
		{Column: table.Column{Least: 10, Fill: true}, Text: func(r fix.TrialRow) string { return text.Shown(r.Why) }},
	}
	if slices.ContainsFunc(t.Rows, func(r fix.TrialRow) bool { return r.SiblingCPUs != nil }) {
		fields = slices.Insert(fields, len(fields)-1, table.Field[fix.TrialRow]{
			Column: table.Column{Name: "sibling", Right: true}, Text: siblingUsed})
	}
	rows := table.Of(fields, t.Rows)
	p := page.New(style, 0, 0)
	p.Line("")
	rows.Fit(p.Columns)
	rows.Write(p, true)
	p.Line("")
	for i, other := range t.Rows[0].Others {
		p.Hanging("", others(t.Rows, i, other))
	}
	p.Paragraph(fmt.Sprintf("%s in turns, %s; %d of %s took longer than twice the %s when it was left.", text.Count(t.Rounds, "round"),
		text.Duration(time.Duration(t.Seconds*float64(time.Second))), t.Slow,
		text.Count(t.Requests, text.Either(t.Of == forecast.OfPool, "run", "request")), q))
	return p.Send(w)
}

// others says what another kind of requests took under each variant.
func others(rows []fix.TrialRow, kind int, left fix.OtherRequests) string {
	q := ""
	if left.Quantile != nil {
		q = ", " + objective.InWords(*left.Quantile)
	}
	var all []string
	for _, r := range rows {
		if kind < len(r.Others) {
			all = append(all, text.Shown(r.Name)+" "+milliseconds(r.Others[kind].MS))
		}
	}
	return fmt.Sprintf("not judged: requests %s%s in ms: %s", text.Shown(left.Kind), q, strings.Join(all, ", "))
}

// forecastOf is the head of the forecasts: they may be of another quantile than turns tell.
func forecastOf(t *fix.Trial) string {
	if t.ForecastQuantile == nil || *t.ForecastQuantile == t.Quantile {
		return "forecast"
	}
	return "forecast " + objective.InWords(*t.ForecastQuantile)
}

// siblingUsed is what the container used that cap holds.
func siblingUsed(r fix.TrialRow) string {
	if r.SiblingCPUs == nil {
		return figure.Missing
	}
	return fmt.Sprintf("%.3g CPUs", *r.SiblingCPUs)
}

// perSecond is a time for each second, which may be missing.
func perSecond(ms *float64) string {
	if ms == nil {
		return figure.Missing
	}
	return text.Milliseconds(*ms) + " ms/s"
}

// milliseconds is a figure that may be missing.
func milliseconds(ms *float64) string {
	if ms == nil {
		return figure.Missing
	}
	return text.Milliseconds(*ms)
}
