package gather

import (
	"errors"
	"slices"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// maxListings bounds how often the processes of separate hierarchies are listed again.
const maxListings = 3

// reconcileHierarchies makes the processes of both hierarchies agree. Each is listed at
// another moment, so that what a container forks in between seems to be no
// one's. A process that is in a cpuset before and after the cpu hierarchy is
// listed, and not there, moved; one that was no more there after ended.
func (g *gatherer) reconcileHierarchies() error {
	if g.facts.OneTree || g.facts.CPUVersion == 0 || g.facts.CPUSetVersion == 0 {
		return nil
	}
	unmatchedSets := g.unmatchedSets()
	for look := 0; look < maxListings && len(unmatchedSets) > 0; look++ {
		if err := g.ctx.Err(); err != nil {
			return err
		}
		for _, set := range unmatchedSets {
			if err := g.listSetProcs(set); err != nil {
				return err
			}
		}
		if err := g.listGroupProcs(); err != nil {
			return err
		}
		for _, set := range unmatchedSets {
			if err := g.dropEnded(set); err != nil {
				return err
			}
		}
		unmatchedSets = g.unmatchedSets()
	}
	for path, pids := range g.inSet {
		s := g.facts.Sets[path]
		s.Procs, s.Of = len(pids), map[string]int{}
		for _, pid := range pids {
			s.Of[g.cpuOf[pid]]++
		}
		g.facts.Sets[path] = s
	}
	return nil
}

// unmatchedSets are the cpusets with processes that the cpu hierarchy does not have.
func (g *gatherer) unmatchedSets() []string {
	var all []string
	for set, pids := range g.inSet {
		if slices.ContainsFunc(pids, g.notInCPUHierarchy) {
			all = append(all, set)
		}
	}
	slices.Sort(all)
	return all
}

// notInCPUHierarchy tells whether a process is not in the cpu hierarchy. One outside our
// PID namespace (0) never is.
func (g *gatherer) notInCPUHierarchy(pid int) bool {
	_, known := g.cpuOf[pid]
	return pid > 0 && !known
}

func (g *gatherer) listSetProcs(set string) error {
	pids, err := procs(g.fs, cgroup.CPUSet, set)
	if err != nil && !errors.Is(err, cgroup.ErrNoCgroup) {
		return err
	}
	g.inSet[set] = pids
	return nil
}

func (g *gatherer) listGroupProcs() error {
	for path, group := range g.facts.Groups {
		pids, err := procs(g.fs, cgroup.CPU, path)
		if err != nil && !errors.Is(err, cgroup.ErrNoCgroup) {
			return err
		}
		for _, pid := range pids {
			if pid > 0 {
				g.cpuOf[pid] = path
			}
		}
		group.Procs, g.inGroup[path] = len(pids), pids
		g.facts.Groups[path] = group
	}
	return nil
}

// dropEnded forgets unknown processes that have ended.
func (g *gatherer) dropEnded(set string) error {
	now, err := procs(g.fs, cgroup.CPUSet, set)
	if err != nil && !errors.Is(err, cgroup.ErrNoCgroup) {
		return err
	}
	there := make(map[int]bool, len(now))
	for _, pid := range now {
		there[pid] = true
	}
	g.inSet[set] = slices.DeleteFunc(g.inSet[set], func(pid int) bool { return g.notInCPUHierarchy(pid) && !there[pid] })
	return nil
}
