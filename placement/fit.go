package placement

import (
	"fmt"

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
	l := newLayout(h.Machine)
	s := newSolver(l, DefaultOrder())
	free := 0
	for slot, id := range l.ids {
		c, _ := h.Machine.CPU(id)
		if c.Isolated || !h.Free.Contains(id) {
			s.owner[slot] = away
			continue
		}
		free++
	}
	if _, ok := s.choose(wish{n: r.CPUs, me: nobody, efficient: r.Prefer == topology.KindEfficiency}); !ok {
		return Choice{}, fmt.Errorf("placement: %w", &TooFewError{Wanted: r.CPUs, Free: free, Online: len(l.ids)})
	}
	ids := make([]int, 0, r.CPUs)
	for _, slot := range s.pick {
		ids = append(ids, l.ids[slot])
	}
	c := judge(h.Machine, cpuset.New(ids...))
	c.Why = why(h.Machine, l.levels, s.couldTake(), c)
	return c, nil
}

// couldTake returns the CPUs that the last wish was chosen from.
func (s *solver) couldTake() []topology.CPU {
	var cpus []topology.CPU
	for slot, id := range s.l.ids {
		if s.owner[slot] == nobody && (s.w.kind == 0 || s.w.kind == kindNumber(s.l.kinds[s.l.core[slot]])) {
			c, _ := s.l.machine.CPU(id)
			cpus = append(cpus, c)
		}
	}
	return cpus
}
