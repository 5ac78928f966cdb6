package topology_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/unthrottle/unthrottle/topology"
)

// eachCPU writes a file into each CPU's folder.
func eachCPU(f fstest.MapFS, file string, content func(id int) string) {
	for id := range 8 {
		set(f, fmt.Sprintf("%scpu%d/%s", cpus, id, file), content(id))
	}
}

func always(text string) func(int) string { return func(int) string { return text } }
func itself(id int) string                { return fmt.Sprintln(id) }

// TestLevelsThatAreNone reads what kernels write of levels that a machine lacks: cores 0,4 1,5 2,6 3,7.
func TestLevelsThatAreNone(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(fstest.MapFS)
		want   groupCounts
	}{
		{"die -1 and the CPU itself", func(f fstest.MapFS) {
			eachCPU(f, "topology/die_id", always("-1\n"))
			eachCPU(f, "topology/die_cpus_list", itself)
		}, groupCounts{8, 2, 0, 2, 2, 4, 4}},
		{"cluster -1 and the CPU itself", func(f fstest.MapFS) {
			eachCPU(f, "topology/cluster_id", always("-1\n"))
			eachCPU(f, "topology/cluster_cpus_list", itself)
		}, groupCounts{8, 2, 2, 2, 2, 0, 4}},
		{"-1, whatever the list", func(f fstest.MapFS) { eachCPU(f, "topology/die_id", always("-1\n")) }, groupCounts{8, 2, 0, 2, 2, 4, 4}},
		{"the CPU itself, no number", func(f fstest.MapFS) {
			eachCPU(f, "topology/die_cpus_list", itself)
			eachCPU(f, "topology/cluster_cpus_list", itself)
		}, groupCounts{8, 2, 0, 2, 2, 0, 4}},
		{"some cores with one thread online", func(f fstest.MapFS) {
			set(f, cpus+"online", "0-5")
			remove(f, "cpu6/", "cpu7/")
			for id := range 6 {
				set(f, fmt.Sprintf("%scpu%d/topology/die_cpus_list", cpus, id), itself(id))
			}
			set(f, cpus+"cpu2/topology/core_cpus_list", "2")
			set(f, cpus+"cpu3/topology/core_cpus_list", "3")
		}, groupCounts{6, 2, 0, 2, 2, 4, 4}},
		{"an L3 within the core", func(f fstest.MapFS) { eachCPU(f, "cache/index3/shared_cpu_list", itself) },
			groupCounts{8, 2, 2, 2, 0, 4, 4}},
		{"0 is a number", func(f fstest.MapFS) { eachCPU(f, "topology/die_id", always("0\n")) }, groupCounts{8, 2, 2, 2, 2, 4, 4}},
		{"dies alike to cores", func(f fstest.MapFS) {
			for id := range 8 {
				f[fmt.Sprintf("%scpu%d/topology/die_cpus_list", cpus, id)] = f[fmt.Sprintf("%scpu%d/topology/core_cpus_list", cpus, id)]
			}
		}, groupCounts{8, 2, 4, 2, 2, 4, 4}},
	} {
		tree := small()
		c.change(tree)
		m, err := topology.Read(tree)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := countsOf(m); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// TestThreadsGoWithTheirCore reads a machine one of whose threads tells nothing of its caches.
func TestThreadsGoWithTheirCore(t *testing.T) {
	tree := small()
	remove(tree, "cpu5/cache/")
	m, err := topology.Read(tree)
	if err != nil {
		t.Fatal(err)
	}
	with, _ := m.CPU(1)
	without, _ := m.CPU(5)
	if without.L3 != with.L3 || with.L3 == topology.Unknown {
		t.Errorf("the threads of a core have the L3s %d and %d", with.L3, without.L3)
	}
}

// TestDescribedLevelsThatAreNone reads a description whose clusters cut the core.
func TestDescribedLevelsThatAreNone(t *testing.T) {
	var m topology.Machine
	if err := json.Unmarshal([]byte(`{"cpus":[{"id":0,"core":0,"cluster":0,"socket":0},{"id":1,"core":0,"cluster":1,"socket":0}]}`), &m); err != nil {
		t.Fatal(err)
	}
	for _, c := range m.CPUs {
		if c.Cluster != topology.Unknown || c.Socket != 0 {
			t.Errorf("CPU %d: cluster %d, socket %d", c.ID, c.Cluster, c.Socket)
		}
	}
}
