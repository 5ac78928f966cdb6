package simulate

import "time"

// never is the time of an event that is not due.
const never = time.Duration(-1)

// queue has a slot for each possible event, and finds the earliest one with a heap of four children per node.
// Of events at one time the smaller slot comes first, so that runs repeat exactly.
type queue struct {
	pos  []int32 // place in heap by slot; -1: not due
	heap []due
	// taken is the slot that pop gave last, which stays in its place until another pop: mostly it is set again, to a later
	// time, which is one way down the heap and not two; -1: none.
	taken int32
}

// due is an event in the heap. It holds the time itself, so that the search for the earliest one reads
// neighbours in memory.
type due struct {
	at   time.Duration
	slot int32
}

func (d due) before(o due) bool { return d.at < o.at || d.at == o.at && d.slot < o.slot }

func newQueue(slots int) queue {
	q := queue{pos: make([]int32, slots), heap: make([]due, 0, slots), taken: -1}
	for i := range q.pos {
		q.pos[i] = -1
	}
	return q
}

// set makes an event due at a time, or never.
func (q *queue) set(slot int, at time.Duration) {
	if at == never {
		q.clear(slot)
		return
	}
	d := due{at, int32(slot)}
	i := q.pos[slot]
	if d.slot == q.taken {
		q.taken = -1
	}
	switch {
	case i < 0:
		i = int32(len(q.heap))
		q.heap = append(q.heap, d)
		q.up(i, d)
	case at < q.heap[i].at:
		q.up(i, d)
	default:
		q.down(i, d)
	}
}

func (q *queue) due(slot int) bool { return q.pos[slot] >= 0 && int32(slot) != q.taken }

func (q *queue) clear(slot int) {
	i := q.pos[slot]
	if i < 0 {
		return
	}
	if int32(slot) == q.taken {
		q.taken = -1
	}
	last := int32(len(q.heap) - 1)
	moved := q.heap[last]
	q.heap = q.heap[:last]
	q.pos[slot] = -1
	switch {
	case i == last:
	case i > 0 && moved.before(q.heap[(i-1)/4]):
		q.up(i, moved)
	default:
		q.down(i, moved)
	}
}

// pop takes the earliest event out; at is never if there is none.
func (q *queue) pop() (slot int, at time.Duration) {
	if q.taken >= 0 {
		q.clear(int(q.taken))
	}
	if len(q.heap) == 0 {
		return 0, never
	}
	first := q.heap[0]
	q.taken = first.slot
	return int(first.slot), first.at
}

// up puts an event at place i or above it.
func (q *queue) up(i int32, d due) {
	for i > 0 {
		parent := (i - 1) / 4
		p := q.heap[parent]
		if !d.before(p) {
			break
		}
		q.heap[i], q.pos[p.slot] = p, i
		i = parent
	}
	q.heap[i], q.pos[d.slot] = d, i
}

// down puts an event at place i or below it.
func (q *queue) down(i int32, d due) {
	n := int32(len(q.heap))
	for {
		first := 4*i + 1
		if first >= n {
			break
		}
		best, b := first, q.heap[first]
		for c := first + 1; c < min(first+4, n); c++ {
			if o := q.heap[c]; o.before(b) {
				best, b = c, o
			}
		}
		if !b.before(d) {
			break
		}
		q.heap[i], q.pos[b.slot] = b, i
		i = best
	}
	q.heap[i], q.pos[d.slot] = d, i
}
