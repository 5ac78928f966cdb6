package topology_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/kernel/topologytest"
	"github.com/unthrottle/unthrottle/topology"
)

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }

func abs(n int) int {
	if n < 0 {
		return ^n
	}
	return n
}

// TestJSONAsPromised pins the names of the contract.
func TestJSONAsPromised(t *testing.T) {
	tree := small()
	remove(tree, "/cache/", "cpu1/topology", "node1", "node0/meminfo")
	set(tree, cpus+"present", "0-1")
	set(tree, cpus+"online", "0-1")
	set(tree, cpus+"isolated", "1")
	m, err := topology.Read(tree)
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"cpus":[` +
		`{"id":0,"online":true,"socket":0,"die":0,"numa_node":0,"l3":null,"core":0,"kind":null,"cluster":0,"isolated":false},` +
		`{"id":1,"online":true,"socket":null,"die":null,"numa_node":0,"l3":null,"core":null,"kind":null,"cluster":null,"isolated":true}],` +
		`"numa_nodes":[{"id":0,"cpus":"0-1,4-5","distance":[10,21],"memory_bytes":null}]}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	if empty, _ := json.Marshal(topology.Machine{}); string(empty) != `{"cpus":[],"numa_nodes":[]}` {
		t.Errorf("an empty machine: %s", empty)
	}
}

func TestJSONRoundTrip(t *testing.T) {
	for _, name := range topologytest.Names(t) {
		m := topologytest.Machine(t, name)
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var again topology.Machine
		if err := json.Unmarshal(text, &again); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(m, again, cmp.Comparer(cpuset.CPUSet.Equals)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestJSONRefuses(t *testing.T) {
	for _, c := range []struct{ in, names string }{
		{`{}`, "cpus: none"}, {`{"cpus":[{}]}`, "CPU id -1"}, {`{"cpus":[{"id":8192}]}`, "8192"},
		{`{"cpus":[{"id":1},{"id":1}]}`, "CPU 1: given twice"},
		{`{"cpus":[{"id":1,"socket":-2}]}`, "id -2"}, {`{"cpus":[{"id":1,"socket":"a"}]}`, "is no id"},
		{`{"cpus":[{"id":1,"kind":"odd"}]}`, `"odd"`},
		{`{"cpus":[{"id":1}],"numa_nodes":[{"id":0,"cpus":"1"}]}`, "NUMA node 0: cpus: 1"},
		{`{"cpus":[{"id":1}],"numa_nodes":[{}]}`, "NUMA node id -1"},
		{`{"cpus":[{"id":1}],"numa_nodes":[{"id":0,"cpus":"x"}]}`, `"x" is no number`},
		{`{"cpus":[{"id":1}],"numa_nodes":[{"id":2},{"id":2}]}`, "NUMA node 2: given twice"},
		{`[]`, "topology"},
	} {
		var m topology.Machine
		if err := json.Unmarshal([]byte(c.in), &m); err == nil || !strings.Contains(err.Error(), c.names) {
			t.Errorf("%s: error %v does not name %s", c.in, err, c.names)
		}
	}
}

// TestJSONOfFaults pins what a machine with faulty nodes looks like, and that it reads as it was.
func TestJSONOfFaults(t *testing.T) {
	tree := small()
	set(tree, "devices/system/node/node1/cpulist", "0-7")
	m, err := topology.Read(tree)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	want := `"numa_nodes":[{"id":0,"cpus":null,"distance":[10,21],"memory_bytes":17179869184},{"id":1,"cpus":null,"distance":[21,10],"memory_bytes":17179869184}],` +
		`"faults":["NUMA nodes 0-1 have CPUs in common (0-1,4-5): the NUMA node of each CPU is not known"]}`
	if _, got, _ := strings.Cut(string(text), `],`); got != want {
		t.Errorf("%s", cmp.Diff(want, got))
	}
	var again topology.Machine
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, again, cmp.Comparer(cpuset.CPUSet.Equals)); diff != "" {
		t.Error(diff)
	}
}

func TestJSONByHand(t *testing.T) {
	var m topology.Machine
	if err := json.Unmarshal([]byte(`{"cpus":[{"id":3,"core":7,"more":1},{"id":1}],"by":"hand"}`), &m); err != nil {
		t.Fatal(err)
	}
	if m.Online().String() != "1,3" || m.CPUs[1].Core != 7 || m.CPUs[1].Socket != topology.Unknown {
		t.Errorf("%+v", m)
	}
}
