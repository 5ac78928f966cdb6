package placement

import (
	"github.com/unthrottle/unthrottle/topology"
)

// Crossing counts, at one level, the groups that containers touch beyond what
// each would touch on an empty machine.
type Crossing struct {
	Level topology.Level
	// Containers that cross.
	Containers int
	// Excess groups touched: Avoidable ones, where fewer would have done when
	// the container came, and Forced ones, where none with fewer had room.
	Avoidable, Forced int
}

// Fits is the largest request for exclusive CPUs that still fits in one group
// of each level; 0 at levels that the kernel does not tell.
type Fits struct{ Machine, Socket, NUMANode, L3 int }

// Score is what a state costs.
type Score struct {
	Crossings [3]Crossing // sockets, NUMA nodes, L3s
	// CoresShared counts cores on which two containers have CPUs of their own,
	// Sharing the containers that have such a core.
	CoresShared, Sharing int
	// Stranded counts half-cores: cores that are partly taken and partly free.
	// Sharing and Stranded together are at least the containers of whose number
	// of CPUs no whole cores can be made: less of one is more of the other.
	Stranded int
	// Idle counts threads that are kept idle for a sibling's sake.
	Idle int
	Pool int // CPUs in the shared pool
	Fits Fits
}

// Score judges the node as it is.
func (n *Node) Score() Score {
	var s Score
	for i, level := range countedLevels {
		s.Crossings[i].Level = level
	}
	for i := range n.tenants {
		t := &n.tenants[i]
		if !t.live || t.has == 0 {
			continue
		}
		excess, avoidable := n.Excess(Handle(i))
		for level := range excess {
			c := &s.Crossings[level]
			c.Avoidable += avoidable[level]
			c.Forced += excess[level] - avoidable[level]
			if excess[level] > 0 {
				c.Containers++
			}
		}
		if n.sharedCores(Handle(i)) > 0 {
			s.Sharing++
		}
	}
	n.scoreCores(&s)
	n.fits(&s)
	return s
}

// Excess is how many sockets, NUMA nodes and L3s a container touches beyond
// what it would on an empty machine, and how many of those it could have done
// without when it came.
func (n *Node) Excess(h Handle) (excess, avoidable [3]int) {
	t := &n.tenants[h]
	var now [3]int
	n.count(n.slots(h), &now)
	ideals := n.ideal(t)
	for level := range now {
		if now[level] == 0 {
			continue
		}
		ideal := ideals[level]
		excess[level] = max(0, now[level]-ideal)
		avoidable[level] = max(0, now[level]-max(ideal, t.least[level]))
	}
	return excess, avoidable
}

func (n *Node) scoreCores(s *Score) {
	for core := range n.l.kinds {
		first, several, free, taken := unowned, false, false, false
		for slot := n.l.first[core]; slot < n.l.first[core+1]; slot++ {
			switch owner := n.s.owner[slot]; {
			case owner == unowned:
				free = true
				s.Pool++
			case owner >= 0 && n.s.idle[slot]:
				s.Idle++
			case owner >= 0:
				several = several || taken && owner != first
				first, taken = owner, true
			}
		}
		if several {
			s.CoresShared++
		}
		if free && taken {
			s.Stranded++
		}
	}
}

// fits finds the largest requests; the shared pool keeps what it needs.
func (n *Node) fits(s *Score) {
	most := max(0, n.pool-n.poolNeeds())
	s.Fits.Machine = most
	var largest [3]int
	for i := range n.l.counts {
		free := make([]int, n.l.counts[i])
		for slot, owner := range n.s.owner {
			if g := n.l.groups[i][slot]; owner == unowned && g >= 0 {
				free[g]++
				largest[i] = max(largest[i], min(most, free[g]))
			}
		}
	}
	s.Fits.Socket, s.Fits.NUMANode, s.Fits.L3 = largest[0], largest[1], largest[2]
}
