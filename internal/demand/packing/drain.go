package packing

import (
	"cmp"
	"slices"
)

const (
	// maxTries bounds the hosts on which a container is tried in vain.
	maxTries = 64
	// maxFailed bounds how many hosts in a row are tried to be drained in vain.
	maxFailed = 4096
)

// drain moves containers off hosts that have too little, and then empties hosts, those with fewest containers first. At
// most so many containers move; below 0: any.
func (s *state) drain(moves int) {
	if moves < 0 {
		moves = len(s.containers)
	}
	on := make([][]int, len(s.hosts))
	for i, host := range s.on {
		if host >= 0 && !s.containers[i].Stays {
			on[host] = append(on[host], i)
		}
	}
	needs := make([]float64, len(s.containers))
	for i := range needs {
		needs[i] = s.need(i)
	}
	for _, containers := range on {
		slices.SortFunc(containers, func(a, b int) int { return cmp.Or(cmp.Compare(needs[b], needs[a]), cmp.Compare(a, b)) })
	}
	// Hosts to drain come last, so that what is moved goes to hosts that stay.
	order, wants := make([]int, len(s.hosts)), make([]float64, len(s.hosts))
	for h := range order {
		order[h], wants[h] = h, s.wants(h)
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(len(on[b]), len(on[a])), cmp.Compare(wants[b], wants[a]), cmp.Compare(a, b))
	})
	d := drainer{s: s, finder: newFinder(s, order), on: on, needs: needs}
	d.spare, _ = slices.BinarySearchFunc(order, 0, func(host, least int) int {
		return cmp.Compare(least, s.movable[host])
	})
	for i := range s.on { // those that have no host yet
		if s.on[i] < 0 && !s.containers[i].Stays {
			d.place(i, len(order), true)
		}
	}
	for _, host := range order {
		moves -= d.relieve(host, moves)
	}
	failed := 0
	for last := len(order) - 1; last > 0 && failed < maxFailed; last-- {
		host := order[last]
		if len(on[host]) == 0 {
			continue
		}
		if len(on[host]) > moves {
			failed++
			continue
		}
		if !d.empty(host, last) {
			failed++
			continue
		}
		moves -= len(on[host])
		on[host], failed = nil, 0
	}
}

// drainer moves containers.
type drainer struct {
	s      *state
	finder *finder
	on     [][]int // containers of each host that may be moved
	needs  []float64
	// spare is where hosts begin in the order that have none of these.
	spare int
}

// place places a container on one of the first hosts in the order, or on another one if spare hosts may be used too.
func (d *drainer) place(i, among int, spare bool) bool {
	s, f := d.s, d.finder
	to := f.find(i, d.needs[i], among)
	if to < 0 && spare {
		for d.spare < len(f.order) && s.movable[f.order[d.spare]] > 0 {
			d.spare++
		}
		for _, host := range f.order[d.spare:min(len(f.order), d.spare+maxTries)] {
			if host != f.closed && s.fits(i, host) {
				to = host
				break
			}
		}
	}
	if to < 0 {
		return false
	}
	s.put(i, to)
	d.on[to] = append(d.on[to], i)
	f.changed(to)
	return true
}

// move moves a container. It is false, and the container where it was, if no host holds it.
func (d *drainer) move(i, among int, spare bool) bool {
	from := d.s.on[i]
	d.s.take(i)
	d.finder.closed = from
	moved := d.place(i, among, spare)
	d.finder.closed = -1
	if !moved {
		d.s.put(i, from)
	}
	d.finder.changed(from)
	return moved
}

// back moves the containers that were moved last back to a host.
func (d *drainer) back(moved []int, host int) {
	for _, i := range slices.Backward(moved) {
		from := d.s.on[i]
		d.on[from] = d.on[from][:len(d.on[from])-1]
		d.s.take(i)
		d.s.put(i, host)
		d.finder.changed(from)
	}
	d.finder.changed(host)
}

