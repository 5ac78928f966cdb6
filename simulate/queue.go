package simulate

import "time"

// never is the time of an event that is not due.
const never = time.Duration(-1)

// queue has a slot for each event that can be due, and finds the earliest one:
// a heap of four children per node over slots. Of events at one time the one
// with the smaller slot comes first, so that runs repeat exactly.
type queue struct {
	at   []time.Duration // by slot
	pos  []int32         // place in heap by slot, -1: not due
	heap []int32
}

func newQueue(slots int) queue {
	q := queue{at: make([]time.Duration, slots), pos: make([]int32, slots), heap: make([]int32, 0, slots)}
	for i := range q.pos {
		q.pos[i] = -1
	}
	return q
}

func (q *queue) before(a, b int32) bool {
	return q.at[a] < q.at[b] || q.at[a] == q.at[b] && a < b
}

// set makes an event due at a time, or never.
func (q *queue) set(slot int, at time.Duration) {
	if at == never {
		q.clear(slot)
		return
	}
	s := int32(slot)
	i := q.pos[s]
	if i < 0 {
		q.at[s] = at
		i = int32(len(q.heap))
		q.heap = append(q.heap, s)
		q.up(i)
		return
	}
	earlier := at < q.at[s]
	q.at[s] = at
	if earlier {
		q.up(i)
	} else {
		q.down(i)
	}
}

func (q *queue) due(slot int) bool { return q.pos[slot] >= 0 }

func (q *queue) clear(slot int) {
	i := q.pos[slot]
	if i < 0 {
		return
	}
	last := int32(len(q.heap) - 1)
	moved := q.heap[last]
	q.heap = q.heap[:last]
	q.pos[slot] = -1
	if i == last {
		return
	}
	q.heap[i], q.pos[moved] = moved, i
	q.up(i)
	q.down(q.pos[moved])
}

// pop takes the earliest event out; at is never if there is none.
func (q *queue) pop() (slot int, at time.Duration) {
	if len(q.heap) == 0 {
		return 0, never
	}
	slot = int(q.heap[0])
	at = q.at[slot]
	q.clear(slot)
	return slot, at
}

func (q *queue) up(i int32) {
	s := q.heap[i]
	for i > 0 {
		parent := (i - 1) / 4
		p := q.heap[parent]
		if !q.before(s, p) {
			break
		}
		q.heap[i], q.pos[p] = p, i
		i = parent
	}
	q.heap[i], q.pos[s] = s, i
}

func (q *queue) down(i int32) {
	s, n := q.heap[i], int32(len(q.heap))
	for {
		first := 4*i + 1
		if first >= n {
			break
		}
		best := first
		for c := first + 1; c < min(first+4, n); c++ {
			if q.before(q.heap[c], q.heap[best]) {
				best = c
			}
		}
		if !q.before(q.heap[best], s) {
			break
		}
		b := q.heap[best]
		q.heap[i], q.pos[b] = b, i
		i = best
	}
	q.heap[i], q.pos[s] = s, i
}
