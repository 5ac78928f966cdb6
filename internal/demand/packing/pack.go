package packing

import (
	"cmp"
	"math"
	"slices"
)

// shape is a group of containers of about one size and one relation of memory to CPUs.
type shape struct {
	cpus, memory float64 // of the containers, on average
	left         []int   // the largest is last
	secondary    bool
}

const (
	sizesPerOctave  = 4
	shapesPerOctave = 1
)

// packAnew places all containers from nothing, host by host, the largest host first. It is false if some fit on none.
func (s *state) packAnew() bool {
	shapes := s.shapes()
	order := s.largestFirst()
	refused := make([]bool, len(shapes))
	left := 0
	for n := range shapes {
		left += len(shapes[n].left)
	}
	for _, host := range order {
		if left == 0 {
			break
		}
		clear(refused)
		for _, secondary := range []bool{false, true} { // what the others leave idle is known only then
			left -= s.fill(shapes, refused, host, secondary)
		}
	}
	for n := range shapes {
		for _, i := range shapes[n].left {
			if !s.placeFirst(i, order) {
				return false
			}
		}
	}
	return true
}

// fill places secondaries, or others, on a host until none fits, and returns how many.
func (s *state) fill(shapes []shape, refused []bool, host int, secondary bool) (placed int) {
	for {
		best := s.suits(shapes, refused, host, secondary)
		if best < 0 {
			return placed
		}
		g := &shapes[best]
		i := g.left[len(g.left)-1]
		if !s.fits(i, host) {
			refused[best] = true
			continue
		}
		s.put(i, host)
		g.left = g.left[:len(g.left)-1]
		placed++
	}
}

// suits is the shape whose product with what a host has left is greatest; -1: none may fit.
func (s *state) suits(shapes []shape, refused []bool, host int, secondary bool) int {
	h := &s.hosts[host]
	if h.CPUs <= 0 {
		return -1
	}
	bytes := max(1, float64(h.MemoryBytes))
	cpus, memory := s.left(host, secondary)/h.CPUs, (bytes-float64(s.memory[host]))/bytes
	best, found := 0.0, -1
	for n := range shapes {
		g := &shapes[n]
		if refused[n] || len(g.left) == 0 || g.secondary != secondary {
			continue
		}
		if product := cpus*g.cpus/h.CPUs + memory*g.memory/bytes; found < 0 || product > best {
			best, found = product, n
		}
	}
	return found
}

// shapes takes all containers that may be moved from their hosts, and groups them.
func (s *state) shapes() []shape {
	type key struct {
		size, shape int
		secondary   bool
	}
	groups := map[key]*shape{}
	needs := make([]float64, len(s.containers))
	for i := range s.containers {
		if s.containers[i].Stays {
			continue
		}
		if s.on[i] >= 0 {
			s.take(i)
		}
		needs[i] = s.need(i)
		memory := float64(s.containers[i].MemoryBytes)
		k := key{octave(needs[i]*1024, sizesPerOctave), octave(memory/max(needs[i], 1e-3), shapesPerOctave),
			s.containers[i].Secondary}
		g := groups[k]
		if g == nil {
			g = &shape{secondary: k.secondary}
			groups[k] = g
		}
		g.cpus, g.memory, g.left = g.cpus+needs[i], g.memory+memory, append(g.left, i)
	}
	shapes := make([]shape, 0, len(groups))
	for _, g := range groups {
		n := float64(len(g.left))
		g.cpus, g.memory = g.cpus/n, g.memory/n
		slices.SortFunc(g.left, func(a, b int) int { return cmp.Or(cmp.Compare(needs[a], needs[b]), cmp.Compare(b, a)) })
		shapes = append(shapes, *g)
	}
	slices.SortFunc(shapes, func(a, b shape) int { return cmp.Compare(a.left[0], b.left[0]) })
	return shapes
}

func octave(v float64, parts int) int {
	return int(math.Ceil(float64(parts) * math.Log2(max(1, v))))
}

// largestFirst are the hosts, by CPUs and memory.
func (s *state) largestFirst() []int {
	order := make([]int, len(s.hosts))
	for h := range order {
		order[h] = h
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(s.hosts[b].CPUs, s.hosts[a].CPUs),
			cmp.Compare(s.hosts[b].MemoryBytes, s.hosts[a].MemoryBytes))
	})
	return order
}

// placeFirst places a container on the first host of a list that holds it.
func (s *state) placeFirst(i int, order []int) bool {
	for _, host := range order {
		if s.fits(i, host) {
			s.put(i, host)
			return true
		}
	}
	return false
}