// relieve moves as few containers off a host as it takes for it to have enough, and returns how many; none if that is
// more than may move.
func (d *drainer) relieve(host, may int) int {
	var moved, kept []int
	for n, i := range d.on[host] {
		if len(moved) == may || !d.s.isOver(host) {
			kept = append(kept, d.on[host][n:]...)
			break
		}
		if d.move(i, len(d.finder.order), true) {
			moved = append(moved, i)
		} else {
			kept = append(kept, i)
		}
	}
	if len(moved) == 0 {
		return 0
	}
	if d.s.isOver(host) {
		d.back(moved, host)
		return 0
	}
	d.on[host] = kept
	return len(moved)
}

// empty moves all containers of a host to hosts before it in the order, or none.
func (d *drainer) empty(host, among int) bool {
	for n, i := range d.on[host] {
		if !d.move(i, among, false) {
			d.back(d.on[host][:n], host)
			return false
		}
	}
	return true
}

// tiers are the others and the secondaries: they have other CPUs left.
const tiers = 2

func tierOf(secondary bool) int {
	if secondary {
		return 1
	}
	return 0
}

// finder finds hosts with room: a tree over their order, each node with the most CPUs and memory that one below it has
// left.
type finder struct {
	s      *state
	order  []int
	place  []int // of a host in the order
	leaves int
	cpus   [tiers][]float64
	memory []int64
	// closed is a host that is not to be found; -1: none.
	closed int
	tries  int
}

func newFinder(s *state, order []int) *finder {
	f := &finder{s: s, order: order, place: make([]int, len(order)), leaves: 1, closed: -1}
	for f.leaves < len(order) {
		f.leaves *= 2
	}
	f.memory = make([]int64, 2*f.leaves)
	for t := range f.tiers() {
		f.cpus[t] = make([]float64, 2*f.leaves)
	}
	for n := range f.memory {
		f.memory[n] = -1
		for t := range f.tiers() {
			f.cpus[t][n] = -1
		}
	}
	for place, host := range order {
		f.place[host] = place
		f.set(place)
	}
	for n := f.leaves - 1; n > 0; n-- {
		f.sum(n)
	}
	return f
}

// tiers is how many there are.
func (f *finder) tiers() int {
	if f.s.tiers {
		return tiers
	}
	return 1
}

func (f *finder) set(place int) {
	host := f.order[place]
	f.memory[f.leaves+place] = f.s.hosts[host].MemoryBytes - f.s.memory[host]
	for t := range f.tiers() {
		f.cpus[t][f.leaves+place] = f.s.left(host, t == tierOf(true))
	}
}

func (f *finder) sum(n int) {
	f.memory[n] = max(f.memory[2*n], f.memory[2*n+1])
	for t := range f.tiers() {
		f.cpus[t][n] = max(f.cpus[t][2*n], f.cpus[t][2*n+1])
	}
}

// changed takes note of a host whose containers changed.
func (f *finder) changed(host int) {
	f.set(f.place[host])
	for n := (f.leaves + f.place[host]) / 2; n > 0; n /= 2 {
		f.sum(n)
	}
}

// find is the first host, of so many in the order, that holds a container; -1: none was found. Pooled, a container
// takes less than its need: hosts that have but a half of it left are tried too, and where many of those are full it
// gives up.
func (f *finder) find(i int, need float64, among int) int {
	f.tries = maxTries
	return f.below(1, 0, f.leaves, i, need/2, among)
}

func (f *finder) below(n, from, width, i int, need float64, among int) int {
	if from >= among || f.tries == 0 || f.cpus[tierOf(f.s.containers[i].Secondary)][n] < need ||
		f.memory[n] < f.s.containers[i].MemoryBytes {
		return -1
	}
	if width == 1 {
		host := f.order[from]
		if host == f.closed {
			return -1
		}
		f.tries--
		if f.s.fits(i, host) {
			return host
		}
		return -1
	}
	if found := f.below(2*n, from, width/2, i, need, among); found >= 0 {
		return found
	}
	return f.below(2*n+1, from+width/2, width/2, i, need, among)
}
