package scenario

import (
	"k8s.io/utils/cpuset"

	"go.yaml.in/yaml/v3"
)

// Bounds and defaults of a [Topology].
const (
	maxThreadsPerCore = 8
	defaultSibling    = 1.3
	defaultRemote     = 1.3
	maxRemote         = 10
)

// Topology describes unequal CPUs. Its zero value makes all equal. Neighbouring numbers belong together: CPUs
// 0 and 1 are the first core if a core has two.
type Topology struct {
	// ThreadsPerCore is how many CPUs share a core; 0 and 1: none do.
	ThreadsPerCore int
	// Caches is the number of last-level caches, each of as many CPUs; 0 and 1: one.
	Caches int
	// Nodes is the number of memory nodes, each of as many caches; 0 and 1: one.
	Nodes int
	// Sibling is the work of a core with two busy CPUs, as a multiple of that with one: 1 to 2. Each further
	// CPU adds as much as the second.
	Sibling float64
	// Remote is the factor of CPU time of work on a node other than that of the thread's memory, from 1 on.
	Remote float64
}

// Equal reports whether all CPUs are equal.
func (t *Topology) Equal() bool { return t.ThreadsPerCore < 2 && t.Caches < 2 && t.Nodes < 2 }

// topology reads a topology, before the number of CPUs is known.
func (d *decoder) topology(n *yaml.Node, key string) Topology {
	t := Topology{ThreadsPerCore: 1, Caches: 0, Nodes: 1, Sibling: defaultSibling, Remote: defaultRemote}
	d.object(n, key, fields{
		"threads_per_core": d.integer(&t.ThreadsPerCore, 1, maxThreadsPerCore),
		"caches":           d.integer(&t.Caches, 1, MaxCPUs),
		"nodes":            d.integer(&t.Nodes, 1, MaxCPUs),
		"sibling":          d.atLeast(&t.Sibling, 1, 2),
		"remote":           d.atLeast(&t.Remote, 1, maxRemote),
	})
	if t.Caches == 0 {
		t.Caches = t.Nodes
	}
	return t
}

// checkTopology checks what depends on the number of CPUs.
func (d *decoder) checkTopology(h *Host, key string) {
	t := &h.Topology
	if d.err != nil || t.Equal() {
		return
	}
	switch {
	case h.CPUs%t.ThreadsPerCore != 0:
		d.failAt(join(key, "threads_per_core"), "%d CPUs are no whole cores of %d", h.CPUs, t.ThreadsPerCore)
	case h.CPUs/t.ThreadsPerCore%t.Caches != 0:
		d.failAt(join(key, "caches"), "%d cores do not divide into %d equal caches", h.CPUs/t.ThreadsPerCore, t.Caches)
	case t.Caches%t.Nodes != 0:
		d.failAt(join(key, "nodes"), "%d caches do not divide into %d equal nodes", t.Caches, t.Nodes)
	}
}

// checkMems checks a cgroup's memory nodes.
func (d *decoder) checkMems(s *Scenario, c *Cgroup, key string) {
	if c.Mems.IsEmpty() {
		return
	}
	most := max(1, s.Host.Topology.Nodes)
	if list := c.Mems.List(); list[len(list)-1] >= most {
		d.failAt(join(key, "mems"), "%s: the host has memory nodes 0-%d: host.topology.nodes says how many", c.Mems, most-1)
	}
	if s.EffectiveMems(c).IsEmpty() {
		d.failAt(join(key, "mems"), "%s: none of the parent's memory nodes", c.Mems)
	}
}

// EffectiveMems returns the memory nodes that a cgroup may use.
func (s *Scenario) EffectiveMems(c *Cgroup) cpuset.CPUSet {
	return s.intersect(upTo(max(1, s.Host.Topology.Nodes)), c, func(c *Cgroup) cpuset.CPUSet { return c.Mems })
}
