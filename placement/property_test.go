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

// drawHost draws a machine of at most mostCPUs and some free CPUs of it.
func drawHost(t *rapid.T, tb testing.TB, mostCPUs int) placement.Host {
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
	return placement.Host{Machine: s.Machine(tb), Free: some("free", 70)}
}

// usable are the CPUs that may be given.
func usable(h placement.Host) []int {
	return h.Free.Intersection(h.Machine.Online()).Difference(h.Machine.Isolated()).List()
}

func TestValidAndDeterministic(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := drawHost(rt, t, 64)
		r := placement.Request{CPUs: rapid.IntRange(1, 64).Draw(rt, "n")}
		got, err := placement.Fit().Place(h, r)
		if holds := len(usable(h)) >= r.CPUs; holds != (err == nil) {
			rt.Fatalf("%d usable, %d wanted: %v", len(usable(h)), r.CPUs, err)
		}
		if err != nil {
			return
		}
		if err := placement.Check(h, r, got); err != nil {
			rt.Fatal(err)
		}
		again, err := placement.Fit().Place(h, r)
		if err != nil || !again.CPUs.Equals(got.CPUs) || again.Why != got.Why {
			rt.Fatalf("%+v, then %+v", got, again)
		}
	})
}

// price is what brute force compares: the costs that the placer finds exactly, in
// the default order. Room, distance and the last tie-breaks come after them.
func price(h placement.Host, levels []topology.Level, ids []int) []int {
	set, able := cpuset.New(ids...), cpuset.New(usable(h)...)
	var spans []int
	for _, level := range levels {
		spans = append(spans, len(h.Machine.Spans(level, set)))
	}
	split, stranded, shared := 0, 0, 0
	for _, core := range h.Machine.Spans(topology.LevelCore, set) {
		all := h.Machine.Group(topology.LevelCore, core).Intersection(h.Machine.Online())
		if !all.IsSubsetOf(set) {
			split++
		}
		if !all.Difference(set).Intersection(able).IsEmpty() {
			stranded++
		}
		if !all.IsSubsetOf(able) { // a part is somebody's, or isolated: partly taken before, too
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
		got, err := placement.Fit().Place(h, placement.Request{CPUs: n})
		if err != nil {
			rt.Fatal(err)
		}
		levels := h.Machine.Nesting(topology.LevelSocket, topology.LevelNUMANode, topology.LevelL3)
		ours := price(h, levels, got.CPUs.List())
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
				rt.Fatalf("%s costs %v, %v only %v", got.CPUs, ours, other, p)
			}
		}
	})
}

// TestFillUp takes CPUs until none are left, on real machines.
func TestFillUp(t *testing.T) {
	for _, name := range topologytest.Names(t) {
		m := topologytest.Machine(t, name)
		h := placement.Host{Machine: m, Free: m.Online().Difference(m.Isolated())}
		for i := 0; !h.Free.IsEmpty(); i++ {
			r := placement.Request{CPUs: min(1+i*7%13, h.Free.Size())}
			c, err := placement.Fit().Place(h, r)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if err := placement.Check(h, r, c); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			h.Free = h.Free.Difference(c.CPUs)
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
			h := placement.Host{Machine: m, Free: m.Online()}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := placement.Fit().Place(h, placement.Request{CPUs: c.n}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
