package remedy

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
		p.warn("whether this is the host's PID namespace cannot be told; in another one cgroup v1 hides processes, " +
			"and their numbers here are too small")
	}
}
