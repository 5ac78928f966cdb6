// Package changes writes what was or would be written, for every command that writes.
package changes

import (
	"fmt"
	"io"
	"strings"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/figure"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
)

// Plan writes the planned writes in their order, and what they leave alone.
func Plan(w io.Writer, r apply.Result, style page.Style) error {
	var b strings.Builder
	if len(r.Writes) == 0 {
		b.WriteString("nothing to write\n")
	}
	for i, c := range r.Writes {
		fmt.Fprintf(&b, "%3d. %s\n", i+1, sentence(c))
		if c.Why != "" {
			fmt.Fprintf(&b, "     %s\n", text.Shown(c.Why))
		}
	}
	rest(&b, r)
	return style.Send(w, b.String())
}

// Done writes the writes that were made, with the verdict last.
func Done(w io.Writer, r apply.Result, style page.Style) error {
	var b strings.Builder
	for _, c := range r.Writes {
		fmt.Fprintf(&b, "%-8s %s\n", text.Either(c.Done, "wrote", "not done"), sentence(c))
	}
	rest(&b, r)
	fmt.Fprintf(&b, "verdict: %s\n", r.Verdict)
	return style.Send(w, b.String())
}

func rest(b *strings.Builder, r apply.Result) {
	for _, s := range r.Skipped {
		fmt.Fprintf(b, "left     %s%s: %s\n", text.Shown(s.Path), text.Either(s.File != "", " "+s.File, ""), text.Shown(s.Why))
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(b, "note     %s\n", text.Shown(warning))
	}
}

// sentence is one write as a line: "/a/b cpu.max: "100000 100000" -> "max 100000"".
func sentence(c apply.Write) string {
	switch c.Kind {
	case change.KindCgroup:
		return fmt.Sprintf("%s cgroup %s (%s)", text.Either(c.After == "", "remove", "create"), text.Shown(c.Path), c.Controller)
	case change.KindTask:
		return fmt.Sprintf("move processes from %s to %s (%s)", text.Shown(c.Before), text.Shown(c.After), c.Controller)
	case change.KindSystemd:
		return fmt.Sprintf("unit %s %s: %s -> %s (at run time, through systemd)", text.Shown(c.Unit), c.File,
			text.Quoted(c.Before), text.Quoted(c.After))
	case change.KindIRQ:
		return fmt.Sprintf("/proc/irq/%s: %s -> %s", text.Shown(c.File), text.Quoted(c.Before), text.Quoted(c.After))
	case change.KindSched:
		return fmt.Sprintf("%s %s: scheduling policy %s -> %s", text.Shown(c.Path), c.File, text.Quoted(c.Before), text.Quoted(c.After))
	case change.KindPodCPU:
		return fmt.Sprintf("pod %s %s: %s -> %s (pods/resize)", text.Shown(c.Unit), c.File, text.Quoted(c.Before),
			text.Quoted(c.After))
	case change.KindWidth:
		return fmt.Sprintf("%s width by sched_ext: %s -> %s", text.Shown(c.Path), text.Quoted(c.Before), text.Quoted(c.After))
	case change.KindSubtree:
		return fmt.Sprintf("%s %s: %s", text.Shown(c.Path), "cgroup.subtree_control", text.Shown(c.After))
	}
	return fmt.Sprintf("%s %s: %s -> %s", text.Shown(c.Path), c.File, text.Quoted(c.Before), text.Quoted(c.After))
}

// Stopped is stopped time per second as it was measured, "-" where it was not.
func Stopped(f *txn.Figures) string {
	if f == nil {
		return figure.Missing
	}
	return figure.PerSecond(f.StoppedPerSecondLow, f.StoppedPerSecondHigh)
}
