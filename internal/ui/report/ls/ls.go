// Package ls writes the containers of `unthrottle ls`, worst first, as a table and as JSON.
package ls

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/table"
)

// Options of Write.
type Options struct {
	// Wide adds the columns from PATH on, and the lines of units and cgroups that are idle.
	Wide bool
	// Width is that of the terminal in columns; names and paths are cut to fit it. 0: nothing is cut.
	Width int
	// Color marks what is stopped red, what is near it yellow, and what is fine green.
	Color bool
	// ASCII is for a terminal without other characters.
	ASCII bool
}

// Stopped time per second from which a line is marked.
const (
	noticed = 0.01
	alarm   = 0.05
)

// noUse are CPUs that read 0.00.
const noUse = 0.005

// Write writes one line per container, worst first: by stopped time (its upper bound, as a share of the window), then by
// the share of throttled periods, then by name. "-" is what was not measured; footnotes say what and why. Idle units and cgroups
// are only counted.
func Write(w io.Writer, observations []observe.Observation, o Options) error {
	sorted, all := worstFirst(observations), len(observations)
	if !o.Wide {
		sorted = slices.DeleteFunc(sorted, idle)
	}
	p := page.New(page.Style{Width: cmp.Or(o.Width, page.Unbounded), ASCII: o.ASCII, Color: o.Color}, 0, 0)
	rows := make([]*observe.Observation, len(sorted))
	for i := range sorted {
		rows[i] = &sorted[i]
	}
	t := table.Of(columns(o.Wide), rows)
	t.Fit(o.Width)
	t.Write(p, true)
	t.Missing(p)
	if n := all - len(sorted); n > 0 {
		fmt.Fprintf(p, "and %s without a limit that used no CPU time: see -o wide\n", text.CountOf(n, "unit or cgroup", "units and cgroups"))
	}
	footnotes(p, sorted)
	fewPeriods(p, sorted)
	if o.Wide {
		p.Paragraph(throttledTimeColumn + " is the kernel's own figure: a sum over CPUs, no wall time.")
	}
	return p.Send(w)
}

// idle reports whether a unit or a cgroup that is no container has no limit and did nothing. A host with systemd has dozens: its
// mounts, slices and waiting services.
func idle(o observe.Observation) bool {
	plain := o.Container.Runtime == "" || o.Container.Runtime == container.Systemd
	return plain && o.Container.Pod == "" && o.LimitCPUs == nil && o.UsedCPUs != nil && *o.UsedCPUs < noUse &&
		(o.StoppedHigh == nil || *o.StoppedHigh == 0)
}

// worstFirst is a copy, worst first.
func worstFirst(observations []observe.Observation) []observe.Observation {
	sorted := slices.Clone(observations)
	slices.SortStableFunc(sorted, func(a, b observe.Observation) int {
		return cmp.Or(cmp.Compare(stopped(&b), stopped(&a)), cmp.Compare(throttledRatio(&b), throttledRatio(&a)),
			cmp.Compare(a.Container.Name, b.Container.Name), cmp.Compare(a.Container.Group.Path, b.Container.Group.Path))
	})
	return sorted
}

// stopped sorts what was not measured behind what was measured as 0.
func stopped(o *observe.Observation) float64 {
	_, high, ok := o.StoppedPerSecond()
	if !ok {
		return -1
	}
	return high
}

func throttledRatio(o *observe.Observation) float64 {
	ratio, _ := o.ThrottledRatio()
	return ratio
}

// throttledTimeColumn needs a word below the table: it looks like wall time and is none.
const throttledTimeColumn = "THROTTLED_TIME"

type column = table.Field[*observe.Observation]

func columns(wide bool) []column {
	columns := []column{
		{Column: table.Column{Name: "NAME", Least: 16}, Text: func(o *observe.Observation) string { return shownText(o.Container.Name) }},
		{Column: table.Column{Name: "LIMIT", Right: true, Spare: 1}, Text: limitCell},
		{Column: table.Column{Name: "USED", Right: true, Spare: 2}, Text: usedCell},
		{Column: table.Column{Name: "THROTTLED", Right: true}, Text: periodsCell},
		{Column: table.Column{Name: "STOPPED", Right: true}, Text: stoppedCell, Color: color},
		{Column: table.Column{Name: "CPUS", Least: 8, Spare: 3}, Text: cpusCell},
		{Column: table.Column{Name: "BY", Least: 12, Tail: true}, Text: byCell},
	}
	if !wide {
		return columns
	}
	return append(columns,
		column{Column: table.Column{Name: "PATH", Least: 16, Tail: true},
			Text: func(o *observe.Observation) string { return shownText(o.Container.Group.Path) }},
		column{Column: table.Column{Name: "POD", Least: 12},
			Text: func(o *observe.Observation) string { return nameCell(o.Container.Pod) }},
		column{Column: table.Column{Name: "NAMESPACE", Least: 12},
			Text: func(o *observe.Observation) string { return nameCell(o.Container.Namespace) }},
		column{Column: table.Column{Name: "QOS"}, Text: func(o *observe.Observation) string { return nameCell(o.Container.QoS) }},
		column{Column: table.Column{Name: "SERVICE", Least: 12},
			Text: func(o *observe.Observation) string { return nameCell(o.Container.ComposeService()) }},
		column{Column: table.Column{Name: "IMAGE", Least: 12},
			Text: func(o *observe.Observation) string { return nameCell(o.Container.Image) }},
		column{Column: table.Column{Name: "RUNTIME"}, Text: func(o *observe.Observation) string { return nameCell(o.Container.Runtime) }},
		column{Column: table.Column{Name: "PERIOD", Right: true}, Text: periodCell},
		column{Column: table.Column{Name: "BURST", Right: true}, Text: burstCell},
		column{Column: table.Column{Name: throttledTimeColumn, Right: true}, Text: throttledTimeCell},
	)
}
