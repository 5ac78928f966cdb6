package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/unthrottle/unthrottle/internal/bench/fibtest"
	"github.com/unthrottle/unthrottle/internal/bench/latency"
	"github.com/unthrottle/unthrottle/internal/text"
)

// decimal is a figure, "-" where it was not measured.
func decimal(v *float64, decimals int) string {
	if v == nil {
		return "-"
	}
	return strconv.FormatFloat(*v, 'f', decimals, 64)
}

// ofPeriods is "throttled of all", "-" without a quota.
func ofPeriods(throttled, all *uint64) string {
	if throttled == nil || all == nil {
		return "-"
	}
	return fmt.Sprintf("%d of %d", *throttled, *all)
}

// BenchLatency writes what `unthrottle bench latency` measured.
func BenchLatency(w io.Writer, r latency.Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "A sleep of %g ms beside %s that burn, limit %s.\n", r.SleepMs, text.Count(r.Burners, "thread"), text.Count(r.Limit, "CPU"))
	fmt.Fprintf(&b, "%s, Linux %s, cgroup %s; medians of %s of %g s each.\n\n", text.Count(r.CPUs, "CPU"), shown(r.Kernel), r.Mode, text.Count(r.Repeat, "round"), r.Seconds)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
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
		fmt.Fprintf(t, "%s\t%.1f\t%.2f\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t\n", name, row.Granted, row.Used, ofPeriods(row.ThrottledPeriods, row.Periods), row.Count,
			decimal(row.P50, 1), decimal(row.P90, 1), decimal(row.P99, 1), decimal(row.Max, 1), ratio)
	}
	t.Flush() // writes to memory: cannot fail
	b.WriteString("\nRatios stand where the CPUs granted are the plain quota's. A p99 needs 1,000 sleeps.\n")
	if noisy {
		b.WriteString("~ the rounds lie more than a factor of two apart: too noisy to compare.\n")
	}
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "%s\n", shown(note))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// BenchFibtest writes what `unthrottle bench fibtest` measured.
func BenchFibtest(w io.Writer, r fibtest.Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s.\n\n", strings.ToUpper(string(r.Verdict)[:1])+string(r.Verdict)[1:], r.Why)
	fmt.Fprintf(&b, "%s, Linux %s, %d Hz, cgroup %s; medians of %s of %g s each.\n\n", text.Count(r.CPUs, "CPU"), shown(r.Kernel), r.HZ, r.Mode, text.Count(r.Repeat, "round"), r.Seconds)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "threads\tfast\tslow\tquota ms\titerations M\tthrottled\tused ms\tof the quota\tif affected\tif fixed\t")
	span := func(s fibtest.Range) string { return fmt.Sprintf("%.2f-%.2f", s.Low, s.High) }
	for _, run := range r.Runs {
		used := fmt.Sprintf("%.2f", run.Share)
		if run.Lowest != run.Highest {
			used += fmt.Sprintf(" (%.2f-%.2f)", run.Lowest, run.Highest)
		}
		fmt.Fprintf(t, "%d\t%d\t%d\t%g\t%d\t%s\t%.0f\t%s\t%s\t%s\t\n", run.Threads, run.Fast, run.Slow, run.QuotaMs, run.Iterations/1e6,
			ofPeriods(&run.ThrottledPeriods, &run.Periods), run.UsageSeconds*1000, used, span(run.Affected), span(run.Fixed))
	}
	t.Flush() // writes to memory: cannot fail
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "%s\n", shown(note))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
