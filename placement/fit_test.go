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
		{"an offline sibling is nobody's", offline, "0-3,5-7", 1, "0"},
		{"isolated CPUs are not given", isolated, "0-3", 2, "2-3"},
		{"no CPU 0", late, "5-12", 2, "5,9"},
		{"everything", twoL3s, "0-15", 16, "0-15"},
	} {
		h := placement.Host{Machine: c.shape.Machine(t), Free: parse(t, c.free)}
		r := placement.Request{CPUs: c.n}
		got, err := placement.Fit().Place(h, r)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if !got.CPUs.Equals(parse(t, c.want)) {
			t.Errorf("%s: %s (%s), want %s", c.name, got.CPUs, got.Why, c.want)
		}
		if err := placement.Check(h, r, got); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestWhy(t *testing.T) {
	for _, c := range []struct {
		free, want string
		n          int
	}{
		{"0-1,8-9,4-7,12-15", "in L3 0 (4 of its 4 free), 2 whole cores", 4},
		{"0-1,8,4-6,12-14", "over 2 L3s (most free in one: 6), 4 whole cores", 8},
		{"1-3,8,9-11", "in L3 0 (3 of its 7 free), 1 whole core, 1 core shared with others", 3},
	} {
		got, err := placement.Fit().Place(placement.Host{Machine: twoL3s.Machine(t), Free: parse(t, c.free)}, placement.Request{CPUs: c.n})
		if err != nil || got.Why != c.want {
			t.Errorf("%s, %d: %q, %v; want %q", c.free, c.n, got.Why, err, c.want)
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
		got, err := placement.Fit().Place(placement.Host{Machine: m, Free: parse(t, c.free)}, placement.Request{CPUs: c.n, Prefer: c.prefer})
		if err != nil || got.CPUs.String() != c.want {
			t.Errorf("%+v: %s, %v", c, got.CPUs, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	h := placement.Host{Machine: twoL3s.Machine(t), Free: parse(t, "3-5,99")}
	_, err := placement.Fit().Place(h, placement.Request{CPUs: 4})
	var few *placement.TooFewError
	if !errors.As(err, &few) || *few != (placement.TooFewError{Wanted: 4, Free: 3, Online: 16}) {
		t.Errorf("too few: %v", err)
	}
	if err == nil || !strings.Contains(err.Error(), "4 CPUs wanted, 3 free of 16 online: ask for fewer") {
		t.Errorf("too few: %v", err)
	}
	for _, n := range []int{0, -1} {
		if _, err := placement.Fit().Place(h, placement.Request{CPUs: n}); err == nil || !strings.Contains(err.Error(), "at least 1") {
			t.Errorf("%d CPUs: %v", n, err)
		}
	}
}

// TestCheckSees gives the validator wrong choices.
func TestCheckSees(t *testing.T) {
	h := placement.Host{Machine: twoL3s.Machine(t), Free: parse(t, "0-14")}
	r := placement.Request{CPUs: 2}
	good := placement.Choice{CPUs: cpuset.New(0, 8), Sockets: 1, NUMANodes: 1, L3s: 1}
	if err := placement.Check(h, r, good); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		names  string
		change func(*placement.Choice)
	}{
		{"3 CPUs chosen", func(c *placement.Choice) { c.CPUs = cpuset.New(0, 1, 8) }},
		{"CPU 15 chosen: it is not free", func(c *placement.Choice) { c.CPUs = cpuset.New(7, 15) }},
		{"CPU 99 chosen: it is offline", func(c *placement.Choice) { c.CPUs = cpuset.New(7, 99) }},
		{"2 sockets said", func(c *placement.Choice) { c.Sockets = 2 }},
		{"0 NUMA nodes said", func(c *placement.Choice) { c.NUMANodes = 0 }},
		{"1 L3s said", func(c *placement.Choice) { c.CPUs = cpuset.New(0, 4); c.CoresShared = 2 }},
		{"0 cores shared said", func(c *placement.Choice) { c.CPUs = cpuset.New(0, 1) }},
	} {
		bad := good
		c.change(&bad)
		if err := placement.Check(h, r, bad); err == nil || !strings.Contains(err.Error(), c.names) {
			t.Errorf("%v does not say %q", err, c.names)
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
