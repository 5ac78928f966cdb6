package remedy

import (
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/schedpolicy"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// realtime gives the target's threads a real-time policy on the CPUs that the
// plan makes its own. Package apply makes single threads of it, and refuses where
// the kernel gives the group no runtime or the program sets policies itself.
func (p *planner) realtime() error {
	switch {
	case !p.r.Realtime:
		return nil
	case p.r.Kind != Pin || p.r.Class == ClassHybrid || p.r.Shares:
		return p.refuse("its threads would run before all others on CPUs that it shares",
			"give it exclusive CPUs for --realtime: --remedy pin without --class hybrid and --lends")
	case p.f.HiddenProcesses && p.f.CPUVersion == cgroup.V1:
		return p.refuse("its threads are hidden here, so they cannot be given a real-time policy", hostPIDs)
	}
	p.plan.Changes = append(p.plan.Changes, change.Change{Kind: change.KindSched, Op: change.OpSet, Controller: cgroup.CPU,
		Path: p.target.Group.Path, File: schedpolicy.Rest, To: schedpolicy.Realtime.String(),
		Why: "before everything else that runs on its CPUs"})
	p.warn("its threads get the policy %s: on CPUs %s they run before the kernel's helpers too, and one that never "+
		"sleeps stops those there "+
		"for most of each second; threads and processes that they start inherit it, also those that leave its "+
		"cgroup, which restore then cannot find",
		schedpolicy.Realtime, p.plan.CPUs)
	return nil
}
