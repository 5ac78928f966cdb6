package topology

import "slices"

// Nesting orders levels by how this machine's online CPUs are grouped, the one with the fewest groups first. So on
// machines whose levels nest, each group lies within one of the previous level. Levels with equally many groups keep
// the given order; unknown levels are left out.
func (m Machine) Nesting(levels ...Level) []Level {
	var known []Level
	for _, level := range levels {
		if slices.ContainsFunc(m.CPUs, func(c CPU) bool { return c.Online && c.At(level) != Unknown }) {
			known = append(known, level)
		}
	}
	groups := map[Level]int{}
	for _, level := range known {
		groups[level] = m.Groups(level)
	}
	slices.SortStableFunc(known, func(a, b Level) int { return groups[a] - groups[b] })
	return known
}

// Groups returns how many groups the online CPUs form at a level; those of unknown group count as one.
func (m Machine) Groups(level Level) int { return m.cuts(level, level) }

// Alike reports whether two levels group the online CPUs in the same way.
func (m Machine) Alike(a, b Level) bool {
	n := m.cuts(a, b)
	return m.Groups(a) == n && m.Groups(b) == n
}

// cuts counts the groups whose CPUs are together at both levels.
func (m Machine) cuts(a, b Level) int {
	type pair struct{ a, b ID }
	seen := map[pair]bool{}
	for _, c := range m.CPUs {
		if c.Online {
			seen[pair{c.At(a), c.At(b)}] = true
		}
	}
	return len(seen)
}
