package placement

import (
	"cmp"
	"slices"

	"github.com/unthrottle/unthrottle/topology"
)

// A layout is a machine as the placer walks it. Its usable CPUs stand in slots,
// sorted so that every domain (a socket, a NUMA node, an L3, a core) is a run of
// neighbouring slots. It never changes once it is made.
type layout struct {
	machine topology.Machine
	ids     []int           // slot -> CPU id
	kinds   []topology.Kind // core -> kind
	slotOf  []int32         // CPU id -> slot; -1: none
	core    []int32         // slot -> core
	first   []int32         // core -> first slot; one more entry closes the last
	leafOf  []int32         // core -> the narrowest domain that holds it
	levels  []topology.Level
	doms    []domain
	at      [][]int32 // level -> its domains, in slot order
	// nodes are the domains that stand for the NUMA nodes, in the order of
	// distance; nil where no level of the tree is the NUMA nodes'.
	nodes    []int32
	distance [][]int32
	manyKind bool
	// groups are the socket, NUMA node and L3 of each slot, for counting.
	groups [3][]int32
	counts [3]int // how many groups there are, at most
}

// The three levels that are counted for people, in the order of layout.groups.
var countedLevels = [3]topology.Level{topology.LevelSocket, topology.LevelNUMANode, topology.LevelL3}

// domain is a group of CPUs with what it contains: narrower domains or, if it
// has none, cores.
type domain struct {
	level        int   // index in layout.levels; -1: the whole machine
	parent       int32 // -1: none
	child, count int32 // children are doms[child : child+count]
	lo, hi       int32 // cores
	cpus         int   // slots
	share        int   // where the placer keeps how much each child gives
}

// newLayout sorts the online CPUs. Where levels cross instead of nesting, the
// narrower group is cut along the wider one.
func newLayout(m topology.Machine) *layout {
	l := &layout{machine: m, levels: hierarchy(m)}
	var cpus []topology.CPU
	top := 0
	for _, c := range m.CPUs {
		top = max(top, c.ID+1)
		if c.Online {
			cpus = append(cpus, c)
		}
	}
	rank := l.ranks(cpus)
	order := make([]int, len(cpus))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		if c := slices.Compare(rank[a], rank[b]); c != 0 {
			return c
		}
		return cmp.Compare(cpus[a].ID, cpus[b].ID)
	})
	l.slotOf = slices.Repeat([]int32{-1}, top)
	for slot, i := range order {
		c := cpus[i]
		l.ids = append(l.ids, c.ID)
		l.slotOf[c.ID] = int32(slot)
		if slot == 0 || slices.Compare(rank[i], rank[order[slot-1]]) != 0 {
			l.first = append(l.first, int32(slot))
			l.kinds = append(l.kinds, c.Kind)
			l.manyKind = l.manyKind || c.Kind != topology.KindUnknown
		}
		l.core = append(l.core, int32(len(l.first)-1))
	}
	l.first = append(l.first, int32(len(order)))
	l.leafOf = make([]int32, len(l.kinds))
	l.grow(rank, order)
	l.countGroups()
	l.findNodes()
	return l
}

// ranks gives each CPU its place in the tree: the lowest CPU of its group at
// each level, then of its core. A CPU whose core the kernel does not tell is a
// core of its own.
func (l *layout) ranks(cpus []topology.CPU) [][]int {
	lowest := map[topology.Level]map[topology.ID]int{}
	low := func(level topology.Level, c topology.CPU) int {
		if level == topology.LevelCore && c.Core == topology.Unknown {
			return c.ID
		}
		if lowest[level] == nil {
			lowest[level] = map[topology.ID]int{}
		}
		id, ok := lowest[level][c.At(level)]
		if !ok {
			id = c.ID
			lowest[level][c.At(level)] = id
		}
		return id
	}
	rank := make([][]int, len(cpus))
	for i, c := range cpus {
		for _, level := range l.levels {
			rank[i] = append(rank[i], low(level, c))
		}
		rank[i] = append(rank[i], low(topology.LevelCore, c))
	}
	return rank
}

// grow makes the domains, level by level, so that children are neighbours.
func (l *layout) grow(rank [][]int, order []int) {
	l.doms = []domain{{level: -1, parent: -1, lo: 0, hi: int32(len(l.kinds))}}
	l.at = make([][]int32, len(l.levels))
	wider := []int32{0}
	for level := range l.levels {
		for _, p := range wider {
			l.doms[p].child = int32(len(l.doms))
			for core := l.doms[p].lo; core < l.doms[p].hi; core++ {
				here := rank[order[l.first[core]]][level]
				if core == l.doms[p].lo || here != rank[order[l.first[core-1]]][level] {
					l.at[level] = append(l.at[level], int32(len(l.doms)))
					l.doms = append(l.doms, domain{level: level, parent: p, lo: core})
					l.doms[p].count++
				}
				l.doms[len(l.doms)-1].hi = core + 1
			}
		}
		wider = l.at[level]
	}
	share := 0
	for i := range l.doms {
		d := &l.doms[i]
		d.cpus = int(l.first[d.hi] - l.first[d.lo])
		if d.count == 0 {
			for core := d.lo; core < d.hi; core++ {
				l.leafOf[core] = int32(i)
			}
		}
	}
	for i := range l.doms {
		d := &l.doms[i]
		d.share = share
		share += int(d.count) * (d.cpus + 1)
	}
}

// countGroups numbers the groups that people count. Where nothing is known of a
// level, its groups are -1.
func (l *layout) countGroups() {
	for i, level := range countedLevels {
		number := map[topology.ID]int32{}
		known := false
		l.groups[i] = make([]int32, len(l.ids))
		for slot, id := range l.ids {
			c, _ := l.machine.CPU(id)
			of := c.At(level)
			known = known || of != topology.Unknown
			if _, ok := number[of]; !ok {
				number[of] = int32(len(number))
			}
			l.groups[i][slot] = number[of]
		}
		l.counts[i] = len(number)
		if !known {
			l.counts[i] = 0
			for slot := range l.ids {
				l.groups[i][slot] = -1
			}
		}
	}
}

// findNodes finds the level whose domains are the NUMA nodes, and the distances
// between them.
func (l *layout) findNodes() {
	for level, name := range l.levels {
		if !l.machine.Alike(name, topology.LevelNUMANode) {
			continue
		}
		place := map[topology.ID]int{}
		for i, n := range l.machine.NUMANodes {
			if len(n.Distance) != len(l.machine.NUMANodes) {
				return
			}
			place[topology.ID(n.ID)] = i
		}
		var at []int
		for _, d := range l.at[level] {
			c, _ := l.machine.CPU(l.ids[l.first[l.doms[d].lo]])
			i, ok := place[c.NUMANode]
			if !ok {
				return
			}
			at = append(at, i)
		}
		l.nodes = l.at[level]
		for _, from := range at {
			var row []int32
			for _, to := range at {
				// A table of firmware need not be symmetric: both ways count.
				row = append(row, int32(l.machine.NUMANodes[from].Distance[to]+l.machine.NUMANodes[to].Distance[from]))
			}
			l.distance = append(l.distance, row)
		}
		return
	}
}

// isSpan tells whether a level counts as a crossing; clusters do not.
func (l *layout) isSpan(level int) bool { return l.levels[level] != topology.LevelCluster }
