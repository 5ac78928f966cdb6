package container

import (
	"cmp"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// maxNear bounds how many names an error lists.
const maxNear = 5

// Bounds on the work of near: longer words are cut (in bytes), and of very many containers only the first are compared.
const (
	maxNearLength     = 128
	maxNearContainers = 20000
)

// near lists names that target may mean. First come names that contain it or that it contains, then those that differ
// in at most a third of their letters.
func near(containers []Container, target string) []string {
	type scored struct {
		name  string
		score int
	}
	var all []scored
	for _, c := range containers[:min(len(containers), maxNearContainers)] {
		best := -1
		for _, name := range []string{c.Name, c.Pod, c.ContainerName, trimUnit(c.Unit), cgroup.Base(c.Group.Path), c.Group.Path} {
			if score := distance(target, name); score >= 0 && (best < 0 || score < best) {
				best = score
			}
		}
		if best >= 0 {
			all = append(all, scored{c.Name, best})
		}
	}
	slices.SortStableFunc(all, func(a, b scored) int { return cmp.Or(a.score-b.score, cmp.Compare(a.name, b.name)) })
	var names []string
	for _, s := range all {
		if !slices.Contains(names, s.name) {
			names = append(names, s.name)
		}
		if len(names) == maxNear {
			break
		}
	}
	return names
}

// distance is 0 if one name contains the other, else the number of single-letter edits (Levenshtein). It is -1 if the
// edits are too many. Case does not count.
func distance(target, name string) int {
	a, b := []rune(strings.ToLower(cut(target))), []rune(strings.ToLower(cut(name)))
	if len(a) == 0 || len(b) == 0 {
		return -1
	}
	if len(a) >= 3 && strings.Contains(string(b), string(a)) || len(b) >= 3 && strings.Contains(string(a), string(b)) {
		return 0
	}
	limit := max(1, max(len(a), len(b))/3)
	if diff := len(a) - len(b); diff > limit || -diff > limit {
		return -1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		last := row[0]
		row[0] = i + 1
		for j := range b {
			cost := last
			if a[i] != b[j] {
				cost++
			}
			last = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	if row[len(b)] > limit {
		return -1
	}
	return row[len(b)]
}

func cut(s string) string { return s[:min(len(s), maxNearLength)] }
