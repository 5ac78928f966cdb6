package topology

import (
	"slices"
	"sort"

	"k8s.io/utils/cpuset"
)

// MaxCPUs bounds CPU ids: every id is below it. It is the largest NR_CPUS an
// x86 kernel can be built with (arch/x86/Kconfig, NR_CPUS_RANGE_END).
const MaxCPUs = 8192

// MaxNUMANodes bounds NUMA node numbers: every one is below it. It is the
// largest MAX_NUMNODES of an x86 kernel (arch/x86/Kconfig, NODES_SHIFT 10).
const MaxNUMANodes = 1024

// ID names a group of CPUs. Two CPUs share an ID at one level exactly where
// the kernel's sibling lists of that level are equal. IDs are consecutive from
// 0 in the order of each group's lowest CPU, except for NUMA nodes, which keep
// the kernel's numbers. JSON shows Unknown as null.
type ID int

// Unknown is the ID where the kernel does not show the group.
const Unknown ID = -1

// Kind distinguishes performance from efficiency cores. JSON shows KindUnknown as null.
type Kind string

// The kinds of CPUs.
const (
	KindUnknown     Kind = ""            // the kernel does not say, or all CPUs are alike
	KindPerformance Kind = "performance" // Intel cpu_core; elsewhere above the widest gap between capacities
	KindEfficiency  Kind = "efficiency"  // Intel cpu_atom, cpu_lowpower; elsewhere below that gap
)

// CPU is one logical CPU (a hardware thread).
type CPU struct {
	ID       int  `json:"id"` // the kernel's number
	Online   bool `json:"online"`
	Socket   ID   `json:"socket"`
	Die      ID   `json:"die"`
	NUMANode ID   `json:"numa_node"` // the kernel's number
	L3       ID   `json:"l3"`        // CPUs that share a unified level 3 cache
	Core     ID   `json:"core"`      // hardware threads of one physical core
	Kind     Kind `json:"kind"`
	Cluster  ID   `json:"cluster"`  // cores that share an L2 cache or L3 tags, as the kernel groups them
	Isolated bool `json:"isolated"` // taken from the scheduler's domains at boot (isolcpus)
}

// NUMANode is one memory node; it may have no CPUs, or no memory.
type NUMANode struct {
	ID   int           // the kernel's number; numbers may have gaps
	CPUs cpuset.CPUSet // its online CPUs
	// CPUsUnknown reports that CPUs is empty because the kernel does not show them. JSON shows null.
	CPUsUnknown bool
	// Distance holds the kernel's distance to each node of [Machine.NUMANodes], in that order (10: local); nil if
	// unknown.
	Distance []int
	// MemoryBytes is the node's memory; nil if unknown.
	MemoryBytes *uint64
}

// Machine is the kernel's description of a machine's CPUs and memory nodes.
type Machine struct {
	CPUs      []CPU      `json:"cpus"`       // all present ones, ascending by ID, offline ones too
	NUMANodes []NUMANode `json:"numa_nodes"` // ascending by ID
	// Faults are contradictions between files of firmware and kernel, a sentence each, with the values that are
	// therefore Unknown. Sound machines have none.
	Faults []string `json:"faults,omitempty"`
}

// Level is one way in which a machine groups its CPUs.
type Level string

// The levels. Their usual order is from wide to narrow, but machines differ:
// a NUMA node holds several L3s on some and is a part of one on others.
const (
	LevelSocket   Level = "socket"
	LevelDie      Level = "die"
	LevelNUMANode Level = "NUMA node"
	LevelL3       Level = "L3"
	LevelCluster  Level = "cluster"
	LevelCore     Level = "core"
)

// At returns the CPU's group at a level; Unknown for an invalid level.
func (c CPU) At(level Level) ID {
	if id := c.at(level); id != nil {
		return *id
	}
	return Unknown
}

// at returns a pointer to the CPU's group at a level; nil for an invalid level.
func (c *CPU) at(level Level) *ID {
	switch level {
	case LevelSocket:
		return &c.Socket
	case LevelDie:
		return &c.Die
	case LevelNUMANode:
		return &c.NUMANode
	case LevelL3:
		return &c.L3
	case LevelCluster:
		return &c.Cluster
	case LevelCore:
		return &c.Core
	}
	return nil
}

// CPU returns the CPU with this id, and whether it is present.
func (m Machine) CPU(id int) (CPU, bool) {
	i := sort.Search(len(m.CPUs), func(i int) bool { return m.CPUs[i].ID >= id })
	if i < len(m.CPUs) && m.CPUs[i].ID == id {
		return m.CPUs[i], true
	}
	return CPU{}, false
}

// Present returns all CPUs, offline ones too.
func (m Machine) Present() cpuset.CPUSet {
	return m.where(func(CPU) bool { return true })
}

// Online returns the CPUs that are online.
func (m Machine) Online() cpuset.CPUSet {
	return m.where(func(c CPU) bool { return c.Online })
}

// Isolated returns the CPUs that were isolated at boot.
func (m Machine) Isolated() cpuset.CPUSet {
	return m.where(func(c CPU) bool { return c.Isolated })
}

// Group returns the CPUs of one group; for Unknown, those whose group at that level is unknown.
func (m Machine) Group(level Level, id ID) cpuset.CPUSet {
	return m.where(func(c CPU) bool { return c.At(level) == id })
}

// Spans returns the groups of a level that the set touches, ascending, each once. Unknown is among them (first) if a
// CPU of the set has no known group. It ignores CPUs that the machine lacks.
func (m Machine) Spans(level Level, set cpuset.CPUSet) []ID {
	seen := map[ID]bool{}
	var ids []ID
	for _, c := range m.CPUs {
		if id := c.At(level); set.Contains(c.ID) && !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func (m Machine) where(keep func(CPU) bool) cpuset.CPUSet {
	ids := make([]int, 0, len(m.CPUs))
	for _, c := range m.CPUs {
		if keep(c) {
			ids = append(ids, c.ID)
		}
	}
	return cpuset.New(ids...)
}
