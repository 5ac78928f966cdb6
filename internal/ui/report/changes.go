package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/unthrottle/unthrottle/internal/cure/txn/apply"
	"github.com/unthrottle/unthrottle/internal/cure/txn/change"
	"github.com/unthrottle/unthrottle/internal/text"
)

// maxShown bounds a stranger's name or value in a line for people; JSON has
// all of it.
const maxShown = 512

// Plan writes what would be done: the exact writes in their order, and what is
// left alone.
func Plan(w io.Writer, r apply.Result) error {
	var b strings.Builder
	if len(r.Writes) == 0 {
		b.WriteString("nothing to write\n")
	}
	for i, c := range r.Writes {
		fmt.Fprintf(&b, "%3d. %s\n", i+1, sentence(c))
		if c.Why != "" {
			fmt.Fprintf(&b, "     %s\n", shown(c.Why))
		}
	}
	rest(&b, r)
	_, err := io.WriteString(w, b.String())
	return err
}

// Done writes what was done, with the verdict last.
func Done(w io.Writer, r apply.Result) error {
	var b strings.Builder
	for _, c := range r.Writes {
		fmt.Fprintf(&b, "%-8s %s\n", either(c.Done, "wrote", "not done"), sentence(c))
	}
	rest(&b, r)
	fmt.Fprintf(&b, "verdict: %s\n", r.Verdict)
	_, err := io.WriteString(w, b.String())
	return err
}

func rest(b *strings.Builder, r apply.Result) {
	for _, s := range r.Skipped {
		fmt.Fprintf(b, "left     %s%s: %s\n", shown(s.Path), either(s.File != "", " "+s.File, ""), shown(s.Why))
	}
	for _, text := range r.Warnings {
		fmt.Fprintf(b, "note     %s\n", shown(text))
	}
}

// sentence says one write in a line: "/a/b cpu.max: "100000 100000" -> "max 100000"".
func sentence(c apply.Write) string {
	switch c.Kind {
	case change.KindCgroup:
		return fmt.Sprintf("%s cgroup %s (%s)", either(c.After == "", "remove", "create"), shown(c.Path), c.Controller)
	case change.KindTask:
		return fmt.Sprintf("move processes from %s to %s (%s)", shown(c.Before), shown(c.After), c.Controller)
	case change.KindSystemd:
		return fmt.Sprintf("unit %s %s: %s -> %s (at run time, through systemd)", shown(c.Unit), c.File, value(c.Before), value(c.After))
	case change.KindIRQ:
		return fmt.Sprintf("/proc/irq/%s: %s -> %s", shown(c.File), value(c.Before), value(c.After))
	case change.KindSched:
		return fmt.Sprintf("%s %s: scheduling policy %s -> %s", shown(c.Path), c.File, value(c.Before), value(c.After))
	case change.KindSubtree:
		return fmt.Sprintf("%s %s: %s", shown(c.Path), "cgroup.subtree_control", shown(c.After))
	}
	return fmt.Sprintf("%s %s: %s -> %s", shown(c.Path), c.File, value(c.Before), value(c.After))
}

// value shows a setting's text, an empty one too.
func value(v string) string { return `"` + shown(v) + `"` }

// shown makes a stranger's text fit for a terminal.
func shown(name string) string { return text.Sanitize(name, maxShown) }
