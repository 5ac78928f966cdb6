package placement_test

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/kernel/topologytest"
	"github.com/unthrottle/unthrottle/placement"
	"github.com/unthrottle/unthrottle/topology"
)

func parse(t testing.TB, list string) cpuset.CPUSet {
	t.Helper()
	s, err := topology.ParseList(list)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// twoL3s is the machine of the package comment.
var twoL3s = topologytest.Shape{L3sPerNode: 2, CoresPerL3: 4, Threads: 2}

// choose takes n of the free CPUs, and checks by arithmetic of its own that they may be taken.
func choose(t fataler, m topology.Machine, free cpuset.CPUSet, n int) cpuset.CPUSet {
	t.Helper()
	got, ok := placement.ChooseFree(m, free, n, topology.KindUnknown)
	may := free.Intersection(m.Online()).Difference(m.Isolated())
	switch {
	case ok != (may.Size() >= n):
		t.Fatalf("%d CPUs of %s: chosen is %v", n, may, ok)
	case ok && (got.Size() != n || !got.IsSubsetOf(may)):
		t.Fatalf("%d CPUs of %s: %s was chosen", n, may, got)
	}
	return got
}

// fataler is what tests, benchmarks and rapid's draws have in common.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func TestExamples(t *testing.T) {
	kubelet := topologytest.Shape{Sockets: 2, CoresPerL3: 10}
	snc := topologytest.Shape{Sockets: 2, NodesPerSocket: 2, NodesShareL3: true, CoresPerL3: 4}
	smt4 := topologytest.Shape{CoresPerL3: 4, Threads: 4, SiblingsTogether: true}
	uneven := topologytest.Shape{Sockets: 2, CoresPerL3: 4, Gone: cpuset.New(5, 6, 7)}
	offline := topologytest.Shape{CoresPerL3: 4, Threads: 2, Offline: cpuset.New(4)}
	isolated := topologytest.Shape{CoresPerL3: 4, Isolated: cpuset.New(0, 1)}
	late := topologytest.Shape{Sockets: 2, CoresPerL3: 2, Threads: 2, FirstCPU: 5}
	for _, c := range []struct {
		name  string
		shape topologytest.Shape
		free  string
		n     int
		want  string
	}{
		{"whole cores", twoL3s, "0-15", 4, "0-1,8-9"},
		{"the tighter L3", twoL3s, "0-1,8-9,4-7,12-15", 4, "0-1,8-9"},
		{"the L3 that holds it", twoL3s, "0-1,8-9,4-7,12-15", 6, "4-6,12-14"},
		{"odd thread to a split core", twoL3s, "1-3,8,9-11", 3, "1,8-9"},
		{"no L3 holds it", twoL3s, "0-1,8,4-6,12-14", 8, "0,4-6,8,12-14"},
		{"where the kubelet crosses sockets", kubelet, "8-19", 4, "10-13"},
		{"a NUMA node inside an L3", snc, "2-3,4-7,8-11", 3, "8-10"},
		{"crossing nodes before sockets", snc, "0-1,4-5,8-9,12", 3, "8-9,12"},
		{"threads by four", smt4, "1-3,4-7,8-11", 4, "4-7"},
		{"threads by four, odd", smt4, "1-3,4-7,8-11", 3, "1-3"},
		{"uneven sockets", uneven, "0-4", 1, "4"},
		{"an offline sibling is not counted", offline, "0-3,5-7", 1, "0"},
		{"isolated CPUs are not given", isolated, "0-3", 2, "2-3"},
		{"no CPU 0", late, "5-12", 2, "5,9"},
		{"everything", twoL3s, "0-15", 16, "0-15"},
	} {
		if got := choose(t, c.shape.Machine(t), parse(t, c.free), c.n); !got.Equals(parse(t, c.want)) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestKinds(t *testing.T) {
	m := topologytest.Machine(t, "hybrid-16") // 0-7 performance, 8-15 efficiency
	for _, c := range []struct {
		free   string
		n      int
		prefer topology.Kind
		want   string
	}{
		{"0-15", 4, topology.KindUnknown, "0-3"},
		{"0-15", 4, topology.KindEfficiency, "8-11"},
		{"6-15", 4, topology.KindUnknown, "8-11"},
		{"6-15", 10, topology.KindUnknown, "6-15"},
	} {
		if got, ok := placement.ChooseFree(m, parse(t, c.free), c.n, c.prefer); !ok || got.String() != c.want {
			t.Errorf("%+v: %s, %v", c, got, ok)
		}
	}
}

// A node tells how many CPUs were wanted and how many are free.
func TestTooFew(t *testing.T) {
	m := twoL3s.Machine(t)
	state := placement.State{Machine: m, Unavailable: m.Present().Difference(parse(t, "3-6"))}
	_, err := placement.Place(state, placement.Container{CPUs: 4})
	var few *placement.TooFewError
	if !errors.As(err, &few) || *few != (placement.TooFewError{Wanted: 4, Free: 3, Online: 16, PoolKeeps: 1}) {
		t.Errorf("%+v, %v", few, err)
	}
	for says, few := range map[string]placement.TooFewError{
		"4 CPUs wanted, 3 free of 16 online: ask for fewer": {Wanted: 4, Free: 3, Online: 16},
		"beside 1 that the shared pool keeps":               {Wanted: 4, Free: 3, Online: 16, PoolKeeps: 1},
		"ask for another number, or without whole cores":    {Wanted: 3, Free: 8, Online: 16, WholeCores: true},
		"ask for fewer, or let siblings be used":            {Wanted: 3, Free: 8, Online: 16, Idle: true},
	} {
		if !strings.Contains(few.Error(), says) {
			t.Errorf("%q does not say %q", few.Error(), says)
		}
	}
}

func TestReserve(t *testing.T) {
	for _, c := range []struct {
		name          string
		shape         topologytest.Shape
		allowed, want string
	}{
		{"a core", twoL3s, "0-15", "0,8"},
		{"the lowest allowed", twoL3s, "2-15", "2,10"},
		{"its thread is not allowed", twoL3s, "0-7", "0"},
		{"fewer than 4 CPUs", topologytest.Shape{Threads: 2}, "0-1", "0"},
		{"no CPU 0", topologytest.Shape{CoresPerL3: 4, Threads: 2, FirstCPU: 3}, "0-99", "3,7"},
		{"CPU 0 offline", topologytest.Shape{CoresPerL3: 4, Threads: 2, Offline: cpuset.New(0)}, "0-7", "1,5"},
		{"CPU 0 isolated", topologytest.Shape{CoresPerL3: 8, Isolated: cpuset.New(0)}, "0-7", "1"},
		{"all isolated", topologytest.Shape{CoresPerL3: 4, Isolated: cpuset.New(0, 1, 2, 3)}, "0-3", "0"},
		{"nothing allowed", twoL3s, "", ""},
	} {
		if got := placement.Reserve(c.shape.Machine(t), parse(t, c.allowed)); got.String() != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestMems(t *testing.T) {
	real := topologytest.Machine(t, "xeon-snc2-112")
	for _, c := range []struct {
		name string
		m    topology.Machine
		cpus string
		want string
	}{
		{"one node", real, "0,4", "0"},
		{"two nodes", real, "0-1", "0-1"},
		{"numbers with gaps", topologytest.Shape{Sockets: 2, CoresPerL3: 2, NodeStep: 3}.Machine(t), "2", "3"},
		{"node 0 without memory", withoutMemory(real, 0), "0", "2"},
		{"no node known", topologytest.Machine(t, "rpi4"), "0", ""},
		{"a CPU of no node", real, "", "0-5"},
	} {
		if got := placement.Mems(c.m, parse(t, c.cpus)); got.String() != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func withoutMemory(m topology.Machine, node int) topology.Machine {
	var none uint64
	nodes := append([]topology.NUMANode(nil), m.NUMANodes...)
	nodes[node].MemoryBytes = &none
	m.NUMANodes = nodes
	return m
}
