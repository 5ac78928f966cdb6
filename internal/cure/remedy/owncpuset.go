package remedy

import (
	"slices"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// members counts the processes of a cgroup of the cpu hierarchy that are in
// that very cpuset.
func (f facts) members(path, set string) int {
	n := 0
	for in, count := range f.Sets[set].Of {
		if in != "" && cgroup.Below(in, path) {
			n += count
		}
	}
	return n
}

// ownSet tells whether the target's cpuset holds its processes only. A cgroup
// that is no leaf (a pod, a slice) is in no list of containers, and is judged
// by where processes are; without any, by the same name in both hierarchies.
func (p *planner) ownSet() bool {
	path, set := p.target.Group.Path, p.target.Group.CPUSetPath
	if p.f.OneTree {
		return true
	}
	if c, ok := p.f.container(path); ok {
		return c.OwnSet
	}
	if set == "" || set == "/" {
		return false
	}
	for _, c := range p.f.Containers {
		if cgroup.Below(c.Group.CPUSetPath, set) && !cgroup.Below(c.Group.Path, path) {
			return false
		}
	}
	peopled := false
	for at, s := range p.f.Sets {
		if !cgroup.Below(at, set) {
			continue
		}
		for in := range s.Of {
			if in != "" && !cgroup.Below(in, path) {
				return false
			}
			peopled = true
		}
	}
	return peopled || cgroup.Base(set) == cgroup.Base(path)
}

// elsewhere are the cpusets beside that one, or with below beside it and those
// below it, that hold processes of the target.
func (p *planner) elsewhere(set string, below bool) []string {
	var all []string
	for at := range p.f.Sets {
		if at != set && !(below && cgroup.Below(at, set)) && p.f.members(p.target.Group.Path, at) > 0 {
			all = append(all, at)
		}
	}
	slices.Sort(all)
	return all
}
