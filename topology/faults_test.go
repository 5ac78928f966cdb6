package topology_test

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/unthrottle/unthrottle/topology"
)

// TestFaultsOfNodes reads machines whose NUMA nodes contradict themselves: all else is read, and the fault is
// told in the same words each time.
func TestFaultsOfNodes(t *testing.T) {
	node := func(id int) string { return fmt.Sprintf("devices/system/node/node%d/", id) }
	for _, c := range []struct {
		name   string
		change func(fstest.MapFS)
		want   string
	}{
		{"each node lists all CPUs", func(f fstest.MapFS) {
			for id := range 2 {
				set(f, node(id)+"cpulist", "0-7")
			}
		}, "NUMA nodes 0-1 have CPUs in common (0-7): the NUMA node of each CPU is not known"},
		{"nodes overlap", func(f fstest.MapFS) { set(f, node(1)+"cpulist", "1-3,6-7") },
			"NUMA nodes 0-1 have CPUs in common (1): the NUMA node of each CPU is not known"},
		{"one of three is sound", func(f fstest.MapFS) {
			for id, list := range []string{"0,4", "1-3,5-6", "3,7"} {
				set(f, node(id)+"cpulist", list)
			}
		}, "NUMA nodes 1-2 have CPUs in common (3): the NUMA node of each CPU is not known"},
		{"the threads of a core apart", func(f fstest.MapFS) {
			set(f, node(0)+"cpulist", "0-3")
			set(f, node(1)+"cpulist", "4-7")
		}, "the threads of a core are in several NUMA nodes: the NUMA node of each CPU is not known"},
	} {
		tree := small()
		c.change(tree)
		for range 5 {
			m, err := topology.Read(tree)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if diff := cmp.Diff([]string{c.want}, m.Faults); diff != "" {
				t.Errorf("%s: %s", c.name, diff)
			}
			if got, want := countsOf(m), (groupCounts{8, 2, 2, 0, 2, 4, 4}); got != want {
				t.Errorf("%s: %+v, want %+v", c.name, got, want)
			}
			for _, n := range m.NUMANodes {
				if !n.CPUs.IsEmpty() || !n.CPUsUnknown || n.MemoryBytes == nil && n.ID < 2 {
					t.Errorf("%s: node %+v", c.name, n)
				}
			}
		}
	}
}

// TestFaultsOfFiles reads files that hold too little or a byte too much: the machine is whole.
func TestFaultsOfFiles(t *testing.T) {
	for file, content := range map[string]string{
		cpus + "online":                       "",
		cpus + "present":                      "\n",
		cpus + "isolated":                     "\x00",
		cpus + "cpu7/online":                  "",
		cpus + "cpu3/topology/core_cpus_list": "3,7\n\x00",
		"devices/system/node/node1/cpulist":   "2-3,6-7\x00",
	} {
		tree := small()
		if file == cpus+"cpu7/online" {
			delete(tree, cpus+"online")
		}
		set(tree, file, content)
		m, err := topology.Read(tree)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if got, want := countsOf(m), (groupCounts{8, 2, 2, 2, 2, 4, 4}); got != want || len(m.Faults) > 0 || !m.Isolated().IsEmpty() {
			t.Errorf("%s: %+v, want %+v; faults %q", file, got, want, m.Faults)
		}
	}
}
