package remedy

import (
	"io/fs"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// hidden finds out whether processes are hidden from us; only v1 hides them.
func (g *gatherer) hidden() error {
	if g.facts.CPUVersion != cgroup.V1 && g.facts.CPUSetVersion != cgroup.V1 {
		return nil
	}
	proc, err := fs.Sub(g.o.Root, "proc")
	if err != nil {
		return err
	}
	outside, err := cgroup.OutsideHostPIDs(proc)
	g.facts.HiddenProcesses, g.facts.HiddenUnknown = outside, err != nil
	return nil
}

// Where to run instead.
const hostPIDs = "run unthrottle in the host's PID namespace (hostPID: true)"

// sayHidden tells what a pin cannot know about processes: it goes ahead
// only where it needs none of their numbers.
func (p *planner) sayHidden() {
	switch {
	case p.f.HiddenProcesses:
		p.warn("in this PID namespace cgroup v1 hides other processes: how many processes stay in the root cpuset cannot be counted here, "+
			"nor whether there are some in other cgroups above it; to know, %s", hostPIDs)
	case p.f.HiddenUnknown:
		p.warn("whether this is the host's PID namespace cannot be told; in another one cgroup v1 hides processes, and their numbers here are too small")
	}
}
