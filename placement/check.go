package placement

import (
	"fmt"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/topology"
)

// Check reports what is wrong with a choice, whoever made it: CPUs that may not
// be given away, another number of them than asked for, or counts that are not
// those of its CPUs. It shares no code with the placer, so that each tests the
// other.
func Check(h Host, r Request, c Choice) error {
	if got := c.CPUs.Size(); got != r.CPUs {
		return fmt.Errorf("placement: %d CPUs chosen (%s), %d wanted", got, c.CPUs, r.CPUs)
	}
	online := map[int]topology.CPU{}
	for _, cpu := range h.Machine.CPUs {
		if cpu.Online && !cpu.Isolated {
			online[cpu.ID] = cpu
		}
	}
	for _, id := range c.CPUs.List() {
		if _, ok := online[id]; !ok {
			return fmt.Errorf("placement: CPU %d chosen: it is offline, isolated or not there", id)
		}
		if !h.Free.Contains(id) {
			return fmt.Errorf("placement: CPU %d chosen: it is not free (free: %s)", id, h.Free)
		}
	}
	for _, count := range []struct {
		what string
		said int
		of   func(topology.CPU) topology.ID
	}{
		{"sockets", c.Sockets, func(c topology.CPU) topology.ID { return c.Socket }},
		{"NUMA nodes", c.NUMANodes, func(c topology.CPU) topology.ID { return c.NUMANode }},
		{"L3s", c.L3s, func(c topology.CPU) topology.ID { return c.L3 }},
	} {
		seen := map[topology.ID]bool{}
		known := false
		for _, id := range c.CPUs.UnsortedList() {
			of := count.of(online[id])
			seen[of] = true
			known = known || of != topology.Unknown
		}
		if touched := len(seen); known && touched != count.said || !known && count.said != 0 {
			return fmt.Errorf("placement: %d %s said, %s touches %d", count.said, count.what, c.CPUs, touched)
		}
	}
	if shared := sharedCores(h.Machine, c.CPUs); shared != c.CoresShared {
		return fmt.Errorf("placement: %d cores shared said, of %s %d are", c.CoresShared, c.CPUs, shared)
	}
	return nil
}

// sharedCores counts pair by pair the cores that are half in the set.
func sharedCores(m topology.Machine, set cpuset.CPUSet) int {
	shared := map[topology.ID]bool{}
	for _, in := range m.CPUs {
		for _, out := range m.CPUs {
			if in.Core != topology.Unknown && in.Core == out.Core && set.Contains(in.ID) && out.Online && !set.Contains(out.ID) {
				shared[in.Core] = true
			}
		}
	}
	return len(shared)
}
