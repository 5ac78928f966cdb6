package placement

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/kernel/topologytest"
	"github.com/unthrottle/unthrottle/test/lab/require"
	"github.com/unthrottle/unthrottle/topology"
)

// stepsOfTest is how many random steps are taken and checked: 10,000, or as
// many as PLACEMENT_STEPS says; a tenth of them under -short.
func stepsOfTest(t *testing.T) int {
	text := os.Getenv("PLACEMENT_STEPS")
	if text == "" {
		return require.Rounds(t, 10_000)
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("PLACEMENT_STEPS=%s: give a number of steps", text)
	}
	return n
}

// TestRandomSteps does to nodes of all shapes what can be done to them, and
// checks the state after each step.
func TestRandomSteps(t *testing.T) {
	var machines []topology.Machine
	for _, name := range topologytest.Names(t) {
		machines = append(machines, topologytest.Machine(t, name))
	}
	for _, s := range []topologytest.Shape{
		{Sockets: 2, NodesPerSocket: 2, L3sPerNode: 2, CoresPerL3: 4, Threads: 2},
		{L3sPerNode: 4, CoresPerL3: 4},
		{CoresPerL3: 4, Threads: 4, SiblingsTogether: true},
		{Sockets: 2, NodesPerSocket: 2, NodesShareL3: true, CoresPerL3: 6, Threads: 2, Isolated: cpuset.New(3), Offline: cpuset.New(7)},
		{Sockets: 3, CoresPerL3: 5, Threads: 2, Gone: cpuset.New(2, 9, 11), FirstCPU: 3},
	} {
		machines = append(machines, s.Machine(t))
	}
	// Those that bench-placement makes: with the saved ones they are its ten.
	for _, s := range shapes {
		machines = append(machines, s.shape.Machine(t))
	}
	steps := stepsOfTest(t)
	for i, m := range machines {
		rng := rand.New(rand.NewPCG(uint64(i), 7))
		done := 0
		for done < steps/len(machines) {
			walk := newWalk(t, m, rng)
			for range require.Rounds(t, max(200, len(m.CPUs))) { // until a large machine is full, too
				did := walk.step()
				done++
				if err := walk.check(); err != nil {
					t.Fatalf("machine %d, after %s: %v", i, did, err)
				}
			}
		}
	}
}

// walk is a node to which random things happen.
type walk struct {
	t    *testing.T
	m    topology.Machine
	n    *Node
	rng  *rand.Rand
	live []Handle
	name int
}

func newWalk(t *testing.T, m topology.Machine, rng *rand.Rand) *walk {
	w := &walk{t: t, m: m, rng: rng}
	ids := m.Online().Difference(m.Isolated()).List()
	s := State{Machine: m}
	if rng.IntN(2) == 0 {
		s.Reserved = Reserve(m, m.Online())
	}
	if rng.IntN(3) == 0 && len(ids) > 4 {
		s.Unavailable = cpuset.New(ids[rng.IntN(len(ids))])
	}
	orders := []string{"spans", "shared,spans", "room", "distance,spans", "stranded,l3s,split", "changes,split,numa_nodes"}
	var err error
	if s.Order, err = ParseOrder(orders[rng.IntN(len(orders))]); err != nil {
		t.Fatal(err)
	}
	if w.n, _, err = NewNode(s); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *walk) step() string {
	switch pick := w.rng.IntN(100); {
	case pick < 45 || len(w.live) == 0:
		w.name++
		c := Container{Name: fmt.Sprintf("c%d", w.name), CPUs: float64(1 + w.rng.IntN(6))}
		switch w.rng.IntN(10) {
		case 0, 1:
			c.CPUs = float64(1 + w.rng.IntN(max(1, len(w.n.l.ids)/2)))
		case 2:
			c.FullCores = true
		case 3:
			c.IdleSiblings = true
		case 4:
			c.Class, c.CPUs = Hybrid, c.CPUs-0.5
		case 5:
			c.Class, c.CPUs = Floating, c.CPUs-0.3
		case 6:
			c.Class, c.SharesIdle = Secondary, false
		case 7:
			c.SharesIdle, c.Immovable = true, "asked to stay"
		}
		h, err := w.n.Arrive(c)
		if err == nil {
			w.live = append(w.live, h)
		}
		return fmt.Sprintf("arrive %+v: %v", c, err)
	case pick < 70:
		i := w.rng.IntN(len(w.live))
		h := w.live[i]
		w.live[i] = w.live[len(w.live)-1]
		w.live = w.live[:len(w.live)-1]
		w.n.Leave(h)
		return "leave"
	case pick < 80:
		return w.resize()
	case pick < 95:
		return w.repair()
	case pick < 97:
		load := map[int]float64{}
		for _, id := range w.n.l.ids {
			load[id] = w.rng.Float64()
		}
		w.n.SetLoad(load)
		return "load"
	}
	return w.restart()
}

