package gather

import (
	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// containers adds what is known of containers only.
func (g *gatherer) containers(all []container.Container) {
	shared := g.sharedSets(all)
	g.peopled = map[string]bool{}
	for path, pids := range g.inSet {
		for at := path; len(pids) > 0 && !g.peopled[at]; at = cgroup.Parent(at) {
			g.peopled[at] = true
		}
	}
	for _, c := range all {
		if _, ok := g.facts.Groups[c.Group.Path]; !ok {
			continue
		}
		own := g.facts.OneTree || g.own(c, shared)
		g.facts.Containers = append(g.facts.Containers, hoststate.Container{Container: c, OwnSet: own})
		if pids := g.inGroup[c.Group.Path]; c.PodUID != "" && len(pids) == 1 && comm(g.o.Root, pids[0]) == pauseComm {
			group := g.facts.Groups[c.Group.Path]
			group.Sandbox = true
			g.facts.Groups[c.Group.Path] = group
		}
	}
}

// own tells whether a cpuset holds the container's processes only. Without any
// process, the same name in both hierarchies must do.
func (g *gatherer) own(c container.Container, shared map[string]bool) bool {
	at := c.Group.CPUSetPath
	if at == "" || at == "/" || shared[c.Group.Path] {
		return false
	}
	return g.peopled[at] || cgroup.Base(at) == cgroup.Base(c.Group.Path)
}

// sharedSets are the containers whose cpuset holds processes of others.
func (g *gatherer) sharedSets(containers []container.Container) map[string]bool {
	shared, owner := map[string]bool{}, map[string]string{}
	for _, c := range containers {
		if other, taken := owner[c.Group.CPUSetPath]; taken {
			shared[c.Group.Path], shared[other] = true, true
			continue
		}
		owner[c.Group.CPUSetPath] = c.Group.Path
	}
	for set, pids := range g.inSet {
		for _, at := range append([]string{set}, ancestors(set)...) {
			path, ok := owner[at]
			if !ok {
				continue
			}
			for _, pid := range pids {
				if in, known := g.cpuOf[pid]; known && !cgroup.Below(in, path) {
					shared[path] = true
				}
			}
		}
	}
	return shared
}

// ancestors are the paths above path, nearest first, "/" last.
func ancestors(path string) []string {
	var all []string
	for path != "/" && path != "" {
		path = cgroup.Parent(path)
		all = append(all, path)
	}
	return all
}
