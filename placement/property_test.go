package placement_test

import (
	"math/bits"
	"slices"
	"testing"

	"k8s.io/utils/cpuset"
	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/kernel/topologytest"
	"github.com/unthrottle/unthrottle/placement"
	"github.com/unthrottle/unthrottle/topology"
)

// freeOf is a machine and the part of it that may be given away.
type freeOf struct {
	Machine topology.Machine
	Free    cpuset.CPUSet
}

// drawHost draws a machine of at most mostCPUs and some free CPUs of it.
func drawHost(t *rapid.T, tb testing.TB, mostCPUs int) freeOf {
	size := func(label string, most int) int { return rapid.IntRange(1, most).Draw(t, label) }
	s := topologytest.Shape{Sockets: size("sockets", 2), NodesPerSocket: size("nodes", 2), Threads: size("threads", 3),
		SiblingsTogether: rapid.Bool().Draw(t, "together"), NodesShareL3: rapid.Bool().Draw(t, "share"),
		FirstCPU: rapid.IntRange(0, 2).Draw(t, "first")}
	if !s.NodesShareL3 {
		s.L3sPerNode = size("l3s", 2)
	}
	fixed := s.Sockets * s.NodesPerSocket * max(s.L3sPerNode, 1) * s.Threads
	s.CoresPerL3 = size("cores", max(1, min(4, mostCPUs/fixed)))
	some := func(label string, percent int) cpuset.CPUSet {
		var ids []int
		for id := range fixed*s.CoresPerL3 + s.FirstCPU {
			if rapid.IntRange(1, 100).Draw(t, label) <= percent {
				ids = append(ids, id)
			}
		}
		return cpuset.New(ids...)
	}
	s.Gone, s.Offline, s.Isolated = some("gone", 8), some("offline", 8), some("isolated", 8)
	s.Gone = s.Gone.Difference(cpuset.New(s.FirstCPU)) // a machine has a CPU
	return freeOf{s.Machine(tb), some("free", 70)}
}

// usable are the CPUs that may be given.
func usable(h freeOf) []int {
	return h.Free.Intersection(h.Machine.Online()).Difference(h.Machine.Isolated()).List()
}

func TestValidAndDeterministic(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := drawHost(rt, t, 64)
		n := rapid.IntRange(1, 64).Draw(rt, "n")
		got := choose(rt, h.Machine, h.Free, n)
		if again := choose(rt, h.Machine, h.Free, n); !again.Equals(got) {
			rt.Fatalf("%s, then %s", got, again)
		}
	})
}

// price is what brute force compares: the costs that the placer finds exactly, in
// the default order. Room, distance and the last tie-breaks come after them.
func price(h freeOf, levels []topology.Level, ids []int) []int {
	set, able := cpuset.New(ids...), cpuset.New(usable(h)...)
	var spans []int
	for _, level := range levels {
		spans = append(spans, len(h.Machine.Spans(level, set)))
	}
	split, stranded, shared := 0, 0, 0
	for _, core := range h.Machine.Spans(topology.LevelCore, set) {
		cpuSet := h.Machine.Group(topology.LevelCore, core).Intersection(h.Machine.Online())
		if !cpuSet.IsSubsetOf(set) {
			split++
		}
		if !cpuSet.Difference(set).Intersection(able).IsEmpty() {
			stranded++
		}
		if !cpuSet.IsSubsetOf(able) { // a part is exclusive or isolated: partly taken before, too
			stranded--
			shared++
		}
	}
	return append(spans, split, stranded, shared)
}

// TestNothingBetter compares with every possible choice on small machines.
func TestNothingBetter(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := drawHost(rt, t, 8)
		ids := usable(h)
		if len(ids) == 0 || len(ids) > 9 {
			return
		}
		n := rapid.IntRange(1, len(ids)).Draw(rt, "n")
		got := choose(rt, h.Machine, h.Free, n)
		levels := h.Machine.Nesting(topology.LevelSocket, topology.LevelNUMANode, topology.LevelL3)
		ours := price(h, levels, got.List())
		for mask := range 1 << len(ids) {
			if bits.OnesCount(uint(mask)) != n {
				continue
			}
			var other []int
			for i, id := range ids {
				if mask>>i&1 == 1 {
					other = append(other, id)
				}
			}
			if p := price(h, levels, other); slices.Compare(p, ours) < 0 {
				rt.Fatalf("%s costs %v, %v only %v", got, ours, other, p)
			}
		}
	})
}

// TestFillUp takes CPUs until none are left, on real machines.
func TestFillUp(t *testing.T) {
	for _, name := range topologytest.Names(t) {
		m := topologytest.Machine(t, name)
		free := m.Online().Difference(m.Isolated())
		for i := 0; !free.IsEmpty(); i++ {
			free = free.Difference(choose(t, m, free, min(1+i*7%13, free.Size())))
		}
	}
}

func BenchmarkPlace(b *testing.B) {
	for _, c := range []struct {
		name  string
		shape topologytest.Shape
		n     int
	}{
		{"256CPUs-take8", topologytest.Shape{Sockets: 2, NodesPerSocket: 4, L3sPerNode: 2, CoresPerL3: 8, Threads: 2}, 8},
		{"256CPUs-take128", topologytest.Shape{Sockets: 2, NodesPerSocket: 4, L3sPerNode: 2, CoresPerL3: 8, Threads: 2}, 128},
		{"1024CPUs-take8", topologytest.Shape{Sockets: 4, NodesPerSocket: 2, L3sPerNode: 8, CoresPerL3: 8, Threads: 2}, 8},
		{"1024CPUs-take512", topologytest.Shape{Sockets: 4, NodesPerSocket: 2, L3sPerNode: 8, CoresPerL3: 8, Threads: 2}, 512},
	} {
		b.Run(c.name, func(b *testing.B) {
			m := c.shape.Machine(b)
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := placement.ChooseFree(m, m.Online(), c.n, topology.KindUnknown); !ok {
					b.Fatal("refused")
				}
			}
		})
	}
}
