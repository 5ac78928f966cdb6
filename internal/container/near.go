package container

import (
	"cmp"
	"slices"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/text"
)

// maxNear bounds how many names an error lists.
const maxNear = 5

// maxNearContainers bounds the work of near: of very many containers only the first are compared.
const maxNearContainers = 20000

// near lists names that target may mean. First come names that contain it or that it contains, then those that differ
// in at most a third of their letters.
func near(containers []Container, target string) []string {
	type scored struct {
		name  string
		score int
	}
	var candidates []scored
	for _, c := range containers[:min(len(containers), maxNearContainers)] {
		best := -1
		for _, name := range []string{c.Name, c.Pod, c.ContainerName, c.Service, trimUnit(c.Unit),
			cgroup.Base(c.Group.Path), c.Group.Path} {
			if score := text.Distance(target, name); score >= 0 && (best < 0 || score < best) {
				best = score
			}
		}
		if best >= 0 {
			candidates = append(candidates, scored{c.Name, best})
		}
	}
	slices.SortStableFunc(candidates, func(a, b scored) int { return cmp.Or(a.score-b.score, cmp.Compare(a.name, b.name)) })
	var names []string
	for _, s := range candidates {
		if !slices.Contains(names, s.name) {
			names = append(names, s.name)
		}
		if len(names) == maxNear {
			break
		}
	}
	return names
}
