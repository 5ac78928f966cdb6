package realrun

import (
	"errors"
	"maps"

	"github.com/unthrottle/unthrottle/internal/load/sandbox"
	"github.com/unthrottle/unthrottle/internal/scenario"
)

// outcome makes the outcome of two looks and of what the workloads measured.
func outcome(s *scenario.Scenario, jobs []job, first, last look, measured map[string]Measured) (out scenario.Outcome,
	notes []string, err error) {
	out = scenario.Outcome{
		Seconds: (last.at - first.at).Seconds(), Cgroups: map[string]scenario.CgroupOutcome{},
		Workloads: map[string]scenario.WorkloadOutcome{},
	}
	for i, c := range s.Cgroups {
		a, b := first.stats[i], last.stats[i]
		if a.Usage == nil || b.Usage == nil {
			return out, nil, &sandbox.NotMeasurable{What: "the kernel counts no CPU time per cgroup here",
				WayOut: "mount the cpuacct controller, or cgroup v2"}
		}
		if b.Periods < a.Periods || *b.Usage < *a.Usage {
			return out, nil, errors.New("cgroups." + c.Name + ": its counters ran backwards: another program made a cgroup of that name")
		}
		m := measured[c.Name]
		out.Cgroups[c.Name] = scenario.CgroupOutcome{
			Periods: b.Periods - a.Periods, ThrottledPeriods: b.ThrottledPeriods - a.ThrottledPeriods,
			ThrottledSeconds: (b.Throttled - a.Throttled).Seconds(), UsageSeconds: (*b.Usage - *a.Usage).Seconds(),
			ActivePeriods: m.ActivePeriods, StoppedSeconds: m.StoppedSeconds, Width: m.Width,
		}
	}
	for _, j := range jobs {
		figures, more, err := j.end()
		if err != nil {
			return out, nil, err
		}
		maps.Copy(out.Workloads, figures)
		notes = append(notes, more...)
	}
	for i, j := range jobs {
		used := (last.cpu[i] - first.cpu[i]).Seconds()
		w := out.Workloads[j.workload()]
		w.CPUSeconds = &used
		out.Workloads[j.workload()] = w
	}
	sumShards(s, out.Workloads)
	return out, notes, nil
}
