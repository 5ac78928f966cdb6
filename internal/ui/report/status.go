package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/txn"
)

// Status writes what is in force, and how many of its settings are no longer
// what we wrote. now is for ages.
func Status(w io.Writer, all []txn.InForce, drift []txn.DriftItem, now time.Time) error {
	var b strings.Builder
	if len(all) == 0 {
		b.WriteString("nothing is in force\n")
	} else {
		t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "TARGET\tREMEDY\tSINCE\tVERDICT\tSTOPPED/s BEFORE\tEXPECTED\tAFTER\tBY")
		for _, f := range all {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", target(f), f.Remedy, age(now.Sub(f.Since)), f.Verdict,
				before(f.Outcome), expected(f.Expected), after(f.Outcome), shown(f.By))
		}
		t.Flush()
	}
	for _, d := range drift {
		why := "was changed by somebody else to " + value(d.Current)
		if d.Gone {
			why = "is gone"
		}
		fmt.Fprintf(&b, "drift: %s %s, which we set to %s, %s\n", shown(d.Path), d.File, value(d.Want), why)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// History writes what has ended, newest first: expected beside what came.
func History(w io.Writer, all []txn.Past, now time.Time) error {
	var b strings.Builder
	if len(all) == 0 {
		b.WriteString("no history yet\n")
	} else {
		t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "TARGET\tREMEDY\tSINCE\tFOR\tVERDICT\tSTOPPED/s BEFORE\tEXPECTED\tAFTER\tENDED")
		for _, p := range all {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", target(p.InForce), p.Remedy, age(now.Sub(p.Since)),
				duration(p.Until.Sub(p.Since)), p.Verdict, before(p.Outcome), expected(p.Expected), after(p.Outcome), shown(p.Reason))
		}
		t.Flush()
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func target(f txn.InForce) string {
	if f.Name != "" {
		return shown(f.Name)
	}
	return shown(f.Target)
}

func before(o *txn.Outcome) string {
	if o == nil {
		return "-"
	}
	return stopped(o.Before)
}

func after(o *txn.Outcome) string {
	if o == nil {
		return "-"
	}
	return stopped(o.After)
}

func stopped(f *txn.Figures) string {
	if f == nil {
		return "-"
	}
	return interval(f.StoppedPerSecondLow, f.StoppedPerSecondHigh)
}

func expected(e *txn.Expected) string {
	if e == nil {
		return "-"
	}
	return interval(e.StoppedPerSecondLow, e.StoppedPerSecondHigh)
}

// interval shows stopped time in ms per second; "-" is not measured.
func interval(low, high *float64) string {
	switch {
	case low == nil || high == nil:
		return "-"
	case *low == *high:
		return fmt.Sprintf("%.0f ms", *low*1000)
	}
	return fmt.Sprintf("%.0f-%.0f ms", *low*1000, *high*1000)
}

func age(d time.Duration) string { return duration(d) + " ago" }

// duration is rounded as people say it.
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
