package placement_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/kernel/topologytest"
	"github.com/unthrottle/unthrottle/topology"
)

// peerTables are the peers' own test tables as data, read out of their test files;
// the file names its sources.
type peerTables struct {
	Sources  []string
	Machines map[string][][5]int // CPU, core, socket, NUMA node, L3
	Cases    []struct {
		What, Machine, Free, Want string
		CPUs                      int
		Refused                   bool
	}
}

// TestPeersTables places what the tests of the kubelet, of dra-driver-cpu and of
// nri-plugins place. Our choice must be valid, and never worse than what those
// tests expect: in sockets, NUMA nodes and L3s touched, the widest level first,
// then in cores of which it has a part.
func TestPeersTables(t *testing.T) {
	text, err := os.ReadFile("testdata/peers.json")
	if err != nil {
		t.Fatal(err)
	}
	var tables peerTables
	if err := json.Unmarshal(text, &tables); err != nil {
		t.Fatal(err)
	}
	ran, better := map[string]int{}, 0
	for _, c := range tables.Cases {
		who, _, _ := strings.Cut(c.What, "/")
		m := peersMachine(t, tables, c.Machine)
		want := list(t, c.Want)
		got := choose(t, m, list(t, c.Free), c.CPUs)
		if got.IsEmpty() {
			ran[who+" refused"]++
			continue
		}
		if c.Refused || want.Size() != c.CPUs {
			ran[who+" placed, which the peer refuses by an option"]++
			continue
		}
		ours, theirs := touches(m, got), touches(m, want)
		switch slices.Compare(ours, theirs) {
		case 1:
			t.Errorf("%s: %s costs %v, %s only %v", c.What, got, ours, c.Want, theirs)
		case -1:
			better++
		}
		ran[who+" placed"]++
	}
	t.Logf("%v; better than expected there: %d; %q", ran, better, tables.Sources)
	for who, least := range map[string]int{"kubelet placed": 55, "nri-plugins placed": 15} {
		if ran[who] < least {
			t.Errorf("%d %s, want %d: the tables are not as they were", ran[who], who, least)
		}
	}
}

func list(t *testing.T, text string) cpuset.CPUSet {
	t.Helper()
	set, err := topology.ParseList(text)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// peersMachine is a machine of the tables, or one of the saved ones.
func peersMachine(t *testing.T, tables peerTables, name string) topology.Machine {
	t.Helper()
	rows, ok := tables.Machines[name]
	if !ok {
		return topologytest.Machine(t, name)
	}
	var m topology.Machine
	nodes := map[int][]int{}
	for _, r := range rows {
		m.CPUs = append(m.CPUs, topology.CPU{ID: r[0], Core: topology.ID(r[1]), Socket: topology.ID(r[2]),
			NUMANode: topology.ID(r[3]), L3: topology.ID(r[4]),
			Online: true, Die: topology.Unknown, Cluster: topology.Unknown})
		nodes[r[3]] = append(nodes[r[3]], r[0])
	}
	for id := range 64 {
		if cpus := nodes[id]; cpus != nil {
			m.NUMANodes = append(m.NUMANodes, topology.NUMANode{ID: id, CPUs: cpuset.New(cpus...)})
		}
	}
	return m
}

// touches is what a set touches: groups at each level, the widest first, then
// cores of which it has a part.
func touches(m topology.Machine, set cpuset.CPUSet) []int {
	var out []int
	for _, level := range m.Nesting(topology.LevelSocket, topology.LevelNUMANode, topology.LevelL3) {
		out = append(out, len(m.Spans(level, set)))
	}
	split := 0
	for _, core := range m.Spans(topology.LevelCore, set) {
		if !m.Group(topology.LevelCore, core).IsSubsetOf(set) {
			split++
		}
	}
	return append(out, split)
}
