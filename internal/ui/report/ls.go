package report

import (
	"cmp"
	"io"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/internal/see/observe"
)

// LSOptions of LS.
type LSOptions struct {
	// Wide adds the columns from PATH on.
	Wide bool
	// Width is that of the terminal in columns; names and paths are cut to fit it. 0: nothing is cut.
	Width int
	// Color marks what is stopped.
	Color bool
	// NoHeader leaves out the header and the footnotes: one line per container and nothing else.
	NoHeader bool
}

// Stopped time per second from which a line is marked.
const (
	lsNoticed = 0.01
	lsAlarm   = 0.05
)

// LS writes one line per container, worst first: by stopped time (its upper bound, as a share of the window), then by
// the share of throttled periods, then by name. "-" is what was not measured; footnotes say what and why.
func LS(w io.Writer, observations []observe.Observation, o LSOptions) error {
	sorted := lsSorted(observations)
	var b strings.Builder
	t := newLSTable(lsColumns(o.Wide), sorted)
	t.fit(o.Width)
	t.write(&b, o)
	if !o.NoHeader {
		lsFootnotes(&b, sorted)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// lsSorted is a copy, worst first.
func lsSorted(observations []observe.Observation) []observe.Observation {
	sorted := slices.Clone(observations)
	slices.SortStableFunc(sorted, func(a, b observe.Observation) int {
		return cmp.Or(cmp.Compare(lsStopped(&b), lsStopped(&a)), cmp.Compare(lsRatio(&b), lsRatio(&a)),
			cmp.Compare(a.Container.Name, b.Container.Name), cmp.Compare(a.Container.Group.Path, b.Container.Group.Path))
	})
	return sorted
}

// lsStopped sorts what was not measured behind what was measured as 0.
func lsStopped(o *observe.Observation) float64 {
	_, high, ok := o.StoppedPerSecond()
	if !ok {
		return -1
	}
	return high
}

func lsRatio(o *observe.Observation) float64 {
	ratio, _ := o.ThrottledRatio()
	return ratio
}

// lsColumn is one column. Where the terminal is narrow its cells may be cut to least runes (0: never).
type lsColumn struct {
	name  string
	least int
	tail  bool // cut at the front: the end of a path says more
	right bool // numbers
	cell  func(*observe.Observation) string
}

func lsColumns(wide bool) []lsColumn {
	columns := []lsColumn{
		{name: "NAME", least: 16, cell: func(o *observe.Observation) string { return lsText(o.Container.Name) }},
		{name: "LIMIT", right: true, cell: lsLimit},
		{name: "USED", right: true, cell: lsUsed},
		{name: "THROTTLED", right: true, cell: lsPeriods},
		{name: "STOPPED", right: true, cell: lsInterval},
		{name: "CPUS", least: 8, cell: lsCPUs},
		{name: "BY", least: 12, tail: true, cell: lsBy},
	}
	if !wide {
		return columns
	}
	return append(columns,
		lsColumn{name: "PATH", least: 16, tail: true, cell: func(o *observe.Observation) string { return lsText(o.Container.Group.Path) }},
		lsColumn{name: "POD", least: 12, cell: func(o *observe.Observation) string { return lsName(o.Container.Pod) }},
		lsColumn{name: "NAMESPACE", least: 12, cell: func(o *observe.Observation) string { return lsName(o.Container.Namespace) }},
		lsColumn{name: "PERIOD", right: true, cell: lsPeriod},
		lsColumn{name: "BURST", right: true, cell: lsBurst},
		lsColumn{name: "THROTTLED_TIME_SUM_OVER_CPUS", right: true, cell: lsThrottledTime},
	)
}
