package placement

import (
	"fmt"

	"k8s.io/utils/cpuset"
)

// Event is one thing that happens to a node: a container arrives, or one of
// that name leaves.
type Event struct {
	Container
	Leaves bool
}

// Outcome is what became of a node.
type Outcome struct {
	Containers []Placed
	Pool       cpuset.CPUSet // the shared pool
	Refused    []Refused
	Score      Score
	Moves      []Move // that would repair it; nil where none were asked for
	// After is the score that the moves would leave behind.
	After *Score
	State State
}

// Run lets events happen to a node. Containers that are in the state already
// keep their CPUs: for them an arrival is a resize to what it asks for.
func Run(s State, events []Event) (Outcome, error) {
	n, refused, err := NewNode(s)
	if err != nil {
		return Outcome{}, err
	}
	for _, e := range events {
		h, there := n.Find(e.Name)
		switch {
		case e.Leaves && there:
			n.Leave(h)
		case e.Leaves: // it was refused: nothing to do
		case there:
			err = n.Resize(h, e.CPUs)
		default:
			_, err = n.Arrive(e.Container)
		}
		if err != nil {
			refused = append(refused, Refused{e.Name, err})
			err = nil
		}
	}
	return n.outcome(refused), nil
}

// Judge tells what a state costs that another program made, container by
// container as they came; it places nothing. Events are those that led to the
// state; containers of the state that no event names were there before.
// Moves are planned within the budget.
func Judge(s State, events []Event, b Budget) (Outcome, error) {
	if err := s.Order.check(); err != nil {
		return Outcome{}, fmt.Errorf("placement: %w", err)
	}
	n := newNode(s)
	current := map[string]Container{}
	named := map[string]bool{}
	for _, e := range events {
		named[e.Name] = true
	}
	var refused []Refused
	adopt := func(c Container) {
		if _, err := n.Adopt(c); err != nil {
			refused = append(refused, Refused{c.Name, err})
		}
	}
	for _, c := range s.Containers {
		current[c.Name] = c
		if !named[c.Name] {
			adopt(c)
		}
	}
	for _, e := range events {
		if e.Leaves {
			if h, ok := n.Find(e.Name); ok {
				n.evict(h)
			}
			continue
		}
		c := e.Container
		c.Current, c.Idle = current[e.Name].Current, current[e.Name].Idle
		if c.Current.IsEmpty() && c.Class != Secondary && (c.Class != Hybrid || c.own() > 0) {
			refused = append(refused, Refused{e.Name, fmt.Errorf("placement: it has no CPUs in the state that is judged")})
			continue
		}
		adopt(c)
	}
	out := n.outcome(refused)
	if b.Moves > 0 {
		out.Moves = n.Repair(b)
		after := n.Score()
		out.After = &after
	}
	return out, nil
}

// adoptAll takes over a container whatever is left of the pool, and returns the
// CPUs of it that could not be had.
func (n *Node) adoptAll(c Container) (Handle, cpuset.CPUSet) {
	if c.Class == Floating {
		h := n.adoptFloating(c)
		return h, c.Current.Difference(n.Pool())
	}
	h := n.adopt(c, 0)
	return h, c.Current.Difference(n.held(h))
}

func (n *Node) outcome(refused []Refused) Outcome {
	return Outcome{Containers: n.Containers(), Pool: n.Pool(), Refused: refused, Score: n.Score(), State: n.State()}
}
