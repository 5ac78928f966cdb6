// Package demo writes a run of `unthrottle demo`, and how far it is.
package demo

import (
	"fmt"
	"io"
	"strconv"

	"github.com/unthrottle/unthrottle/internal/experiment/demo"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/figure"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/histogram"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/table"
)

// Bounds of the width in columns. Lines are too wide for less; bars are harder to
// compare with more.
const (
	minWidth = 40
	maxWidth = 110
)

// Write writes a run of the demo: the sleeps of the quota and the pin variant as
// histograms side by side, the figures of all four variants, and the verdict.
func Write(w io.Writer, r demo.Result, style page.Style) error {
	p := page.New(style, minWidth, maxWidth)
	p.Paragraph(fmt.Sprintf("%s burn CPU under a limit of %s; one more sleeps %s ms at a time.",
		text.Count(r.Burners, "thread"), text.Count(r.Quota, "CPU"), figure.Trimmed(r.Sleep)))
	if r.Simulated {
		p.Paragraph("Simulated: nothing ran on this host. 'sudo unthrottle demo' runs it for real, on Linux with cgroups.")
	}
	p.Paragraph(fmt.Sprintf("Linux %s, cgroup %s, %s; quota %s/%s ms; pinned to CPU %s.", text.Shown(r.Kernel), r.Cgroups,
		text.Count(r.CPUs, "CPU"), figure.Trimmed(float64(r.Quota)*1e3*r.Period), figure.Trimmed(1e3*r.Period), r.Pinned))

	if !r.Fair && !r.Simulated {
		p.Paragraph("The demo runs at the highest CPU weight, so other load hardly affects the results.")
	}
	fmt.Fprintf(p, "\nHow long a sleep of %s ms really took, in ms:\n\n", figure.Trimmed(r.Sleep))
	p.Lines(histogram.Lines(labels(r.Before.Histogram), []histogram.Column{
		{Title: "quota", Counts: counts(r.Before.Histogram)}, {Title: "pin", Counts: counts(r.After.Histogram)},
	}, p.Columns, histogram.Bars{ASCII: style.ASCII}))
	p.Line("")
	writeTable(p, r)
	p.Line("")
	for _, line := range r.Verdict.Text {
		p.Paragraph(line)
	}
	for _, line := range r.Notes {
		p.Paragraph("Note: " + text.Shown(line))
	}
	if r.Restored {
		p.Paragraph("Everything restored; no other process on this host was moved or limited.")
	}
	return p.Send(w)
}

func labels(bins []demo.Bin) []string {
	labels := make([]string, len(bins))
	for i, bin := range bins {
		labels[i] = figure.Trimmed(bin.FromMs) + "-" + figure.Trimmed(bin.ToMs)
	}
	return labels
}

func counts(bins []demo.Bin) []int {
	counts := make([]int, len(bins))
	for i, bin := range bins {
		counts[i] = bin.Count
	}
	return counts
}

func writeTable(p *page.Page, r demo.Result) {
	type variant = demo.Variant
	show := func(name string, text func(variant) string) table.Field[variant] {
		return table.Field[variant]{Column: table.Column{Name: name}, Text: text}
	}
	table.Figures(p, p.Style, []table.Field[variant]{
		show("variant", func(a variant) string { return a.Name }),
		show("burn", func(a variant) string { return strconv.Itoa(a.Burners) }),
		show("on CPU", func(a variant) string { return text.Cut(a.CPUs, 11, "..") }),
		show("throttled", func(a variant) string { return figure.OfPeriods(a.ThrottledPeriods, a.Periods) }),
		show("CPUs used", func(a variant) string { return figure.Fixed(a.UsedCPUs, 2) }),
		show("p50", func(a variant) string { return figure.Fixed(a.P50, 1) }),
		show("p99", func(a variant) string { return figure.Fixed(a.P99, 1) }),
		show("max ms", func(a variant) string { return figure.Fixed(a.Max, 1) }),
		show("late s", func(a variant) string { return figure.Fixed(a.Late, 2) }),
	}, r.Variants())
}
