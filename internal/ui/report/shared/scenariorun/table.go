package scenariorun

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/figure"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/table"
)

// spread is a figure, with its range where there were several runs.
func (s *Run) spread(value func(*scenario.Outcome) *float64, decimals int) string {
	text := func(o *scenario.Outcome) string { return figure.Fixed(value(o), decimals) }
	mid := text(&s.Outcome)
	if s.Lowest == nil {
		return mid
	}
	if low, high := text(s.Lowest), text(s.Highest); low != mid || high != mid {
		return fmt.Sprintf("%s (%s-%s)", mid, low, high)
	}
	return mid
}

// Cgroups writes a table of the run's cgroups.
func Cgroups(b io.Writer, s *Run, style page.Style) {
	if len(s.Cgroups) == 0 {
		return
	}
	type cgroup = scenario.CgroupOutcome
	show := func(c table.Column, decimals int, value func(cgroup) *float64) table.Field[string] {
		return table.Field[string]{Column: c, Text: func(name string) string {
			return s.spread(func(o *scenario.Outcome) *float64 { return value(o.Cgroups[name]) }, decimals)
		}}
	}
	fields := []table.Field[string]{
		{Column: table.Column{Name: "cgroup"}, Text: itself},
		show(table.Column{Name: "throttled"}, 0, func(c cgroup) *float64 { return number(c.ThrottledPeriods) }),
		show(table.Column{Name: "of active", Spare: 4}, 0, func(c cgroup) *float64 { return numberOr(c.ActivePeriods) }),
		show(table.Column{Name: "periods", Spare: 3}, 0, func(c cgroup) *float64 { return number(c.Periods) }),
		show(table.Column{Name: "throttled s", Spare: 1}, 3, func(c cgroup) *float64 { return &c.ThrottledSeconds }),
		show(table.Column{Name: "stopped s"}, 3, func(c cgroup) *float64 { return c.StoppedSeconds }),
		show(table.Column{Name: "CPUs used"}, 3, func(c cgroup) *float64 { return number(c.UsageSeconds / s.Seconds) }),
		{Column: table.Column{Name: "widest", Spare: 2}, Text: func(name string) string { return widest(s.Cgroups[name].Width) }},
	}
	table.Figures(b, style, fields, slices.Sorted(maps.Keys(s.Cgroups)))
	fmt.Fprintln(b)
}

func itself(name string) string { return name }

func number[N uint64 | float64](n N) *float64 { return new(float64(n)) }

// numberOr is number, of what may not be measured.
func numberOr[N uint64 | float64](n *N) *float64 {
	if n == nil {
		return nil
	}
	return number(*n)
}

func widest(width []scenario.Width) string {
	if len(width) == 0 {
		return "-"
	}
	return strconv.Itoa(width[len(width)-1].CPUs)
}

// Workloads writes a table of the run's workloads.
func Workloads(b io.Writer, s *Run, style page.Style) {
	type workload = scenario.WorkloadOutcome
	show := func(c table.Column, decimals int, value func(workload) *float64) table.Field[string] {
		return table.Field[string]{Column: c, Text: func(name string) string {
			return s.spread(func(o *scenario.Outcome) *float64 { return value(o.Workloads[name]) }, decimals)
		}}
	}
	fields := []table.Field[string]{
		{Column: table.Column{Name: "workload"}, Text: itself},
		show(table.Column{Name: "count", Spare: 1}, 0, func(w workload) *float64 { return number(w.Count) }),
		show(table.Column{Name: "p50"}, 2, func(w workload) *float64 { return w.P50 }),
		show(table.Column{Name: "p90", Spare: 2}, 2, func(w workload) *float64 { return w.P90 }),
		show(table.Column{Name: "p99"}, 2, func(w workload) *float64 { return w.P99 }),
		show(table.Column{Name: "max ms"}, 2, func(w workload) *float64 { return w.Max }),
		show(table.Column{Name: "refused", Spare: 4}, 0, func(w workload) *float64 { return number(w.Refused) }),
		show(table.Column{Name: "unfinished", Spare: 3}, 0, func(w workload) *float64 { return number(w.Unfinished) }),
		show(table.Column{Name: "CPUs used"}, 3, func(w workload) *float64 {
			if w.CPUSeconds == nil {
				return nil
			}
			return number(*w.CPUSeconds / s.Seconds)
		}),
	}
	if slices.ContainsFunc(slices.Collect(maps.Values(s.Workloads)), func(w workload) bool { return w.DeadSeconds != nil }) {
		fields = append(fields, show(table.Column{Name: "dead s"}, 1, func(w workload) *float64 { return w.DeadSeconds }))
	}
	table.Figures(b, style, fields, slices.Sorted(maps.Keys(s.Workloads)))
}
