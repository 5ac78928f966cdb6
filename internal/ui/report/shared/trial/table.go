package trial

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/table"
)

// spread is a figure, with its range where there were several runs.
func (s *Trial) spread(of func(*scenario.Outcome) (float64, bool), decimals int) string {
	text := func(o *scenario.Outcome) string {
		v, ok := of(o)
		if !ok {
			return "-"
		}
		return strconv.FormatFloat(v, 'f', decimals, 64)
	}
	mid := text(&s.Outcome)
	if s.Lowest == nil {
		return mid
	}
	if low, high := text(s.Lowest), text(s.Highest); low != mid || high != mid {
		return fmt.Sprintf("%s (%s-%s)", mid, low, high)
	}
	return mid
}

// Cgroups writes a table of the trial's cgroups.
func Cgroups(b io.Writer, s *Trial, style page.Style) {
	if len(s.Cgroups) == 0 {
		return
	}
	t := table.Right(b, style).Spare("of active", "periods", "widest", "throttled s")
	fmt.Fprintln(t, "cgroup\tthrottled\tof active\tperiods\tthrottled s\tstopped s\tCPUs used\twidest\t")
	for _, name := range slices.Sorted(maps.Keys(s.Cgroups)) {
		of := func(decimals int, value func(scenario.CgroupOutcome) *float64) string {
			return s.spread(func(o *scenario.Outcome) (float64, bool) { return measured(value(o.Cgroups[name])) }, decimals)
		}
		number := func(v float64) *float64 { return &v }
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", name,
			of(0, func(c scenario.CgroupOutcome) *float64 { return number(float64(c.ThrottledPeriods)) }),
			of(0, func(c scenario.CgroupOutcome) *float64 {
				if c.ActivePeriods == nil {
					return nil
				}
				return number(float64(*c.ActivePeriods))
			}),
			of(0, func(c scenario.CgroupOutcome) *float64 { return number(float64(c.Periods)) }),
			of(3, func(c scenario.CgroupOutcome) *float64 { return &c.ThrottledSeconds }),
			of(3, func(c scenario.CgroupOutcome) *float64 { return c.StoppedSeconds }),
			of(3, func(c scenario.CgroupOutcome) *float64 { return number(c.UsageSeconds / s.Seconds) }),
			widest(s.Cgroups[name].Width))
	}
	t.Flush() // writes to memory: cannot fail
	fmt.Fprintln(b)
}

// measured says whether there is a figure.
func measured(v *float64) (float64, bool) {
	if v == nil {
		return 0, false
	}
	return *v, true
}

func widest(width []scenario.Width) string {
	if len(width) == 0 {
		return "-"
	}
	return strconv.Itoa(width[len(width)-1].CPUs)
}

// Workloads writes a table of the trial's workloads.
func Workloads(b io.Writer, s *Trial, style page.Style) {
	t := table.Right(b, style).Spare("refused", "unfinished", "p90", "count")
	marks := slices.ContainsFunc(slices.Collect(maps.Values(s.Workloads)), func(w scenario.WorkloadOutcome) bool { return w.DeadSeconds != nil })
	fmt.Fprint(t, "workload\tcount\tp50\tp90\tp99\tmax ms\trefused\tunfinished\tCPUs used\t")
	if marks {
		fmt.Fprint(t, "dead s\t")
	}
	fmt.Fprintln(t)
	for _, name := range slices.Sorted(maps.Keys(s.Workloads)) {
		of := func(decimals int, value func(scenario.WorkloadOutcome) *float64) string {
			return s.spread(func(o *scenario.Outcome) (float64, bool) {
				return measured(value(o.Workloads[name]))
			}, decimals)
		}
		number := func(v float64) *float64 { return &v }
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t", name,
			of(0, func(w scenario.WorkloadOutcome) *float64 { return number(float64(w.Count)) }),
			of(2, func(w scenario.WorkloadOutcome) *float64 { return w.P50 }),
			of(2, func(w scenario.WorkloadOutcome) *float64 { return w.P90 }),
			of(2, func(w scenario.WorkloadOutcome) *float64 { return w.P99 }),
			of(2, func(w scenario.WorkloadOutcome) *float64 { return w.Max }),
			of(0, func(w scenario.WorkloadOutcome) *float64 { return number(float64(w.Refused)) }),
			of(0, func(w scenario.WorkloadOutcome) *float64 { return number(float64(w.Unfinished)) }),
			of(3, func(w scenario.WorkloadOutcome) *float64 {
				if w.CPUSeconds == nil {
					return nil
				}
				return number(*w.CPUSeconds / s.Seconds)
			}))
		if marks {
			fmt.Fprintf(t, "%s\t", of(1, func(w scenario.WorkloadOutcome) *float64 { return w.DeadSeconds }))
		}
		fmt.Fprintln(t)
	}
	t.Flush()
}
