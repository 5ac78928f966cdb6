package placement

import (
	"fmt"

	"k8s.io/utils/cpuset"
)

// Handle names a container of a Node, until it leaves.
type Handle int32

// tenant is a container on a Node.
type tenant struct {
	Container
	live    bool
	own     int    // exclusive CPUs it is to have
	has     int    // exclusive CPUs it has
	arrival uint64 // when it came, in order
	least   [3]int // groups it had to touch when it came: see countedLevels
	ideals  [3]int // and would touch on an empty machine; found for idealOf CPUs
	idealOf int
	floats  []int32 // the slots of a floating one
	density float64 // of a floating one: CPUs it may use, spread over its slots
}

// Node is a node whose containers come, go, grow and shrink. It keeps what it
// needs between calls: placing a container makes no garbage once the node has
// been used for a while. Not for concurrent use.
type Node struct {
	l        *layout
	s        *solver
	order    Order
	tenants  []tenant
	vacant   []Handle
	arrivals uint64
	pool     int // slots that no container owns
	out      []bool
	reserved []bool
	load     []float64 // slot -> measured; -1: not known
	floating []float64 // slot -> what floating containers bring at most
	stamp    [3][]uint32
	stamps   uint32
}

// NewNode makes a node of a state. Containers that have CPUs keep them, as far
// as those exist, may be given and are not an earlier one's; what they lack
// then is found anew, and after that those that have none are placed, each in
// the order of arrival. So a policy, a reserve or a number of CPUs may change
// under a running node. The error tells that the state itself is no good.
func NewNode(s State) (*Node, []Refused, error) {
	if err := s.Order.check(); err != nil {
		return nil, nil, fmt.Errorf("placement: %w", err)
	}
	n := newNode(s)
	var refused []Refused
	var arrive, short []int
	handles := make([]Handle, len(s.Containers))
	for i, c := range s.Containers {
		if c.Class == "" {
			c.Class = Exclusive
		}
		if err := c.check(); err != nil {
			refused = append(refused, Refused{c.Name, fmt.Errorf("placement: %w", err)})
			continue
		}
		if c.own() > 0 && c.Current.IsEmpty() || c.Class == Floating {
			arrive = append(arrive, i)
			continue
		}
		handles[i] = n.adopt(c, 1)
		short = append(short, i)
	}
	for _, i := range short {
		if t := &n.tenants[handles[i]]; t.has != t.own {
			if err := n.mend(handles[i]); err != nil {
				refused = append(refused, Refused{t.Name, err})
				if t.has == 0 {
					n.Leave(handles[i])
				}
			}
		}
	}
	for _, i := range arrive {
		c := s.Containers[i]
		if c.Class == Floating && !c.Current.IsEmpty() {
			n.adoptFloating(c)
			continue
		}
		c.Current, c.Idle = cpuset.New(), cpuset.New()
		if _, err := n.Arrive(c); err != nil {
			refused = append(refused, Refused{c.Name, err})
		}
	}
	n.refloat()
	return n, refused, nil
}

// newNode makes a node without containers.
func newNode(s State) *Node {
	l := newLayout(s.Machine)
	n := &Node{l: l, s: newSolver(l, s.Order), order: s.Order.complete(), out: make([]bool, len(l.ids)), reserved: make([]bool, len(l.ids)),
		load: make([]float64, len(l.ids)), floating: make([]float64, len(l.ids))}
	for i := range n.stamp {
		n.stamp[i] = make([]uint32, l.counts[i]+1)
	}
	for slot, id := range l.ids {
		c, _ := s.Machine.CPU(id)
		n.reserved[slot] = s.Reserved.Contains(id)
		n.out[slot] = c.Isolated || n.reserved[slot] || s.Unavailable.Contains(id)
		if n.out[slot] {
			n.s.owner[slot] = away
		} else {
			n.pool++
		}
	}
	n.SetLoad(s.Load)
	return n
}

// SetLoad tells how busy each CPU was, 0 to 1; those missing are not known.
func (n *Node) SetLoad(load map[int]float64) {
	for slot, id := range n.l.ids {
		n.load[slot] = -1
		if v, ok := load[id]; ok {
			n.load[slot] = v
		}
	}
}

func (n *Node) alive(h Handle) bool { return h >= 0 && int(h) < len(n.tenants) && n.tenants[h].live }

// slots returns the exclusive CPUs of a tenant, valid until the next call.
func (n *Node) slots(h Handle) []int32 {
	n.s.pick = n.s.pick[:0]
	for slot, owner := range n.s.owner {
		if owner == int32(h) && !n.s.idle[slot] {
			n.s.pick = append(n.s.pick, int32(slot))
		}
	}
	return n.s.pick
}

// count counts the groups that slots touch; 0 where the groups are not known.
func (n *Node) count(slots []int32, into *[3]int) {
	n.stamps++
	for i := range into {
		into[i] = 0
		if n.l.counts[i] == 0 {
			continue
		}
		for _, slot := range slots {
			if g := n.l.groups[i][slot]; n.stamp[i][g] != n.stamps {
				n.stamp[i][g] = n.stamps
				into[i]++
			}
		}
	}
}

// AppendCPUs appends the CPUs that are a container's alone, or, of a floating
// one, those it may use. They are in the order of the machine's groups.
func (n *Node) AppendCPUs(to []int, h Handle) []int {
	if !n.alive(h) {
		return to
	}
	for _, slot := range n.tenants[h].floats {
		to = append(to, n.l.ids[slot])
	}
	for slot, owner := range n.s.owner {
		if owner == int32(h) && !n.s.idle[slot] {
			to = append(to, n.l.ids[slot])
		}
	}
	return to
}

// Find returns the container of that name.
func (n *Node) Find(name string) (Handle, bool) {
	for i := range n.tenants {
		if n.tenants[i].live && n.tenants[i].Name == name {
			return Handle(i), true
		}
	}
	return 0, false
}
