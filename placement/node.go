package placement

import (
	"fmt"
	"slices"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/topology"
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
	pool     int // slots that are nobody's
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

// Arrive places a newcomer; its Current does not count. The error is a
// *TooFewError if the node has not got the CPUs.
func (n *Node) Arrive(c Container) (Handle, error) {
	if c.Class == "" {
		c.Class = Exclusive
	}
	if err := c.check(); err != nil {
		return 0, fmt.Errorf("placement: %w", err)
	}
	if c.Class == Floating && up(c.CPUs) > n.pool || n.pool == 0 {
		return 0, fmt.Errorf("placement: %w", &TooFewError{Wanted: up(c.CPUs), Free: n.pool, Online: len(n.l.ids)})
	}
	h := n.admit(c)
	t := &n.tenants[h]
	switch {
	case t.own > 0:
		if err := n.give(h, wish{n: t.own, me: nobody, full: c.FullCores, idle: c.IdleSiblings}); err != nil {
			n.evict(h)
			return 0, err
		}
		n.count(n.s.pick, &t.least)
		n.refloat()
	case c.Class == Floating:
		n.float(t)
	}
	return h, nil
}

// admit makes a record for a container that has no CPUs yet.
func (n *Node) admit(c Container) Handle {
	var h Handle
	if last := len(n.vacant) - 1; last >= 0 {
		h, n.vacant = n.vacant[last], n.vacant[:last]
	} else {
		n.tenants = append(n.tenants, tenant{floats: make([]int32, 0, 8)})
		h = Handle(len(n.tenants) - 1)
	}
	n.arrivals++
	t := &n.tenants[h]
	*t = tenant{Container: c, live: true, own: c.own(), arrival: n.arrivals, floats: t.floats[:0]}
	return h
}

// give chooses CPUs for a tenant and makes them its own.
func (n *Node) give(h Handle, w wish) error {
	if _, ok := n.s.choose(w); !ok {
		return n.tooFew(w)
	}
	taken := w.n
	if w.idle {
		for _, slot := range n.s.pick {
			core := n.l.core[slot]
			for s := n.l.first[core]; s < n.l.first[core+1]; s++ {
				if s != slot && n.s.owner[s] == nobody {
					taken++
				}
			}
		}
	}
	if n.pool-taken < n.poolNeeds() {
		return n.tooFew(w)
	}
	for _, slot := range n.s.pick {
		n.take(slot, h)
		if !w.idle {
			continue
		}
		core := n.l.core[slot]
		for s := n.l.first[core]; s < n.l.first[core+1]; s++ {
			if s != slot && n.s.owner[s] == nobody {
				n.s.owner[s], n.s.idle[s] = int32(h), true
				n.pool--
			}
		}
	}
	return nil
}

func (n *Node) take(slot int32, h Handle) {
	n.s.owner[slot], n.s.idle[slot] = int32(h), false
	n.pool--
	n.tenants[h].has++
}

// drop gives one CPU of a tenant back, with the siblings that idled for it.
func (n *Node) drop(slot int32) {
	h := n.s.owner[slot]
	n.release(slot)
	n.tenants[h].has--
	if t := &n.tenants[h]; !t.IdleSiblings && !t.FullCores {
		return
	}
	core := n.l.core[slot]
	for s := n.l.first[core]; s < n.l.first[core+1]; s++ {
		if n.s.owner[s] == h && n.s.idle[s] {
			n.release(s)
		}
	}
}

func (n *Node) release(slot int32) {
	n.s.owner[slot], n.s.idle[slot] = nobody, false
	if n.out[slot] {
		n.s.owner[slot] = away
		return
	}
	n.pool++
}

// poolNeeds is how small the shared pool may become: never empty, and not
// smaller than what a floating container is to have.
func (n *Node) poolNeeds() int {
	least := 1
	for i := range n.tenants {
		if t := &n.tenants[i]; t.live && t.Class == Floating {
			least = max(least, up(t.CPUs))
		}
	}
	return least
}

func (n *Node) tooFew(w wish) error {
	free := max(0, n.pool-n.poolNeeds())
	few := &TooFewError{Wanted: w.n, Free: free, Online: len(n.l.ids), PoolKeeps: min(n.pool, n.poolNeeds())}
	if free >= w.n && (w.full || w.idle) {
		few.WholeCores, few.Idle = w.full, w.idle
	}
	return fmt.Errorf("placement: %w", few)
}

// Leave takes a container off the node.
func (n *Node) Leave(h Handle) {
	if !n.alive(h) {
		return
	}
	n.evict(h)
	n.refloat()
}

func (n *Node) evict(h Handle) {
	t := &n.tenants[h]
	for slot, owner := range n.s.owner {
		if owner == int32(h) {
			n.release(int32(slot))
		}
	}
	n.sink(t)
	t.live, t.has = false, 0
	n.vacant = append(n.vacant, h)
}

func (n *Node) alive(h Handle) bool { return h >= 0 && int(h) < len(n.tenants) && n.tenants[h].live }

// Resize gives a container more CPUs or fewer. It keeps those it has when it
// grows, and keeps of them when it shrinks. On an error all is as before.
func (n *Node) Resize(h Handle, cpus float64) error {
	if !n.alive(h) {
		return fmt.Errorf("placement: no container has the handle %d", h)
	}
	t := &n.tenants[h]
	changed := t.Container
	changed.CPUs = cpus
	if err := changed.check(); err != nil {
		return fmt.Errorf("placement: %w", err)
	}
	if t.Class == Floating && up(cpus) > n.pool {
		return n.tooFew(wish{n: up(cpus)})
	}
	before, own := t.CPUs, t.own
	t.CPUs, t.own = cpus, changed.own()
	if err := n.settle(h); err != nil {
		t.CPUs, t.own = before, own
		return err
	}
	if t.own > own {
		n.count(n.slots(h), &t.least)
	}
	if t.Class == Floating {
		n.float(t)
	}
	n.refloat()
	return nil
}

// mend settles a tenant that lost CPUs or never had them all. One with whole
// cores may have to leave those of which it has a part.
func (n *Node) mend(h Handle) error {
	err := n.settle(h)
	t := &n.tenants[h]
	if err == nil || t.Stays != "" || !t.FullCores && !t.IdleSiblings {
		return err
	}
	w := wish{n: t.own, me: int32(h), full: t.FullCores, idle: t.IdleSiblings}
	if _, ok := n.s.choose(w); !ok {
		return err
	}
	owner, idle, pool, has := slices.Clone(n.s.owner), slices.Clone(n.s.idle), n.pool, t.has
	n.keepOnly(h, nil)
	if again := n.give(h, w); again != nil {
		copy(n.s.owner, owner)
		copy(n.s.idle, idle)
		n.pool, t.has = pool, has
		return err
	}
	return nil
}

// settle makes the CPUs that a tenant has those that it is to have.
func (n *Node) settle(h Handle) error {
	t := &n.tenants[h]
	w := wish{me: int32(h), full: t.FullCores, idle: t.IdleSiblings}
	switch {
	case t.own > t.has:
		w.n, w.keep = t.own-t.has, true
		return n.give(h, w)
	case t.own < t.has && t.own == 0:
		for slot, owner := range n.s.owner {
			if owner == int32(h) && !n.s.idle[slot] {
				n.drop(int32(slot))
			}
		}
	case t.own < t.has:
		w.n, w.within = t.own, true
		if _, ok := n.s.choose(w); !ok {
			return n.tooFew(w)
		}
		n.keepOnly(h, n.s.pick)
	}
	return nil
}

// keepOnly drops all CPUs of a tenant but some.
func (n *Node) keepOnly(h Handle, slots []int32) {
	const marked = int32(-100)
	for _, slot := range slots {
		n.s.owner[slot] = marked
	}
	for slot, owner := range n.s.owner {
		if owner == int32(h) && !n.s.idle[slot] {
			n.drop(int32(slot))
		}
	}
	for _, slot := range slots {
		n.s.owner[slot] = int32(h)
	}
}

// Offline takes a CPU off the node. Its owner gets another one, close to those
// it keeps; if there is none it keeps what it has, and the error says so.
func (n *Node) Offline(cpu int) error {
	slot, err := n.slot(cpu)
	if err != nil || n.s.owner[slot] == off {
		return err
	}
	owner, idled := n.s.owner[slot], n.s.idle[slot]
	switch {
	case owner >= 0 && !idled:
		n.drop(slot)
		if !n.out[slot] {
			n.pool--
		}
	case owner >= 0:
		n.s.idle[slot] = false
	case owner == nobody:
		n.pool--
	}
	n.s.owner[slot] = off
	if owner >= 0 && !idled {
		err = n.mend(Handle(owner))
	}
	if n.pool == 0 {
		n.refill()
	}
	n.refloat()
	return err
}

// refill takes a CPU for the shared pool off a container when the pool's last
// one has gone: off the one with the most, the youngest of equals. It lacks one
// then, until a CPU comes back. Whole cores are broken up last.
func (n *Node) refill() {
	from := int32(-1)
	worth := func(t *tenant) []uint64 {
		loose := uint64(1)
		if t.FullCores || t.IdleSiblings {
			loose = 0
		}
		return []uint64{loose, uint64(t.has), t.arrival}
	}
	for i := range n.tenants {
		t := &n.tenants[i]
		if t.live && t.has > 0 && (from < 0 || slices.Compare(worth(t), worth(&n.tenants[from])) > 0) {
			from = int32(i)
		}
	}
	if from < 0 {
		return
	}
	slots := n.slots(Handle(from))
	last := slots[len(slots)-1]
	n.drop(last)
	core := n.l.core[last]
	for s := n.l.first[core]; s < n.l.first[core+1] && n.tenants[from].FullCores; s++ {
		if n.s.owner[s] == from {
			n.drop(s)
		}
	}
}

// Online brings a CPU back. Containers that lacked CPUs get theirs, the oldest
// first. A CPU that the node was made without is an error: make the node anew
// from its state and the machine as it is now.
func (n *Node) Online(cpu int) error {
	slot, err := n.slot(cpu)
	if err != nil || n.s.owner[slot] != off {
		return err
	}
	n.release(slot)
	n.rejoin(slot)
	n.repay()
	n.refloat()
	return nil
}

// rejoin gives a CPU that came back to whoever has the rest of its core and is
// to have nobody else on it: as one of its CPUs if it lacks one, else to idle.
func (n *Node) rejoin(slot int32) {
	core := n.l.core[slot]
	for s := n.l.first[core]; s < n.l.first[core+1] && n.s.owner[slot] == nobody; s++ {
		owner := n.s.owner[s]
		if owner < 0 {
			continue
		}
		switch t := &n.tenants[owner]; {
		case t.FullCores && t.has < t.own:
			n.take(slot, Handle(owner))
		case t.FullCores || t.IdleSiblings:
			n.s.owner[slot], n.s.idle[slot] = owner, true
			n.pool--
		}
	}
}

// repay gives CPUs to tenants that have fewer than they are to have.
func (n *Node) repay() {
	for i := range n.tenants {
		if t := &n.tenants[i]; t.live && t.has < t.own {
			// Who lacks more than there is waits for the next CPU.
			_ = n.mend(Handle(i))
		}
	}
}

func (n *Node) slot(cpu int) (int32, error) {
	if cpu < 0 || cpu >= len(n.l.slotOf) || n.l.slotOf[cpu] < 0 {
		return 0, fmt.Errorf("placement: CPU %d was not online when the node was made: make it anew", cpu)
	}
	return n.l.slotOf[cpu], nil
}

// SetOrder changes the order of the objectives; nobody is moved.
func (n *Node) SetOrder(o Order) error {
	if err := o.check(); err != nil {
		return fmt.Errorf("placement: %w", err)
	}
	n.order = o.complete()
	n.s.f = newFields(n.l, n.order)
	return nil
}

// adopt takes over a container with the CPUs it has, as long as the shared pool
// keeps some.
func (n *Node) adopt(c Container, keep int) Handle {
	h := n.admit(c)
	t := &n.tenants[h]
	if t.own > 0 {
		n.leastAt(t)
	}
	for slot, id := range n.l.ids {
		if n.s.owner[slot] == nobody && t.own > 0 && n.pool > keep && c.Current.Contains(id) {
			n.take(int32(slot), h)
		}
	}
	for slot, id := range n.l.ids {
		if n.s.owner[slot] == nobody && (c.IdleSiblings || c.FullCores) && n.pool > keep && c.Idle.Contains(id) {
			n.s.owner[slot], n.s.idle[slot] = int32(h), true
			n.pool--
		}
	}
	return h
}

// leastAt finds how many groups a tenant has to touch as things are now.
func (n *Node) leastAt(t *tenant) {
	t.least = [3]int{}
	if _, ok := n.s.choose(wish{n: t.own, me: nobody, full: t.FullCores, idle: t.IdleSiblings}); ok {
		n.count(n.s.pick, &t.least)
	}
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

// Spans returns the sockets, NUMA nodes and L3s that a container's own CPUs
// touch, 0 where they are not known, and how many it had to touch when it came.
func (n *Node) Spans(h Handle) (now, least [3]int) {
	if !n.alive(h) {
		return now, least
	}
	n.count(n.slots(h), &now)
	return now, n.tenants[h].least
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

// Machine is what the node was made of.
func (n *Node) Machine() topology.Machine { return n.l.machine }

// Adopt takes over a container that has CPUs already, whoever chose them. The
// error tells which of them it cannot have; it has the others then.
func (n *Node) Adopt(c Container) (Handle, error) {
	if c.Class == "" {
		c.Class = Exclusive
	}
	if err := c.check(); err != nil {
		return 0, fmt.Errorf("placement: %w", err)
	}
	h, missing := n.adoptAll(c)
	if !missing.IsEmpty() {
		return h, fmt.Errorf("placement: CPUs %s are an earlier container's too, or reserved, offline or not there", missing)
	}
	return h, nil
}
