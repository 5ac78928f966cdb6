package placement

import (
	"fmt"
	"testing"

	"github.com/unthrottle/unthrottle/internal/kernel/topologytest"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// Fewer shared cores are paid for with stranded half-cores, whatever the order:
// who has an odd number of CPUs on cores of two threads has part of a core, of
// which another container has the rest, or none.
func TestSharedOrStranded(t *testing.T) {
	for _, order := range []string{"spans", "shared", "stranded", "room,spans"} {
		for _, c := range shapes {
			if c.shape.Threads != 2 {
				continue
			}
			churn := newChurn(t, c.shape, 90)
			o, err := ParseOrder(order)
			if err != nil {
				t.Fatal(err)
			}
			if err := churn.n.setOrder(o); err != nil {
				t.Fatal(err)
			}
			for i := range require.Rounds(t, 200) {
				if churn.step(t); i%10 != 0 {
					continue
				}
				odd := 0
				for _, h := range churn.live {
					odd += churn.n.tenants[h].own % 2
				}
				if s := churn.n.Score(); s.Sharing+s.Stranded < odd {
					t.Fatalf("%s, order %s: %d share, %d stranded, of %d odd ones", c.name, order, s.Sharing, s.Stranded, odd)
				}
			}
		}
	}
}

// The example of docs/results/placement.md: two containers of one CPU, two cores of two
// threads. Both orders have two of something.
func TestNoThirdWay(t *testing.T) {
	for order, want := range map[string][2]int{"stranded": {2, 0}, "shared": {0, 2}} {
		o, err := ParseOrder(order)
		if err != nil {
			t.Fatal(err)
		}
		n, refused, err := NewNode(State{Machine: topologytest.Shape{CoresPerL3: 2, Threads: 2}.Machine(t), Order: o,
			Containers: []Container{{Name: "a", CPUs: 1}, {Name: "b", CPUs: 1}}})
		if err != nil || len(refused) > 0 {
			t.Fatal(refused, err)
		}
		if s := n.Score(); [2]int{s.Sharing, s.Stranded} != want {
			t.Errorf("order %s: %d share, %d stranded, want %v", order, s.Sharing, s.Stranded, want)
		}
	}
}

// setOrder changes the order of the objectives; it moves no container.
func (n *Node) setOrder(o Order) error {
	if err := o.check(); err != nil {
		return fmt.Errorf("placement: %w", err)
	}
	n.order = o.complete()
	n.s.f = newFields(n.l, n.order)
	return nil
}
