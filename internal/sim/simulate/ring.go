package simulate

// ring is a queue that keeps its memory.
type ring[T any] struct {
	all     []T
	head, n int
}

// push appends.
func (r *ring[T]) push(v T) {
	if r.n == len(r.all) {
		all := make([]T, max(8, 2*r.n))
		for i := range r.n {
			all[i] = r.all[(r.head+i)%r.n]
		}
		r.all, r.head = all, 0
	}
	at := r.head + r.n
	if at >= len(r.all) {
		at -= len(r.all)
	}
	r.all[at] = v
	r.n++
}

// pop takes the first item of a ring that is not empty.
func (r *ring[T]) pop() T {
	v := r.all[r.head]
	if r.head++; r.head == len(r.all) {
		r.head = 0
	}
	r.n--
	return v
}

// popLast takes the last item of a ring that is not empty.
func (r *ring[T]) popLast() T {
	r.n--
	at := r.head + r.n
	if at >= len(r.all) {
		at -= len(r.all)
	}
	return r.all[at]
}
