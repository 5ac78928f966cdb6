package placement

import (
	"math/rand/v2"
	"testing"

	"github.com/unthrottle/unthrottle/internal/kernel/topologytest"
)

// churn is a stream of requests against a node that is kept about so full.
type churn struct {
	n     *Node
	rng   *rand.Rand
	sizes []int
	live  []Handle
	most  int
	taken int
}

func newChurn(tb testing.TB, shape topologytest.Shape, percent int) *churn {
	m := shape.Machine(tb)
	n, _, err := NewNode(State{Machine: m})
	if err != nil {
		tb.Fatal(err)
	}
	return &churn{n: n, rng: rand.New(rand.NewPCG(1, 2)), sizes: []int{1, 2, 2, 3, 4, 4, 4, 6, 8, 8, 12, 16},
		live: make([]Handle, 0, len(m.CPUs)), most: len(m.CPUs) * percent / 100}
}

func (c *churn) step(tb testing.TB) {
	size := c.sizes[c.rng.IntN(len(c.sizes))]
	for c.taken+size > c.most {
		i := c.rng.IntN(len(c.live))
		c.taken -= c.n.tenants[c.live[i]].own
		c.n.Leave(c.live[i])
		c.live[i] = c.live[len(c.live)-1]
		c.live = c.live[:len(c.live)-1]
	}
	h, err := c.n.Arrive(Container{CPUs: float64(size)})
	if err != nil {
		tb.Fatal(err)
	}
	c.taken += size
	c.live = append(c.live, h)
}

var shapes = []struct {
	name  string
	shape topologytest.Shape
}{
	{"128-no-smt", topologytest.Shape{L3sPerNode: 16, CoresPerL3: 8}},
	{"256-nps4", topologytest.Shape{Sockets: 2, NodesPerSocket: 4, L3sPerNode: 4, CoresPerL3: 4, Threads: 2}},
	{"240-snc4", topologytest.Shape{Sockets: 2, NodesPerSocket: 4, NodesShareL3: true, CoresPerL3: 15, Threads: 2}},
	{"384-nps1", topologytest.Shape{Sockets: 2, L3sPerNode: 12, CoresPerL3: 8, Threads: 2}},
	{"1024", topologytest.Shape{Sockets: 4, NodesPerSocket: 2, L3sPerNode: 8, CoresPerL3: 8, Threads: 2}},
}

func BenchmarkArrive(b *testing.B) {
	for _, c := range shapes {
		b.Run(c.name, func(b *testing.B) {
			churn := newChurn(b, c.shape, 90)
			for range 300 {
				churn.step(b)
			}
			b.ReportAllocs()
			for b.Loop() {
				churn.step(b)
			}
		})
	}
}

func TestNoGarbage(t *testing.T) {
	for _, c := range shapes {
		churn := newChurn(t, c.shape, 97)
		for range 3000 {
			churn.step(t)
		}
		if got := testing.AllocsPerRun(2000, func() { churn.step(t) }); got != 0 {
			t.Errorf("%s: %v allocations per decision", c.name, got)
		}
	}
}

// BenchmarkLargest places half of a machine of 1,024 CPUs, over sockets: the
// dearest request there is.
func BenchmarkLargest(b *testing.B) {
	m := shapes[len(shapes)-1].shape.Machine(b)
	n, _, err := NewNode(State{Machine: m})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		h, err := n.Arrive(Container{CPUs: 512})
		if err != nil {
			b.Fatal(err)
		}
		n.Leave(h)
	}
}
