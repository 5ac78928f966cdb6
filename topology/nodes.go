package topology

import (
	"fmt"
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
		if n.CPUs, err = nodeCPUs(t, folder); err != nil {
			return nil, err
		}
		// Neither decides who runs where: what is odd in them is not said.
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

// nodeCPUs returns a node's CPUs: its cpulist, or where there is none (a saved
// tree that was thinned out) its links to CPUs.
func nodeCPUs(t *tree, folder string) (cpuset.CPUSet, error) {
	cpus, ok, err := t.list(folder+"/cpulist", MaxCPUs)
	if err != nil || ok {
		return cpus, err
	}
	return t.numbered(folder, "cpu", MaxCPUs)
}

// nodeOfCPU turns the nodes' lists round.
func nodeOfCPU(nodes []NUMANode) (map[int]ID, error) {
	of := map[int]ID{}
	for _, n := range nodes {
		for _, cpu := range n.CPUs.UnsortedList() {
			if other, taken := of[cpu]; taken {
				return nil, fmt.Errorf("%s: cpulist: CPU %d is in node %d and in node %d", nodeDir, cpu, min(int(other), n.ID), max(int(other), n.ID))
			}
			of[cpu] = ID(n.ID)
		}
	}
	return of, nil
}

// parseDistance reads "10 21", a distance to each online node in ascending
// order (node_read_distance, drivers/base/node.c); nil if it is something else.
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

// parseMemTotal finds "Node 0 MemTotal:  16303236 kB" (node_read_meminfo,
// drivers/base/node.c), in bytes; nil if it is not there.
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
