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
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/figure"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/scenariorun"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/table"
)

// WriteReal writes what `unthrottle simulate --real` measured, for people.
func WriteReal(w io.Writer, r scenariorun.Run, style page.Style) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", text.Shown(r.Scenario), text.Shown(r.About))
	fmt.Fprintf(&b, "Run for real: %s, Linux %s, cgroup %s, %s s, %s.\n", text.Count(r.CPUs, "CPU"),
		text.Shown(r.Kernel), *r.Mode, strconv.FormatFloat(r.Seconds, 'f', 1, 64), text.Count(r.Repeat, "time"))
	if r.Repeat > 1 {
		b.WriteString("Figures are medians, with the lowest and the highest of all runs.\n")
	}
	b.WriteString("\n")
	scenariorun.Cgroups(&b, &r, style)
	scenariorun.Workloads(&b, &r, style)
	servedClasses(&b, r.Outcome, style)
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "\n%s\n", text.Shown(note))
	}
	return style.Send(w, b.String())
}

// servedClasses writes a table of the classes of services that have several, and
// what clients met.
func servedClasses(b *strings.Builder, o scenario.Outcome, style page.Style) {
	type class struct {
		name, workload string
		scenario.Latencies
	}
	var classes []class
	for _, name := range slices.Sorted(maps.Keys(o.Workloads)) {
		served := o.Workloads[name].Classes
		for _, of := range slices.Sorted(maps.Keys(served)) {
			classes = append(classes, class{of, name, served[of]})
		}
	}
	show := func(name string, text func(class) string) table.Field[class] {
		return table.Field[class]{Column: table.Column{Name: name}, Text: text}
	}
	if len(classes) > 0 {
		b.WriteString("\n")
		table.Figures(b, style, []table.Field[class]{
			show("class", func(c class) string { return c.name }),
			show("of", func(c class) string { return c.workload }),
			show("count", func(c class) string { return fmt.Sprint(c.Count) }),
			show("p50", func(c class) string { return figure.Fixed(c.P50, 2) }),
			show("p90", func(c class) string { return figure.Fixed(c.P90, 2) }),
			show("p99", func(c class) string { return figure.Fixed(c.P99, 2) }),
			show("max ms", func(c class) string { return figure.Fixed(c.Max, 2) }),
		}, classes)
	}
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
