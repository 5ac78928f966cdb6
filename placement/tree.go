package placement

import "github.com/unthrottle/unthrottle/topology"

// domain is a group of CPUs with what it contains: narrower domains, or, if it
// is a core, free CPUs.
type domain struct {
	level    int // its place in the hierarchy; rootLevel, coreLevel
	span     int // its field among the spans and the leftovers, or -1
	free     int // free CPUs in it
	children []*domain
	cpus     []int // of a core: its free CPUs, ascending
	threads  int   // of a core: its online CPUs, free or not
}

const (
	rootLevel = -1
	coreLevel = -2
)

// coreKey names a core within the domain that holds it. A CPU whose core the
// kernel does not tell is a core of its own.
type coreKey struct {
	core topology.ID
	cpu  int
}

func keyOf(c topology.CPU) coreKey {
	if c.Core == topology.Unknown {
		return coreKey{topology.Unknown, c.ID}
	}
	return coreKey{c.Core, 0}
}

// grow builds the tree of the free CPUs. Children stand in the order of their
// lowest free CPU. Where levels cross instead of nesting, the narrower group is
// cut along the wider one.
func grow(m topology.Machine, levels []topology.Level, free []topology.CPU) *domain {
	threads := map[coreKey]int{}
	for _, c := range m.CPUs {
		if c.Online {
			threads[keyOf(c)]++
		}
	}
	root := &domain{level: rootLevel, span: -1}
	type place struct {
		parent *domain
		id     topology.ID
		core   coreKey
	}
	at := map[place]*domain{}
	for _, c := range free {
		d := root
		d.free++
		span := 0
		for i, level := range levels {
			key := place{parent: d, id: c.At(level)}
			child := at[key]
			if child == nil {
				child = &domain{level: i, span: -1}
				if level != topology.LevelCluster {
					child.span = span
				}
				at[key] = child
				d.children = append(d.children, child)
			}
			if level != topology.LevelCluster {
				span++
			}
			d = child
			d.free++
		}
		key := place{parent: d, core: keyOf(c)}
		core := at[key]
		if core == nil {
			core = &domain{level: coreLevel, span: -1, threads: threads[keyOf(c)]}
			at[key] = core
			d.children = append(d.children, core)
		}
		core.free++
		core.cpus = append(core.cpus, c.ID)
	}
	return root
}
