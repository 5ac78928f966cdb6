package main

import (
	"fmt"

	"github.com/containers/nri-plugins/pkg/cpuallocator"
	"github.com/containers/nri-plugins/pkg/sysfs"
	"github.com/go-logr/logr"
	"github.com/kubernetes-sigs/dra-driver-cpu/pkg/cpuinfo"
	"github.com/kubernetes-sigs/dra-driver-cpu/pkg/cpumanager"
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/topology"
)

// peer chooses CPUs out of the free ones.
type peer struct {
	name string
	take func(free cpuset.CPUSet, n int) (cpuset.CPUSet, error)
}

// The peers, in the order of peersOf.
var peerNames = []string{"kubelet", "kubelet, uncore", "nri-plugins", "nri-plugins, pools"}

// kubelet is the static policy's algorithm, as dra-driver-cpu exports it.
func kubelet(m topology.Machine, uncore bool) peer {
	name := "kubelet"
	if uncore {
		name += ", uncore"
	}
	topo := kubeletTopology(m)
	return peer{name, func(free cpuset.CPUSet, n int) (cpuset.CPUSet, error) {
		return cpumanager.TakeByTopologyNUMAPacked(logr.Discard(), topo, free, n, cpumanager.CPUSortingStrategyPacked, uncore)
	}}
}

// kubeletTopology says what the kubelet would know of a machine.
func kubeletTopology(m topology.Machine) *cpuinfo.CPUTopology {
	t := &cpuinfo.CPUTopology{CPUDetails: cpuinfo.CPUDetails{}}
	groups := func(level topology.Level) int { return max(1, m.Groups(level)) }
	known := func(id topology.ID) int { return max(0, int(id)) }
	for _, c := range m.CPUs {
		if !c.Online {
			continue
		}
		t.NumCPUs++
		t.CPUDetails[c.ID] = cpuinfo.CPUInfo{CpuID: c.ID, CoreID: known(c.Core), SocketID: known(c.Socket),
			NUMANodeID: known(c.NUMANode), UncoreCacheID: known(c.L3)}
	}
	t.NumCores, t.NumSockets = groups(topology.LevelCore), groups(topology.LevelSocket)
	t.NumNUMANodes, t.NumUncoreCache = groups(topology.LevelNUMANode), groups(topology.LevelL3)
	t.SMTEnabled = t.NumCPUs > t.NumCores
	return t
}

// nri is the allocator of nri-plugins over the whole node, or after a walk of the pools of its topology-aware
// policy. The walk is simplified: of the smallest domains that hold the request it takes the one with the
// most free CPUs.
func nri(m topology.Machine, dir string, walk bool) (peer, error) {
	sys, err := sysfs.DiscoverSystemAt(dir, sysfs.DiscoverCPUTopology, sysfs.DiscoverMemTopology, sysfs.DiscoverCache)
	if err != nil {
		return peer{}, fmt.Errorf("nri-plugins on %s: %w", dir, err)
	}
	allocator := cpuallocator.NewCPUAllocator(sys)
	take := func(free cpuset.CPUSet, n int) (cpuset.CPUSet, error) {
		from := free.Clone()
		return allocator.AllocateCpus(&from, n, cpuallocator.PriorityNormal.Option())
	}
	if !walk {
		return peer{"nri-plugins", take}, nil
	}
	levels := m.Nesting(topology.LevelSocket, topology.LevelNUMANode, topology.LevelDie, topology.LevelL3)
	var pools [][]cpuset.CPUSet
	for i := len(levels) - 1; i >= 0; i-- {
		var at []cpuset.CPUSet
		for _, id := range m.Spans(levels[i], m.Online()) {
			at = append(at, m.Group(levels[i], id).Intersection(m.Online()))
		}
		pools = append(pools, at)
	}
	return peer{"nri-plugins, pools", func(free cpuset.CPUSet, n int) (cpuset.CPUSet, error) {
		for _, at := range pools {
			best, most := -1, n-1
			for i, pool := range at {
				if size := pool.Intersection(free).Size(); size > most {
					best, most = i, size
				}
			}
			if best >= 0 {
				return take(at[best].Intersection(free), n)
			}
		}
		return take(free, n)
	}}, nil
}
