package topology

import (
	"fmt"
	"strings"

	"github.com/unthrottle/unthrottle/internal/ui/report/shared/cputree"
	"github.com/unthrottle/unthrottle/topology"
)

// mostDistances is how many nodes a table of distances may have.
const mostDistances = 16

// aside lists what has no place in the tree.
func (p *drawing) aside() {
	m := p.machine
	if offline := m.Present().Difference(m.Online()); !offline.IsEmpty() {
		p.Line("")
		p.Wrapped("Offline: CPUs ", "  ", ",", strings.Split(offline.String(), ","))
	}
	if isolated := m.Isolated(); !isolated.IsEmpty() {
		p.Line("")
		p.Wrapped("Isolated at boot: CPUs ", "  ", ",", strings.Split(isolated.String(), ","))
	}
	for _, n := range m.NUMANodes {
		if !n.CPUs.IsEmpty() {
			continue
		}
		p.Line("")
		which := "no CPUs"
		if n.CPUsUnknown {
			which = "CPUs not known"
		}
		parts := []string{p.Bolden(fmt.Sprintf("NUMA node %d", n.ID)), which}
		if memory := memoryText(n.MemoryBytes); memory != "" {
			parts = append(parts, memory)
		}
		p.Wrapped("", "  ", "  ", parts)
	}
	for _, fault := range m.Faults {
		p.Line("")
		p.Wrapped("Fault: ", "  ", " ", strings.Fields(fault))
	}
}

// distances draws the kernel's distances between the nodes as a table.
func (p *drawing) distances() {
	nodes := p.machine.NUMANodes
	if len(nodes) < 2 || len(nodes) > mostDistances {
		return
	}
	for _, n := range nodes {
		if len(n.Distance) != len(nodes) {
			return
		}
	}
	cell := func(v any) string { return fmt.Sprintf("%4v", v) }
	head := "Distance to node"
	rows := []string{head}
	for _, n := range nodes {
		rows[0] += cell(n.ID)
		row := fmt.Sprintf("%*s", len(head), fmt.Sprintf("from node %d", n.ID))
		for _, d := range n.Distance {
			row += cell(d)
		}
		rows = append(rows, row)
	}
	if len(rows[0]) > p.Columns {
		return
	}
	p.Line("")
	for _, row := range rows {
		p.Line(row)
	}
}

// legend explains the signs that were used, and no others.
func (p *drawing) legend() {
	var lines []string
	if p.coresDrawn && cputree.Known(p.machine, topology.LevelCore) > 0 {
		lines = append(lines, "[0 1]  a core and its hardware threads, by CPU number")
	}
	if p.isolatedDrawn {
		lines = append(lines, "*      isolated at boot: the scheduler moves nothing there, unthrottle neither")
	}
	if p.folded {
		lines = append(lines, "more alike: of the same shape as those above; --json lists each")
	}
	if len(lines) == 0 {
		return
	}
	p.Line("")
	for _, l := range lines {
		p.Line(l)
	}
}
