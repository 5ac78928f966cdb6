package placement

import (
	"slices"

	"github.com/unthrottle/unthrottle/topology"
)

// hierarchy returns the levels at which a machine's online CPUs are in several
// groups, the widest first: the one with the fewest groups. Machines differ:
// several L3s in a NUMA node on one, several NUMA nodes on an L3 on another.
// Of levels that group the CPUs alike only one is kept, and none that is alike
// to the cores.
func hierarchy(m topology.Machine) []topology.Level {
	type counted struct {
		level  topology.Level
		groups int
	}
	var levels []counted
	cores := count(m, topology.LevelCore, topology.LevelCore)
	for _, level := range []topology.Level{topology.LevelSocket, topology.LevelNUMANode, topology.LevelDie, topology.LevelL3, topology.LevelCluster} {
		n := count(m, level, level)
		alike := n == cores && count(m, level, topology.LevelCore) == n
		for _, other := range levels {
			alike = alike || n == other.groups && count(m, level, other.level) == n
		}
		if n > 1 && !alike {
			levels = append(levels, counted{level, n})
		}
	}
	slices.SortStableFunc(levels, func(a, b counted) int { return a.groups - b.groups })
	ordered := make([]topology.Level, len(levels))
	for i, l := range levels {
		ordered[i] = l.level
	}
	return ordered
}

// count returns how many groups the online CPUs form if two are together only
// where they are so at both levels. CPUs of unknown group are together.
func count(m topology.Machine, a, b topology.Level) int {
	type pair struct{ a, b topology.ID }
	seen := map[pair]bool{}
	for _, c := range m.CPUs {
		if c.Online {
			seen[pair{c.At(a), c.At(b)}] = true
		}
	}
	return len(seen)
}
