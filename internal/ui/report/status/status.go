// Package status writes what is in force, what has ended, and which CPUs are shared.
package status

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/txn"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/changes"
	"github.com/unthrottle/unthrottle/internal/ui/report/figure"
	"github.com/unthrottle/unthrottle/internal/ui/report/table"
)

// Write writes the transactions in force, and the settings that other programs changed.
// now is for ages.
func Write(w io.Writer, all []txn.InForce, drift []txn.DriftItem, now time.Time) error {
	var b strings.Builder
	if len(all) == 0 {
		b.WriteString("nothing is in force\n")
	} else {
		t := table.Left(&b)
		fmt.Fprintln(t, "TARGET\tREMEDY\tSINCE\tVERDICT\tSTOPPED/s BEFORE\tEXPECTED\tAFTER\tBY")
		for _, f := range all {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", target(f), f.Remedy, age(now.Sub(f.Since)), f.Verdict,
				before(f.Outcome), expected(f.Expected), after(f.Outcome), text.Shown(f.By))
		}
		t.Flush()
	}
	for _, f := range all {
		b.WriteString(lostTrial(f))
	}
	for _, d := range drift {
		why := "was changed by another program to " + text.Quoted(d.Current)
		if d.Gone {
			why = "is gone"
		}
		fmt.Fprintf(&b, "drift: %s %s, which we set to %s, %s\n", text.Shown(d.Path), d.File, text.Quoted(d.Want), why)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// lostTrial is a line about a transaction that nothing will judge any more; "" for any other.
func lostTrial(f txn.InForce) string {
	if !f.Trial.Lost() {
		return ""
	}
	return fmt.Sprintf("trial: %s of %s (%s) was on trial, and %s: 'unthrottle restore' puts it back, and so does the next command "+
		"that writes\n", f.Remedy, target(f), f.ID, f.Trial.Why())
}

// History writes the transactions that ended, newest first, with expected and measured
// effect.
func History(w io.Writer, all []txn.Past, now time.Time) error {
	var b strings.Builder
	if len(all) == 0 {
		b.WriteString("no history yet\n")
	} else {
		t := table.Left(&b)
		fmt.Fprintln(t, "TARGET\tREMEDY\tSINCE\tFOR\tVERDICT\tSTOPPED/s BEFORE\tEXPECTED\tAFTER\tENDED")
		for _, p := range all {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", target(p.InForce), p.Remedy, age(now.Sub(p.Since)),
				duration(p.Until.Sub(p.Since)), p.Verdict, before(p.Outcome), expected(p.Expected), after(p.Outcome), text.Shown(p.Reason))
		}
		t.Flush()
	}
	_, err := io.WriteString(w, b.String())
	return err
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

func expected(e *txn.Expected) string {
	if e == nil {
		return "-"
	}
	return figure.PerSecond(e.StoppedPerSecondLow, e.StoppedPerSecondHigh)
}

func age(d time.Duration) string { return duration(d) + " ago" }

// duration is rounded to its largest one or two units.
func duration(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Minute:
		return d.Round(time.Second).String()
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}
