package placement

import (
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/topology"
)

// Mems returns the NUMA nodes whose memory suits a set of CPUs: for each node
// that the CPUs are on, that node if it has memory, else the nearest that has.
// It is what cpuset.mems wants, where nothing at all stops every task of a v1
// cgroup from being attached. A node whose memory the kernel does not tell
// counts as having some. Where no node of the CPUs is known, all nodes with
// memory are returned; where the machine tells no nodes, the empty set: keep
// the parent's.
func Mems(m topology.Machine, cpus cpuset.CPUSet) cpuset.CPUSet {
	var mems []int
	for _, id := range m.Spans(topology.LevelNUMANode, cpus) {
		for _, n := range m.NUMANodes {
			if topology.ID(n.ID) == id {
				mems = append(mems, nearestMemory(m, n)...)
			}
		}
	}
	if len(mems) > 0 {
		return cpuset.New(mems...)
	}
	for _, n := range m.NUMANodes {
		if hasMemory(n) {
			mems = append(mems, n.ID)
		}
	}
	return cpuset.New(mems...)
}

func hasMemory(n topology.NUMANode) bool { return n.MemoryBytes == nil || *n.MemoryBytes > 0 }

// nearestMemory returns the node with memory at the least distance, the lowest
// of equals; none if the distances do not tell.
func nearestMemory(m topology.Machine, from topology.NUMANode) []int {
	if hasMemory(from) {
		return []int{from.ID}
	}
	if len(from.Distance) != len(m.NUMANodes) {
		return nil
	}
	var nearest []int
	least := 0
	for i, n := range m.NUMANodes {
		if hasMemory(n) && (nearest == nil || from.Distance[i] < least) {
			nearest, least = []int{n.ID}, from.Distance[i]
		}
	}
	return nearest
}
