package probe

import "container/heap"

// reorderNS is how long an event waits for older ones of other CPUs. A hypervisor may delay a CPU for some ms between
// its look at the clock and its write to the ring.
const reorderNS = 50_000_000

// order sorts events by time. An event that comes too late for that gets the time of the last one.
type order struct {
	waiting queue
	count   uint64
	last    uint64
}

func (o *order) add(e event) {
	o.count++
	heap.Push(&o.waiting, queued{e, o.count})
}

// take passes the events before a time, oldest first.
func (o *order) take(before uint64, each func(*event) error) error {
	for len(o.waiting) > 0 && o.waiting[0].At < before {
		q := heap.Pop(&o.waiting).(queued)
		q.At = max(q.At, o.last)
		o.last = q.At
		if err := each(&q.event); err != nil {
			return err
		}
	}
	return nil
}

type queued struct {
	event
	number uint64
}

// queue is a heap by time; events of one time keep the order of the ring.
type queue []queued

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].At < q[j].At || q[i].At == q[j].At && q[i].number < q[j].number
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(queued)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	(*q)[len(*q)-1] = queued{}
	*q = (*q)[:len(*q)-1]
	return last
}
