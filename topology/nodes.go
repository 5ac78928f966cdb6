package topology

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/utils/cpuset"
)

// readNodes reads the NUMA nodes, ascending. A kernel without NUMA has none.
func readNodes(t *tree) ([]NUMANode, error) {
	ids, err := t.numbered(nodeDir, "node", MaxNUMANodes)
	if err != nil {
		return nil, err
	}
	nodes := []NUMANode{}
	for _, id := range ids.List() {
		folder := nodeDir + "/node" + strconv.Itoa(id)
		n := NUMANode{ID: id}
		var known bool
		if n.CPUs, known, err = nodeCPUs(t, folder); err != nil {
			return nil, err
		}
		n.CPUsUnknown = !known
		// Neither decides which CPU runs a thread, so faults in them are not reported.
		if text, ok, err := t.text(folder + "/distance"); err == nil && ok {
			n.Distance = parseDistance(text)
		}
		if text, ok, err := t.text(folder + "/meminfo"); err == nil && ok {
			n.MemoryBytes = parseMemTotal(text)
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// nodeCPUs returns a node's CPUs: its cpulist, or its cpumap (the same of node_read_cpumap, drivers/base/node.c). A
// reduced saved tree may have neither; then its links to CPUs count. Without all three its CPUs are unknown: a node
// without CPUs has an empty list.
func nodeCPUs(t *tree, folder string) (cpus cpuset.CPUSet, known bool, err error) {
	if cpus, known, err = t.list(folder + "/cpulist"); known || err != nil {
		return cpus, known, err
	}
	if cpus, known, err = t.set(folder+"/cpumap", ParseMask); known || err != nil {
		return cpus, known, err
	}
	cpus, err = t.numbered(folder, "cpu", MaxCPUs)
	return cpus, !cpus.IsEmpty(), err
}

// placeInNodes assigns CPUs to the nodes that list them. Nodes that list the same CPU count as unknown. Firmware has
// such faults, and numa=fake lists a CPU in each part of its node (numa_add_cpu, mm/numa_emulation.c).
func (m *Machine) placeInNodes() {
	of := map[int]ID{}
	twice, nodes := map[int]bool{}, map[int]bool{}
	for _, n := range m.NUMANodes {
		for _, cpu := range n.CPUs.UnsortedList() {
			if other, taken := of[cpu]; taken {
				twice[cpu], nodes[n.ID], nodes[int(other)] = true, true, true
			}
			of[cpu] = ID(n.ID)
		}
	}
	for i := range m.CPUs {
		c := &m.CPUs[i]
		c.NUMANode = Unknown
		if node, ok := of[c.ID]; ok {
			c.NUMANode = node
		}
	}
	if len(twice) > 0 {
		m.forgetNodes(fmt.Sprintf("NUMA nodes %s have CPUs in common (%s)", short(nodes), short(twice)))
	}
}

// forgetNodes makes the nodes' CPUs unknown, and says why.
func (m *Machine) forgetNodes(why string) {
	for i := range m.CPUs {
		m.CPUs[i].NUMANode = Unknown
	}
	for i := range m.NUMANodes {
		m.NUMANodes[i].CPUs, m.NUMANodes[i].CPUsUnknown = cpuset.New(), true
	}
	m.Faults = append(m.Faults, why+": the NUMA node of each CPU is not known")
}

// short formats a set for a sentence: never long.
func short(set map[int]bool) string {
	const most = 60
	text := cpuset.New(slices.Collect(maps.Keys(set))...).String()
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}

// parseDistance reads "10 21", a distance to each online node in ascending order (node_read_distance,
// drivers/base/node.c); nil for any other text.
func parseDistance(text string) []int {
	var distances []int
	for field := range strings.FieldsSeq(text) {
		d, err := strconv.ParseUint(field, 10, 16)
		if err != nil || len(distances) == MaxNUMANodes {
			return nil
		}
		distances = append(distances, int(d))
	}
	return distances
}

// parseMemTotal finds "Node 0 MemTotal:  16303236 kB" (node_read_meminfo, drivers/base/node.c), in bytes; nil if it is
// missing.
func parseMemTotal(text string) *uint64 {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 5 || f[0] != "Node" || f[2] != "MemTotal:" || f[4] != "kB" {
			continue
		}
		kib, err := strconv.ParseUint(f[3], 10, 50)
		if err != nil {
			return nil
		}
		bytes := kib << 10
		return &bytes
	}
	return nil
}