func (w *walk) resize() string {
	h := w.live[w.rng.IntN(len(w.live))]
	before := w.n.held(h)
	cpus := float64(1 + w.rng.IntN(8))
	err := w.n.Resize(h, cpus)
	after := w.n.held(h)
	if !before.IsSubsetOf(after) && !after.IsSubsetOf(before) {
		w.t.Fatalf("resized from %s to %s", before, after)
	}
	if err != nil && !before.Equals(after) {
		w.t.Fatalf("not resized (%v), yet from %s to %s", err, before, after)
	}
	return fmt.Sprintf("resize %d to %v: %v", h, cpus, err)
}

// repair checks the state after each move.
func (w *walk) repair() string {
	before := w.n.State()
	// Floating containers leave CPUs before these become exclusive.
	before.Containers = slices.DeleteFunc(before.Containers, func(c Container) bool { return c.Class == Floating })
	worse := w.n.Score()
	moves := w.n.Repair(Budget{Moves: 8})
	better := w.n.Score()
	for level := range better.Crossings {
		a, b := worse.Crossings[level], better.Crossings[level]
		if b.Avoidable+b.Forced > a.Avoidable+a.Forced {
			w.t.Fatalf("repair made %ss worse: %+v, %+v", b.Level, a, b)
		}
	}
	overlapping := false
	for _, m := range moves {
		for i := range before.Containers {
			c := &before.Containers[i]
			if c.Name != m.Container {
				continue
			}
			if !c.Current.Equals(m.From) || c.Immovable != "" || m.From.Equals(m.To) {
				w.t.Fatalf("move %+v of %+v", m, c)
			}
			c.Current, c.Idle = m.To, m.Idle
		}
		overlapping = m.Overlaps
		if err := checkState(before); err != nil && !overlapping {
			w.t.Fatalf("after move %+v of %+v: %v", m, moves, err)
		}
	}
	return fmt.Sprintf("repair of %d moves", len(moves))
}

// restart makes the node anew from its state.
func (w *walk) restart() string {
	before := w.n.State()
	n, _, err := NewNode(before)
	if err != nil {
		w.t.Fatal(err)
	}
	w.n, w.live = n, w.live[:0]
	for i := range n.tenants {
		if n.tenants[i].live {
			w.live = append(w.live, Handle(i))
		}
	}
	for _, c := range before.Containers {
		h, ok := n.Find(c.Name)
		if !ok {
			if c.own() > 0 && !c.Current.IsEmpty() {
				w.t.Fatalf("lost %+v", c)
			}
			continue
		}
		// One with whole cores may have to leave those it has in part.
		if own := n.held(h); c.own() > 0 && !c.FullCores && !c.IdleSiblings && !c.Current.IsSubsetOf(own) {
			w.t.Fatalf("%s had %s, has %s", c.Name, c.Current, own)
		}
	}
	return "restart"
}

func (w *walk) check() error {
	counted := 0
	for _, owner := range w.n.s.owner {
		if owner == unowned {
			counted++
		}
	}
	if counted != w.n.pool {
		return fmt.Errorf("the pool has %d CPUs, not %d", counted, w.n.pool)
	}
	return checkState(w.n.State())
}
