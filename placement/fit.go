package placement

import (
	"fmt"
	"slices"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/topology"
)

// Fit returns the placer of this room; its rule is in the package comment.
func Fit() Placer { return fit{} }

type fit struct{}

func (fit) Place(h Host, r Request) (Choice, error) {
	if r.CPUs < 1 {
		return Choice{}, fmt.Errorf("placement: %d CPUs wanted: ask for at least 1", r.CPUs)
	}
	free := usable(h)
	if len(free) < r.CPUs {
		return Choice{}, fmt.Errorf("placement: %w", &TooFewError{Wanted: r.CPUs, Free: len(free), Online: h.Machine.Online().Size()})
	}
	free = ofOneKind(free, r)
	levels := hierarchy(h.Machine)
	root := grow(h.Machine, levels, free)
	ids := solve(root, r.CPUs).take(r.CPUs, make([]int, 0, r.CPUs))
	c := judge(h.Machine, cpuset.New(ids...))
	c.Why = why(h.Machine, levels, free, c)
	return c, nil
}

// usable returns the CPUs that may be chosen, ascending.
func usable(h Host) []topology.CPU {
	free := make([]topology.CPU, 0, h.Free.Size())
	for _, c := range h.Machine.CPUs {
		if c.Online && !c.Isolated && h.Free.Contains(c.ID) {
			free = append(free, c)
		}
	}
	return free
}

// ofOneKind narrows the free CPUs to one kind if one kind holds the request:
// work spread over fast and slow cores waits for the slow ones.
func ofOneKind(free []topology.CPU, r Request) []topology.CPU {
	kinds := []topology.Kind{topology.KindPerformance, topology.KindEfficiency}
	if r.Prefer == topology.KindEfficiency {
		slices.Reverse(kinds)
	}
	for _, kind := range kinds {
		var of []topology.CPU
		for _, c := range free {
			if c.Kind == kind {
				of = append(of, c)
			}
		}
		if len(of) >= r.CPUs {
			return of
		}
	}
	return free
}

// solution holds, for one domain and every number of CPUs up to the request,
// the least cost of taking that many from it, and how to.
type solution struct {
	of       *domain
	best     []cost // best[j]: the least cost of taking j CPUs
	children []*solution
	// share[i][j] is how many CPUs child i gives when the children up to and
	// with it give j.
	share [][]uint16
}

// solve finds the least cost of taking 0 to n CPUs from a domain. What the
// domains below cost adds up, so the best split over them is found child by
// child: of all ways to take j from the children so far, only the cheapest is
// kept. Of equal ones the first child gives most, which means lower CPU ids.
func solve(d *domain, n int) *solution {
	s := &solution{of: d, best: make([]cost, min(d.free, n)+1)}
	if d.level == coreLevel {
		for j := 1; j < len(s.best); j++ {
			s.best[j] = coreCost(d, j)
		}
		return s
	}
	s.best = s.best[:1]
	for _, child := range d.children {
		c := solve(child, n)
		s.children = append(s.children, c)
		s.join(c, n)
	}
	for j := 1; j < len(s.best); j++ {
		switch {
		case d.span >= 0:
			s.best[j].add(fieldSpans+d.span, 1)
			s.best[j].add(fieldLeft+d.span, d.free-j)
		case d.level != rootLevel:
			s.best[j].add(fieldClusters, 1)
		}
	}
	return s
}

// join lets one more child give CPUs.
func (s *solution) join(child *solution, n int) {
	before := slices.Clone(s.best)
	total := min(len(before)+len(child.best)-2, n)
	s.best = s.best[:total+1]
	share := make([]uint16, total+1)
	for j := range s.best {
		first := true
		for give := max(0, j-len(before)+1); give < len(child.best) && give <= j; give++ {
			if c := before[j-give].plus(&child.best[give]); first || c.less(&s.best[j]) {
				s.best[j], share[j], first = c, uint16(give), false
			}
		}
	}
	s.share = append(s.share, share)
}

// coreCost is the cost of taking j CPUs, at least one, of a core.
func coreCost(core *domain, j int) cost {
	var c cost
	if j < core.threads {
		c.add(fieldShared, 1)
	}
	if j < core.free {
		c.add(fieldStranded, 1)
	}
	return c
}

// take appends the CPUs of the best way to take n.
func (s *solution) take(n int, ids []int) []int {
	if s.of.level == coreLevel {
		return append(ids, s.of.cpus[:n]...)
	}
	for i := len(s.children) - 1; i >= 0; i-- {
		give := int(s.share[i][n])
		ids = s.children[i].take(give, ids)
		n -= give
	}
	return ids
}
