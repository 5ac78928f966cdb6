package simulate

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/table"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/trial"
)

// WriteReal writes what `unthrottle simulate --real` measured, for people.
func WriteReal(w io.Writer, r trial.Trial, style page.Style) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", text.Shown(r.Scenario), text.Shown(r.About))
	fmt.Fprintf(&b, "Run for real: %s, Linux %s, cgroup %s, %s s, %s.\n", text.Count(r.CPUs, "CPU"), text.Shown(r.Kernel), *r.Mode, strconv.FormatFloat(r.Seconds, 'f', 1, 64), text.Count(r.Repeat, "time"))
	if r.Repeat > 1 {
		b.WriteString("Figures are medians, with the lowest and the highest of all runs.\n")
	}
	b.WriteString("\n")
	trial.Cgroups(&b, &r, style)
	trial.Workloads(&b, &r, style)
	servedClasses(&b, r.Outcome, style)
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "\n%s\n", text.Shown(note))
	}
	return style.Send(w, b.String())
}

// servedClasses writes a table of the classes of services that have several, and
// what clients met.
func servedClasses(b *strings.Builder, o scenario.Outcome, style page.Style) {
	t := table.Right(b, style)
	some := false
	ms := func(v *float64) string {
		if v == nil {
			return "-"
		}
		return strconv.FormatFloat(*v, 'f', 2, 64)
	}
	for _, name := range slices.Sorted(maps.Keys(o.Workloads)) {
		w := o.Workloads[name]
		for _, class := range slices.Sorted(maps.Keys(w.Classes)) {
			if !some {
				b.WriteString("\n")
				fmt.Fprintln(t, "class\tof\tcount\tp50\tp90\tp99\tmax ms\t")
			}
			some = true
			c := w.Classes[class]
			fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t\n", class, name, c.Count, ms(c.P50), ms(c.P90), ms(c.P99), ms(c.Max))
		}
	}
	t.Flush() // writes to memory: cannot fail
	for _, name := range slices.Sorted(maps.Keys(o.Workloads)) {
		w := o.Workloads[name]
		if w.Failed == nil {
			continue
		}
		fmt.Fprintf(b, "\n%s: %s failed at every try", name, text.Count(int(*w.Failed), "request"))
		if w.RecoverySeconds != nil {
			fmt.Fprintf(b, "; %.2f s after the load fell it was well again", *w.RecoverySeconds)
		}
		b.WriteString(".\n")
	}
}
