package placement

import (
	"slices"

	"github.com/unthrottle/unthrottle/topology"
)

// hierarchy returns the levels at which a machine's online CPUs are in several
// groups, the widest first. Machines differ: several L3s in a NUMA node on one,
// several NUMA nodes on an L3 on another. Of levels that group the CPUs alike
// only one is kept. Clusters that are alike to the cores add nothing.
func hierarchy(m topology.Machine) []topology.Level {
	var levels []topology.Level
	for _, level := range m.Nesting(topology.LevelSocket, topology.LevelNUMANode, topology.LevelDie,
		topology.LevelL3, topology.LevelCluster) {
		alike := func(other topology.Level) bool { return m.Alike(level, other) }
		idle := level == topology.LevelCluster && alike(topology.LevelCore)
		if m.Groups(level) > 1 && !idle && !slices.ContainsFunc(levels, alike) {
			levels = append(levels, level)
		}
	}
	return levels
}
