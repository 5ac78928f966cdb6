package bench

import (
	"fmt"
	"io"
	"strings"

	"github.com/unthrottle/unthrottle/internal/experiment/fibtest"
	"github.com/unthrottle/unthrottle/internal/experiment/latency"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/figure"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/table"
)

// Latency writes what `unthrottle bench latency` measured.
func Latency(w io.Writer, r latency.Result, style page.Style) error {
	var b strings.Builder
	fmt.Fprintf(&b, "A sleep of %g ms beside %s that burn, limit %s.\n", r.SleepMs, text.Count(r.Burners, "thread"), text.Count(r.Limit, "CPU"))
	fmt.Fprintf(&b, "%s, Linux %s, cgroup %s; medians of %s of %g s each.\n\n", text.Count(r.CPUs, "CPU"), text.Shown(r.Kernel), r.Mode, text.Count(r.Repeat, "round"), r.Seconds)
	t := table.Right(&b, style)
	fmt.Fprintln(t, "remedy\tCPUs granted\tused\tthrottled\tsleeps\tp50\tp90\tp99\tmax ms\tp90 to quota's\t")
	noisy := false
	for _, row := range r.Remedies {
		ratio := "-"
		if row.Ratio != nil {
			ratio = fmt.Sprintf("%.2f (%.2f-%.2f)", *row.Ratio, *row.RatioLow, *row.RatioHigh)
		}
		name := row.Remedy
		if row.Noisy {
			name, noisy = name+" ~", true
		}
		fmt.Fprintf(t, "%s\t%.1f\t%.2f\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t\n", name, row.Granted, row.Used, figure.OfPeriods(row.ThrottledPeriods, row.Periods), row.Count,
			figure.Fixed(row.P50, 1), figure.Fixed(row.P90, 1), figure.Fixed(row.P99, 1), figure.Fixed(row.Max, 1), ratio)
	}
	t.Flush() // writes to memory: cannot fail
	b.WriteString("\nRatios are shown only for remedies that get the same CPU as the plain quota. A p99 needs 1,000 sleeps.\n")
	if noisy {
		b.WriteString("~ the rounds lie more than a factor of two apart: too noisy to compare.\n")
	}
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "%s\n", text.Shown(note))
	}
	return style.Send(w, b.String())
}

// Fibtest writes what `unthrottle bench fibtest` measured.
func Fibtest(w io.Writer, r fibtest.Result, style page.Style) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s.\n\n", strings.ToUpper(string(r.Verdict)[:1])+string(r.Verdict)[1:], r.Why)
	fmt.Fprintf(&b, "%s, Linux %s, %d Hz, cgroup %s; medians of %s of %g s each.\n\n", text.Count(r.CPUs, "CPU"), text.Shown(r.Kernel), r.HZ, r.Mode, text.Count(r.Repeat, "round"), r.Seconds)
	t := table.Right(&b, style)
	fmt.Fprintln(t, "threads\tfast\tslow\tquota ms\titerations M\tthrottled\tused ms\tof the quota\tif affected\tif fixed\t")
	span := func(s fibtest.Range) string { return fmt.Sprintf("%.2f-%.2f", s.Low, s.High) }
	for _, run := range r.Runs {
		used := fmt.Sprintf("%.2f", run.Share)
		if run.Lowest != run.Highest {
			used += fmt.Sprintf(" (%.2f-%.2f)", run.Lowest, run.Highest)
		}
		fmt.Fprintf(t, "%d\t%d\t%d\t%g\t%d\t%s\t%.0f\t%s\t%s\t%s\t\n", run.Threads, run.Fast, run.Slow, 1e3*run.QuotaSeconds, run.Iterations/1e6,
			figure.OfPeriods(&run.ThrottledPeriods, &run.Periods), run.UsageSeconds*1000, used, span(run.Affected), span(run.Fixed))
	}
	t.Flush() // writes to memory: cannot fail
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "%s\n", text.Shown(note))
	}
	return style.Send(w, b.String())
}
