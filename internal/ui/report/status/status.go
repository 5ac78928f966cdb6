// Package status writes what is in force, what has ended, and which CPUs are shared.
package status

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/verdict"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/changes"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/figure"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/table"
	"github.com/unthrottle/unthrottle/internal/widthcap"
)

// Write writes the transactions in force, and the settings that other programs changed.
// now is for ages.
func Write(w io.Writer, inForce []txn.InForce, drift []txn.DriftItem, now time.Time, style page.Style) error {
	var b strings.Builder
	if len(inForce) == 0 {
		b.WriteString("nothing is in force\n")
	} else {
		by := func(f txn.InForce) string { return text.Shown(f.By) }
		same := func(f txn.InForce) txn.InForce { return f }
		fields := append(columns(same, now),
			table.Field[txn.InForce]{Column: table.Column{Name: "BY", Fill: true, Least: leastLast}, Text: by})
		fitted(&b, table.Of(fields, inForce), style)
	}
	for _, f := range inForce {
		if f.Stops != nil {
			b.WriteString(stops(f))
		}
	}
	said := map[string]bool{} // once for all that share a trial
	for _, f := range inForce {
		if f.Trial.Lost() && !said[f.Trial.Of] {
			said[f.Trial.Of] = true
			b.WriteString(lostTrial(f))
		}
	}
	for _, f := range inForce {
		if f.Narrow != nil {
			b.WriteString(narrow(f))
		}
	}
	for _, d := range drift {
		if d.File == widthcap.File && !d.Gone && d.Current == "" {
			continue // narrow says so
		}
		why := "was changed by another program to " + text.Quoted(d.Current)
		if d.Gone {
			why = "is gone"
		}
		fmt.Fprintf(&b, "drift: %s %s, which we set to %s, %s\n", text.Shown(d.Path), d.File, text.Quoted(d.Want), why)
	}
	return style.Send(w, b.String())
}

// lostTrial is a line about a transaction that nothing will judge any more.
func lostTrial(f txn.InForce) string {
	return fmt.Sprintf("trial: %s of %s (%s) was on trial, and %s: 'unthrottle restore' puts it back, and so does the next command "+
		"that writes\n", f.Remedy, target(f), f.ID, f.Trial.Why())
}

// History writes the transactions that ended, newest first, with expected and measured
// effect.
func History(w io.Writer, gone []txn.Past, now time.Time, style page.Style) error {
	var b strings.Builder
	if len(gone) == 0 {
		b.WriteString("no history yet\n")
	} else {
		fields := append(columns(func(p txn.Past) txn.InForce { return p.InForce }, now),
			table.Field[txn.Past]{Column: table.Column{Name: "FOR", Spare: 2},
				Text: func(p txn.Past) string { return duration(p.Until.Sub(p.Since)) }},
			table.Field[txn.Past]{Column: table.Column{Name: "ENDED", Fill: true, Least: leastLast},
				Text: func(p txn.Past) string { return text.Shown(p.Reason) }})
		fitted(&b, table.Of(fields, gone), style)
	}
	return style.Send(w, b.String())
}

// figures name those of a txn.Accuracy.
var figures = map[string]string{"pool_p99_ms": "p99 of the judged pool",
	"requests_p99_ms": "p99 of the judged requests", "p99_ms": "p99", "stopped_per_second": "stopped time", "used_cpus": "CPUs used"}

// Forecasts writes a line for each remedy and figure: how near its forecasts came.
func Forecasts(w io.Writer, accuracies []txn.Accuracy, style page.Style) error {
	var b strings.Builder
	for _, a := range accuracies {
		fmt.Fprintf(&b, "forecasts: %s, %s: %d of %d came within the interval", a.Remedy, figures[a.Figure], a.Within, a.Measured)
		if a.Ratio != nil {
			fmt.Fprintf(&b, "; at the median %.3g times the forecast", *a.Ratio)
		}
		b.WriteByte('\n')
	}
	return style.Send(w, b.String())
}

// leastLast is the least width of the last column, which goes on below.
const leastLast = 12

// columns are those that status and history share; of is the transaction.
func columns[T any](of func(T) txn.InForce, now time.Time) []table.Field[T] {
	show := func(c table.Column, text func(txn.InForce) string) table.Field[T] {
		return table.Field[T]{Column: c, Text: func(v T) string { return text(of(v)) }}
	}
	fields := []table.Field[T]{
		show(table.Column{Name: "TARGET", Least: 12, Tail: true}, target),
		show(table.Column{Name: "REMEDY"}, func(f txn.InForce) string { return f.Remedy }),
		show(table.Column{Name: "SINCE"}, func(f txn.InForce) string { return age(now.Sub(f.Since)) }),
		show(table.Column{Name: "VERDICT"}, func(f txn.InForce) string { return f.Verdict }),
		show(table.Column{Name: "STOPPED BEFORE"}, func(f txn.InForce) string { return before(f.Outcome) }),
		show(table.Column{Name: "EXPECTED", Spare: 1}, func(f txn.InForce) string { return expected(f.Expected) }),
		show(table.Column{Name: "AFTER"}, func(f txn.InForce) string { return after(f.Outcome) }),
	}
	fields[3].Color = func(v T) string { return verdictColor(of(v).Verdict) }
	return fields
}

// verdictColor is green for what helped, red for what harmed, yellow for what nothing judged.
func verdictColor(of string) string {
	switch of {
	case verdict.Better:
		return page.Green
	case verdict.Worse:
		return page.Red
	}
	return page.Amber
}

// fitted writes a table in the style.
func fitted(b *strings.Builder, t *table.Table, style page.Style) {
	p := page.New(style, 0, 0)
	t.Fitted(p)
	b.WriteString(p.String())
}

func target(f txn.InForce) string {
	if f.Name != "" {
		return text.Shown(f.Name)
	}
	return text.Shown(f.Target)
}

func before(o *txn.Outcome) string {
	if o == nil {
		return "-"
	}
	return changes.Stopped(o.Before)
}

func after(o *txn.Outcome) string {
	if o == nil {
		return "-"
	}
	return changes.Stopped(o.After)
}

// stops is a line about how long a container has been stopped since its remedy was judged.
func stops(f txn.InForce) string {
	s := f.Stops
	line := fmt.Sprintf("stops: %s: %s over %s since %s was judged", target(f), figure.PerSecond(&s.StoppedPerSecondLow, &s.StoppedPerSecondHigh),
		duration(time.Duration(s.Seconds*float64(time.Second))), f.Remedy)
	if s.Longer {
		line += ", longer than before it: 'unthrottle restore' undoes it"
	}
	return line + "\n"
}

func expected(e *txn.Expected) string {
	if e == nil {
		return "-"
	}
	return figure.PerSecond(e.StoppedPerSecondLow, e.StoppedPerSecondHigh)
}

// age is rounded to seconds: nothing here is exact.
func age(d time.Duration) string { return duration(d) + " ago" }

func duration(d time.Duration) string { return text.Duration(max(0, d.Round(time.Second))) }
