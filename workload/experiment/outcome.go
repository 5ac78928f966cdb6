package experiment

import (
	"errors"
	"fmt"

	"github.com/unthrottle/unthrottle/scenario"
	"github.com/unthrottle/unthrottle/workload/home"
)

// outcome makes the outcome of two looks and of what the workloads measured.
func outcome(s *scenario.Scenario, jobs []job, first, last look, measured map[string]Measured) (out scenario.Outcome, notes []string, err error) {
	out = scenario.Outcome{
		Seconds: (last.at - first.at).Seconds(), Cgroups: map[string]scenario.CgroupOutcome{}, Workloads: map[string]scenario.WorkloadOutcome{},
	}
	for i, c := range s.Cgroups {
		a, b := first.stats[i], last.stats[i]
		if a.Usage == nil || b.Usage == nil {
			return out, nil, &home.NotMeasurable{What: "the kernel counts no CPU time per cgroup here", WayOut: "mount the cpuacct controller, or cgroup v2"}
		}
		if b.Periods < a.Periods || *b.Usage < *a.Usage {
			return out, nil, errors.New("cgroups." + c.Name + ": its counters ran backwards: somebody else made a cgroup of that name")
		}
		m := measured[c.Name]
		out.Cgroups[c.Name] = scenario.CgroupOutcome{
			Periods: b.Periods - a.Periods, ThrottledPeriods: b.ThrottledPeriods - a.ThrottledPeriods,
			ThrottledSeconds: (b.Throttled - a.Throttled).Seconds(), UsageSeconds: (*b.Usage - *a.Usage).Seconds(),
			ActivePeriods: m.ActivePeriods, StoppedSeconds: m.StoppedSeconds, Width: m.Width,
		}
	}
	for i, j := range jobs {
		figures, more, err := j.end()
		if err != nil {
			return out, nil, err
		}
		for name, w := range figures {
			if s.Workloads[indexOf(s, name)].Kind != scenario.GC {
				used := (last.cpu[i] - first.cpu[i]).Seconds()
				w.CPUSeconds = &used
			}
			out.Workloads[name] = w
		}
		notes = append(notes, more...)
	}
	return out, notes, nil
}

// indexOf is where a workload is; its name is in the scenario.
func indexOf(s *scenario.Scenario, name string) int {
	for i := range s.Workloads {
		if s.Workloads[i].Name == name {
			return i
		}
	}
	panic(fmt.Sprintf("no workload %q", name))
}
