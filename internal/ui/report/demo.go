package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/unthrottle/unthrottle/internal/bench/demo"
	"github.com/unthrottle/unthrottle/internal/text"
)

// DemoOptions of Demo.
type DemoOptions struct {
	Width int  // of the terminal in columns; 0: 80
	ASCII bool // no block characters
}

// Bounds of the width: narrower than the least, lines run over; wider than the
// most, bars only get harder to compare.
const (
	demoMinWidth = 60
	demoMaxWidth = 110
)

// Demo writes a run of the demo: the sleeps of the quota and the pin variant as
// histograms side by side, the figures of all four variants, and the verdict.
func Demo(w io.Writer, r demo.Result, o DemoOptions) error {
	columns := o.Width
	if columns <= 0 {
		columns = 80
	}
	columns = min(demoMaxWidth, max(demoMinWidth, columns))
	var b strings.Builder
	paragraph := func(text string) {
		for _, line := range fill(text, columns) {
			b.WriteString(line + "\n")
		}
	}
	paragraph(fmt.Sprintf("%s burn CPU under a limit of %s; one more sleeps %s ms at a time.",
		text.Count(r.Burners, "thread"), text.Count(r.Quota, "CPU"), trimmed(r.Sleep)))
	if r.Simulated {
		paragraph("Simulated: nothing ran on this host. 'sudo unthrottle demo' runs it for real, on Linux with cgroups.")
	}
	paragraph(fmt.Sprintf("Linux %s, cgroup %s, %s; quota %s/%s ms; pinned to CPU %s.", shown(r.Kernel), r.Cgroups,
		text.Count(r.CPUs, "CPU"), trimmed(float64(r.Quota)*r.Period), trimmed(r.Period), r.Pinned))

	if !r.Fair && !r.Simulated {
		paragraph("Highest weight for the demo's cgroup: other load does not decide the figures.")
	}
	fmt.Fprintf(&b, "\nHow long a sleep of %s ms really took, in ms:\n\n", trimmed(r.Sleep))
	for _, line := range histogramLines(demoLabels(r.Before.Histogram), []histogramColumn{
		{title: "quota", counts: demoCounts(r.Before.Histogram)}, {title: "pin", counts: demoCounts(r.After.Histogram)},
	}, columns, bars{o.ASCII}) {
		b.WriteString(line + "\n")
	}
	b.WriteString("\n")
	demoTable(&b, r)
	b.WriteString("\n")
	for _, line := range r.Verdict.Text {
		paragraph(line)
	}
	for _, line := range r.Notes {
		paragraph("Note: " + shown(line))
	}
	if r.Restored {
		paragraph("Everything restored; nobody else on this host was moved or limited.")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func demoLabels(bins []demo.Bin) []string {
	labels := make([]string, len(bins))
	for i, bin := range bins {
		labels[i] = trimmed(bin.FromMs) + "-" + trimmed(bin.ToMs)
	}
	return labels
}

func demoCounts(bins []demo.Bin) []int {
	counts := make([]int, len(bins))
	for i, bin := range bins {
		counts[i] = bin.Count
	}
	return counts
}

func demoTable(b *strings.Builder, r demo.Result) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "arm\tburn\ton CPU\tthrottled\tCPUs used\tp50\tp99\tmax ms\tlate s\t")
	for _, a := range r.Variants() {
		throttled := "-"
		if a.ThrottledPeriods != nil && a.Periods != nil {
			throttled = fmt.Sprintf("%d of %d", *a.ThrottledPeriods, *a.Periods)
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", a.Name, a.Burners, cut(a.CPUs, 11), throttled,
			figure(a.UsedCPUs, 2), figure(a.P50, 1), figure(a.P99, 1), figure(a.Max, 1), figure(a.Late, 2))
	}
	t.Flush() // writes to memory: cannot fail
}

// figure is a measured number, or "-".
func figure(v *float64, decimals int) string {
	if v == nil {
		return "-"
	}
	return strconv.FormatFloat(*v, 'f', decimals, 64)
}

// trimmed is a number without needless decimals.
func trimmed(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// cut shortens a list of CPUs that would spoil a table.
func cut(text string, columns int) string {
	if len(text) <= columns {
		return text
	}
	return text[:columns-2] + ".."
}

// fill breaks a text into lines of at most that many columns.
func fill(text string, columns int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && width(line)+1+width(word) > columns {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
