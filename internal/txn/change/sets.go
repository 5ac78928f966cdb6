package change

import (
	"fmt"
	"slices"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/topology"
)

// orderSets is the two-step change of CPU and memory-node sets. First, from the top down, each becomes the union of
// what it is and what it becomes: a child's union is within its parent's, because both states are. Then, from the
// bottom up, each becomes what it shall be: no child is left outside. On v2 an empty list means all that the parent
// has, which holds everything, so that growing to a union with it is growing to the empty list.
func orderSets(s State, changes []Change) (grow, shrink []Change, err error) {
	topDown(changes)
	for _, c := range changes {
		from, err := topology.ParseList(c.From)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: is %w", c.Key(), err)
		}
		to, err := topology.ParseList(c.To)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: wanted %w", c.Key(), err)
		}
		both := union(s.Versions[c.Controller], from, to)
		if s.Versions[c.Controller] == cgroup.V1 && c.From == "" {
			// A set that was never filled can hold no task: it gets its value in one step.
			both = to
		}
		last := c
		if !both.Equals(from) {
			wide := c
			wide.To = both.String()
			grow = append(grow, wide)
			last.From = wide.To
		}
		if !both.Equals(to) {
			shrink = append(shrink, last)
		}
	}
	slices.Reverse(shrink)
	return grow, shrink, nil
}
