package bench

import (
	"fmt"
	"io"
	"slices"
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
	fmt.Fprintf(&b, "A sleep of %g ms beside %s that burn, limit %s.\n", r.SleepMs, text.Count(r.Burners, "thread"),
		text.Count(r.Limit, "CPU"))
	fmt.Fprintf(&b, "%s, Linux %s, cgroup %s; medians of %s of %g s each.\n\n", text.Count(r.CPUs, "CPU"),
		text.Shown(r.Kernel), r.Mode, text.Count(r.Repeat, "round"), r.Seconds)
	type remedy = latency.Row
	show := func(name string, text func(remedy) string) table.Field[remedy] {
		return table.Field[remedy]{Column: table.Column{Name: name}, Text: text}
	}
	table.Figures(&b, style, []table.Field[remedy]{
		show("remedy", func(m remedy) string { return m.Remedy + text.Either(m.Noisy, " ~", "") }),
		show("CPUs granted", func(m remedy) string { return fmt.Sprintf("%.1f", m.Granted) }),
		show("used", func(m remedy) string { return fmt.Sprintf("%.2f", m.Used) }),
		show("throttled", func(m remedy) string { return figure.OfPeriods(m.ThrottledPeriods, m.Periods) }),
		show("sleeps", func(m remedy) string { return fmt.Sprint(m.Count) }),
		show("p50", func(m remedy) string { return figure.Fixed(m.P50, 1) }),
		show("p90", func(m remedy) string { return figure.Fixed(m.P90, 1) }),
		show("p99", func(m remedy) string { return figure.Fixed(m.P99, 1) }),
		show("max ms", func(m remedy) string { return figure.Fixed(m.Max, 1) }),
		show("p90 to quota's", func(m remedy) string {
			if m.Ratio == nil {
				return "-"
			}
			return fmt.Sprintf("%.2f (%.2f-%.2f)", *m.Ratio, *m.RatioLow, *m.RatioHigh)
		}),
	}, r.Remedies)
	b.WriteString("\nRatios are shown only for remedies that get the same CPU as the plain quota. A p99 needs 1,000 sleeps.\n")
	if slices.ContainsFunc(r.Remedies, func(m remedy) bool { return m.Noisy }) {
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
	fmt.Fprintf(&b, "%s, Linux %s, %d Hz, cgroup %s; medians of %s of %g s each.\n\n", text.Count(r.CPUs, "CPU"),
		text.Shown(r.Kernel), r.HZ, r.Mode, text.Count(r.Repeat, "round"), r.Seconds)
	span := func(s fibtest.Range) string { return fmt.Sprintf("%.2f-%.2f", s.Low, s.High) }
	show := func(name string, text func(fibtest.Run) string) table.Field[fibtest.Run] {
		return table.Field[fibtest.Run]{Column: table.Column{Name: name}, Text: text}
	}
	table.Figures(&b, style, []table.Field[fibtest.Run]{
		show("threads", func(run fibtest.Run) string { return fmt.Sprint(run.Threads) }),
		show("fast", func(run fibtest.Run) string { return fmt.Sprint(run.Fast) }),
		show("slow", func(run fibtest.Run) string { return fmt.Sprint(run.Slow) }),
		show("quota ms", func(run fibtest.Run) string { return fmt.Sprintf("%g", 1e3*run.QuotaSeconds) }),
		show("iterations M", func(run fibtest.Run) string { return fmt.Sprint(run.Iterations / 1e6) }),
		show("throttled", func(run fibtest.Run) string { return figure.OfPeriods(&run.ThrottledPeriods, &run.Periods) }),
		show("used ms", func(run fibtest.Run) string { return fmt.Sprintf("%.0f", run.UsageSeconds*1000) }),
		show("of the quota", func(run fibtest.Run) string {
			if run.Lowest == run.Highest {
				return fmt.Sprintf("%.2f", run.Share)
			}
			return fmt.Sprintf("%.2f (%.2f-%.2f)", run.Share, run.Lowest, run.Highest)
		}),
		show("if affected", func(run fibtest.Run) string { return span(run.Affected) }),
		show("if fixed", func(run fibtest.Run) string { return span(run.Fixed) }),
	}, r.Runs)
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "%s\n", text.Shown(note))
	}
	return style.Send(w, b.String())
}
