package service

// queue is a bounded line of requests before one or more threads.
type queue struct {
	mu       mutex
	ring     []request
	bound    int // requests that may wait beyond those that idle threads will take
	first, n int
	filled   condition
	longest  int
}

func newQueue(bound, threads int) *queue {
	return &queue{ring: make([]request, bound+threads), bound: bound}
}

// put appends; false: the queue is full.
func (q *queue) put(r request) bool {
	q.mu.lock()
	defer q.mu.unlock()
	if q.n >= q.bound+q.filled.waiting || q.n == len(q.ring) {
		return false
	}
	q.ring[(q.first+q.n)%len(q.ring)] = r
	q.n++
	q.longest = max(q.longest, q.n)
	q.filled.signal()
	return true
}

// take waits for the first of the line; behind says how many wait after it.
func (q *queue) take() (r request, behind int) {
	q.mu.lock()
	defer q.mu.unlock()
	for q.n == 0 {
		q.filled.wait(&q.mu)
	}
	r = q.ring[q.first]
	q.first = (q.first + 1) % len(q.ring)
	q.n--
	return r, q.n
}
