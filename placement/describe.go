package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/topology"
)

// byArrival returns the handles of the node's containers, the oldest first.
func (n *Node) byArrival() []Handle {
	var handles []Handle
	for i := range n.tenants {
		if n.tenants[i].live {
			handles = append(handles, Handle(i))
		}
	}
	slices.SortFunc(handles, func(a, b Handle) int { return cmp.Compare(n.tenants[a].arrival, n.tenants[b].arrival) })
	return handles
}

// Containers returns where each container is, in the order of arrival.
func (n *Node) Containers() []Placed {
	var out []Placed
	for _, h := range n.byArrival() {
		out = append(out, n.Placed(h))
	}
	return out
}

// Pool returns the shared pool: the CPUs that no container owns.
func (n *Node) Pool() cpuset.CPUSet {
	return n.where(func(slot int) bool { return n.s.owner[slot] == unowned })
}

func (n *Node) where(keep func(slot int) bool) cpuset.CPUSet {
	var ids []int
	for slot, id := range n.l.ids {
		if keep(slot) {
			ids = append(ids, id)
		}
	}
	return cpuset.New(ids...)
}

// lent returns the exclusive CPUs that secondary containers may use too.
func (n *Node) lent() cpuset.CPUSet {
	return n.where(func(slot int) bool {
		owner := n.s.owner[slot]
		return owner >= 0 && !n.s.idle[slot] && n.tenants[owner].SharesIdle
	})
}

// Placed returns where a container is.
func (n *Node) Placed(h Handle) Placed {
	if !n.alive(h) {
		return Placed{}
	}
	t := &n.tenants[h]
	p := Placed{Name: t.Name, Class: t.Class}
	p.Own = n.where(func(slot int) bool { return n.s.owner[slot] == int32(h) && !n.s.idle[slot] })
	p.Idle = n.where(func(slot int) bool { return n.s.owner[slot] == int32(h) && n.s.idle[slot] })
	judged := slices.Clone(n.slots(h))
	switch t.Class {
	case Floating:
		judged = t.floats
		p.CPUs = cpuset.New(n.AppendCPUs(nil, h)...)
	case Secondary:
		p.CPUs = n.Pool().Union(n.lent())
		judged = nil
		for slot, id := range n.l.ids {
			if p.CPUs.Contains(id) {
				judged = append(judged, int32(slot))
			}
		}
	case Hybrid:
		p.CPUs = p.Own.Union(n.Pool())
	default:
		p.CPUs = p.Own
	}
	var now [3]int
	n.count(judged, &now)
	p.Sockets, p.NUMANodes, p.L3s = now[0], now[1], now[2]
	if t.own > 0 {
		for i := range now {
			p.Avoidable = p.Avoidable || now[i] > max(1, t.least[i])
		}
	}
	p.CoresShared = n.sharedCores(h)
	if t.Quota != nil {
		binds := *t.Quota < float64(p.CPUs.Size())
		p.QuotaBinds = &binds
	}
	p.Why = n.why(t, &p, judged, now)
	return p
}

// sharedCores counts the cores on which a container has a CPU of its own and
// another one has some too.
func (n *Node) sharedCores(h Handle) int {
	count := 0
	for core := range n.l.kinds {
		mine, others := false, false
		for slot := n.l.first[core]; slot < n.l.first[core+1]; slot++ {
			switch owner := n.s.owner[slot]; {
			case owner == int32(h) && !n.s.idle[slot]:
				mine = true
			case owner >= 0 && owner != int32(h):
				others = true
			}
		}
		if mine && others {
			count++
		}
	}
	return count
}

// why tells in a line where a container is and what decided.
func (n *Node) why(t *tenant, p *Placed, judged []int32, now [3]int) string {
	var parts []string
	switch {
	case t.Class == Secondary:
		return "what the others leave idle"
	case t.Class == Hybrid && t.own == 0:
		return "less than one CPU: the shared pool alone"
	case len(judged) == 0:
		return "no CPU is left for it"
	case t.own > t.has:
		parts = append(parts, fmt.Sprintf("%d of the %d CPUs it is to have", t.has, t.own))
	}
	within, groups := "", 0
	for i, level := range countedLevels {
		switch {
		case now[i] == 1 && n.l.counts[i] > 1:
			c, _ := n.l.machine.CPU(n.l.ids[judged[0]])
			if id := c.At(level); id != topology.Unknown {
				// The narrowest: which level that is differs from machine to machine.
				if n.l.counts[i] >= groups {
					within, groups = fmt.Sprintf("in %s %d", level, id), n.l.counts[i]
				}
			}
		case now[i] > 1 && t.own == 0:
			parts = append(parts, fmt.Sprintf("over %d %ss", now[i], level))
		case now[i] > 1 && now[i] > t.least[i]:
			parts = append(parts, fmt.Sprintf("over %d %ss, where %d would have done", now[i], level, t.least[i]))
		case now[i] > 1 && now[i] > n.ideal(t)[i]:
			parts = append(parts, fmt.Sprintf("over %d %ss, as no fewer had room", now[i], level))
		case now[i] > 1:
			parts = append(parts, fmt.Sprintf("over %d %ss, being larger than one", now[i], level))
		}
	}
	if within != "" {
		parts = append([]string{within}, parts...)
	}
	if t.Class == Floating {
		parts = append(parts, "on the least busy CPUs that are shared")
		return strings.Join(parts, ", ")
	}
	part, whole := cores(n.l.machine, p.Own)
	if whole > 0 && t.FullCores || part > 0 && whole > 0 {
		parts = append(parts, text.Count(whole, "whole core"))
	}
	switch {
	case t.IdleSiblings:
		parts = append(parts, "siblings left idle")
	case part > 0:
		parts = append(parts, text.Count(part, "core")+" in part")
	}
	if t.Class == Hybrid {
		parts = append(parts, "and the shared pool for the fraction")
	}
	if len(parts) == 0 {
		parts = append(parts, "whole cores")
	}
	return strings.Join(parts, ", ")
}

// ideal is the least number of sockets, NUMA nodes and L3s that could hold a
// container if it were alone; 0 where they are not known.
func (n *Node) ideal(t *tenant) [3]int {
	if t.idealOf == t.own {
		return t.ideals
	}
	t.idealOf = t.own
	for level, groups := range n.l.counts {
		room := make([]int, groups)
		for core := range n.l.kinds {
			able := 0
			for slot := n.l.first[core]; slot < n.l.first[core+1]; slot++ {
				if !n.out[slot] {
					able++
				}
			}
			if t.IdleSiblings {
				able = min(able, 1)
			}
			if groups > 0 {
				room[n.l.groups[level][n.l.first[core]]] += able
			}
		}
		slices.SortFunc(room, func(a, b int) int { return b - a })
		t.ideals[level] = 0
		for held := 0; held < t.own && t.ideals[level] < groups; t.ideals[level]++ {
			held += room[t.ideals[level]]
		}
	}
	return t.ideals
}
