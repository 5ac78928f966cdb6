package remedy

import (
	"cmp"
	"slices"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/placement"
	"github.com/unthrottle/unthrottle/topology"
)

// worthCPUs is the load, in CPUs, that makes a choice further apart worth while:
// less than that, closeness decides.
const worthCPUs = 0.5

// spread chooses n CPUs for one that shares them: in one NUMA node if one has
// that many, else in one socket; there the least loaded ones. Of such groups the
// one whose n least loaded CPUs have the least load. CPUs whose load is not known
// (nil: none is) count as idle.
func spread(h placement.Host, n int, load map[int]float64) (placement.Choice, error) {
	best, err := placement.Fit().Place(h, placement.Request{CPUs: n})
	if err != nil || len(load) == 0 {
		return best, err
	}
	for _, level := range []topology.Level{topology.LevelNUMANode, topology.LevelSocket} {
		var found *placement.Choice
		for _, free := range groups(h, level) {
			choice, err := least(placement.Host{Machine: h.Machine, Free: free}, n, load)
			if err == nil && (found == nil || sum(choice.CPUs, load) < sum(found.CPUs, load)) {
				found = &choice
			}
		}
		if found != nil {
			return *found, nil
		}
	}
	return least(h, n, load)
}

// groups are the free CPUs by group of a level, the group of the lowest CPU
// first.
func groups(h placement.Host, level topology.Level) []cpuset.CPUSet {
	var all []cpuset.CPUSet
	at := map[topology.ID]int{}
	for _, c := range h.Machine.CPUs {
		if !h.Free.Contains(c.ID) {
			continue
		}
		i, ok := at[c.At(level)]
		if !ok {
			i = len(all)
			at[c.At(level)], all = i, append(all, cpuset.New())
		}
		all[i] = all[i].Union(cpuset.New(c.ID))
	}
	return all
}

// least chooses n of the least loaded CPUs, those of equal load by closeness.
func least(h placement.Host, n int, load map[int]float64) (placement.Choice, error) {
	byLoad := h.Free.List()
	slices.SortStableFunc(byLoad, func(a, b int) int { return cmp.Compare(step(load[a]), step(load[b])) })
	k := min(n, len(byLoad))
	for k > 0 && k < len(byLoad) && step(load[byLoad[k]]) == step(load[byLoad[k-1]]) {
		k++
	}
	place := func(of []int) (placement.Choice, error) {
		return placement.Fit().Place(placement.Host{Machine: h.Machine, Free: cpuset.New(of...)}, placement.Request{CPUs: n})
	}
	choice, err := place(byLoad[:k])
	if err != nil || sum(choice.CPUs, load) <= sum(cpuset.New(byLoad[:n]...), load)+worthCPUs {
		return choice, err
	}
	return place(byLoad[:n])
}

func sum(cpus cpuset.CPUSet, load map[int]float64) float64 {
	var all float64
	for _, id := range cpus.List() {
		all += load[id]
	}
	return all
}

// step coarsens a load to tenths, so that noise does not decide.
func step(load float64) int { return int(load*10 + 0.5) }
