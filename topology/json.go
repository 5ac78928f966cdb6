package topology

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/utils/cpuset"
)

var null = []byte("null")

// MarshalJSON writes the number, and null for Unknown.
func (id ID) MarshalJSON() ([]byte, error) {
	if id == Unknown {
		return null, nil
	}
	return json.Marshal(int(id))
}

// UnmarshalJSON reads a number from 0 to MaxCPUs-1, and null as Unknown.
func (id *ID) UnmarshalJSON(b []byte) error {
	if bytes.Equal(b, null) {
		*id = Unknown
		return nil
	}
	var n int
	if err := json.Unmarshal(b, &n); err != nil {
		return fmt.Errorf("%s is no id: %w", quote(string(b)), err)
	}
	if n < 0 || n >= MaxCPUs {
		return fmt.Errorf("id %d: outside 0 to %d", n, MaxCPUs-1)
	}
	*id = ID(n)
	return nil
}

// MarshalJSON writes the kind, and null for KindUnknown.
func (k Kind) MarshalJSON() ([]byte, error) {
	if k == KindUnknown {
		return null, nil
	}
	return json.Marshal(string(k))
}

// UnmarshalJSON reads one of the kinds, and null as KindUnknown.
func (k *Kind) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("%s is no kind: %w", quote(string(b)), err)
	}
	switch Kind(s) {
	case KindUnknown, KindPerformance, KindEfficiency:
		*k = Kind(s)
		return nil
	}
	return fmt.Errorf("kind %s: neither %q nor %q", quote(s), KindPerformance, KindEfficiency)
}

// UnmarshalJSON reads a CPU; missing groups are Unknown, and a missing online means online.
func (c *CPU) UnmarshalJSON(b []byte) error {
	type plain CPU
	p := plain{ID: -1, Online: true, Socket: Unknown, Die: Unknown, NUMANode: Unknown,
		L3: Unknown, Core: Unknown, Cluster: Unknown}
	if err := json.Unmarshal(b, &p); err != nil {
		return err
	}
	*c = CPU(p)
	return nil
}

// numaNodeJSON is a NUMANode as JSON shows it.
type numaNodeJSON struct {
	ID          int     `json:"id"`
	CPUs        *string `json:"cpus"`
	Distance    []int   `json:"distance"`
	MemoryBytes *uint64 `json:"memory_bytes"`
}

// MarshalJSON writes the CPUs as a list string ("0-3"), null if they are unknown.
func (n NUMANode) MarshalJSON() ([]byte, error) {
	p := numaNodeJSON{ID: n.ID, Distance: n.Distance, MemoryBytes: n.MemoryBytes}
	if !n.CPUsUnknown {
		list := n.CPUs.String()
		p.CPUs = &list
	}
	return json.Marshal(p)
}

// UnmarshalJSON reads the form of MarshalJSON; a node without the key has no CPUs.
func (n *NUMANode) UnmarshalJSON(b []byte) error {
	none := ""
	p := numaNodeJSON{ID: -1, CPUs: &none}
	if err := json.Unmarshal(b, &p); err != nil {
		return err
	}
	read := NUMANode{ID: p.ID, CPUs: cpuset.New(), CPUsUnknown: p.CPUs == nil, Distance: p.Distance, MemoryBytes: p.MemoryBytes}
	if p.CPUs != nil {
		var err error
		if read.CPUs, err = ParseList(*p.CPUs); err != nil {
			return fmt.Errorf("NUMA node %d: cpus: %w", p.ID, err)
		}
	}
	*n = read
	return nil
}

// MarshalJSON writes the machine in the form of `unthrottle topology --json`.
func (m Machine) MarshalJSON() ([]byte, error) {
	type plain Machine
	if m.CPUs == nil {
		m.CPUs = []CPU{}
	}
	if m.NUMANodes == nil {
		m.NUMANodes = []NUMANode{}
	}
	return json.Marshal(plain(m))
}

// UnmarshalJSON reads the form of MarshalJSON, in any order and with more keys. It refuses impossible machines: ids out
// of range or used twice, and nodes that claim another node's CPUs. A level that cuts a core is Unknown, as in Read.
func (m *Machine) UnmarshalJSON(b []byte) error {
	type plain Machine
	var p plain
	if err := json.Unmarshal(b, &p); err != nil {
		return fmt.Errorf("topology: %w", err)
	}
	read := Machine(p)
	slices.SortFunc(read.CPUs, func(a, b CPU) int { return a.ID - b.ID })
	slices.SortFunc(read.NUMANodes, func(a, b NUMANode) int { return a.ID - b.ID })
	if err := read.check(); err != nil {
		return fmt.Errorf("topology: %w", err)
	}
	read.keepCoresWhole()
	*m = read
	return nil
}

// EntryError is an entry of a description that no machine can have.
type EntryError struct {
	List string // the key of its list: cpus or numa_nodes
	ID   int    // its id; -1 if it is missing
	Why  string
}

func (e *EntryError) Error() string { return e.Why }

// check reports the first impossible entry in a sorted machine.
func (m Machine) check() error {
	if len(m.CPUs) == 0 {
		return fmt.Errorf("cpus: none given")
	}
	for i, c := range m.CPUs {
		wrong := func(format string, args ...any) error {
			return &EntryError{"cpus", c.ID, fmt.Sprintf(format, args...)}
		}
		switch {
		case c.ID < 0 || c.ID >= MaxCPUs:
			return wrong("CPU id %d: missing, or outside 0 to %d", c.ID, MaxCPUs-1)
		case i > 0 && c.ID == m.CPUs[i-1].ID:
			return wrong("CPU %d: given twice", c.ID)
		}
	}
	for i, n := range m.NUMANodes {
		wrong := func(format string, args ...any) error {
			return &EntryError{"numa_nodes", n.ID, fmt.Sprintf(format, args...)}
		}
		switch {
		case n.ID < 0 || n.ID >= MaxNUMANodes:
			return wrong("NUMA node id %d: missing, or outside 0 to %d", n.ID, MaxNUMANodes-1)
		case i > 0 && n.ID == m.NUMANodes[i-1].ID:
			return wrong("NUMA node %d: given twice", n.ID)
		}
		if other := m.notOf(n); !other.IsEmpty() {
			return wrong("NUMA node %d: cpus: %s: the CPUs themselves name another numa_node", n.ID, other)
		}
	}
	return nil
}

// notOf returns the CPUs that a node lists and that name another node.
func (m Machine) notOf(n NUMANode) cpuset.CPUSet {
	return m.where(func(c CPU) bool { return n.CPUs.Contains(c.ID) && c.NUMANode != ID(n.ID) })
}
