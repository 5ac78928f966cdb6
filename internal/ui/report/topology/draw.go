package topology

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/cputree"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/topology"
)

// children draws the groups within a group, those of the same shape beyond the
// first mostAlike as one line. The widest groups stand at the margin.
func (p *drawing) children(g *cputree.Group, indent string) {
	b, top := p.branches, g.Names == nil
	drawn := map[string]int{}
	var groups, folded []*cputree.Group
	for _, child := range g.Children {
		shape := child.Shape()
		if drawn[shape]++; drawn[shape] > mostAlike {
			folded = append(folded, child)
			continue
		}
		groups = append(groups, child)
	}
	if len(g.Children) == 0 && top {
		p.body(g, "", "")
	}
	for i, child := range groups {
		lead, next := indent+b.Item, indent+b.Pass
		if i == len(groups)-1 && len(folded) == 0 {
			lead, next = indent+b.Last, indent+b.Gap
		}
		if top {
			lead, next = "", ""
		}
		p.group(child, lead, next)
		p.children(child, next)
	}
	if len(folded) > 0 {
		p.fold(folded, indent, top)
	}
}

// fold draws the groups that look like those before them as one line.
func (p *drawing) fold(groups []*cputree.Group, indent string, top bool) {
	p.folded = true
	lead := indent + p.branches.Last
	if top {
		lead = ""
	}
	var cpus []topology.CPU
	for _, g := range groups {
		cpus = append(cpus, g.CPUs...)
	}
	next := indent + p.branches.Gap
	p.Wrapped(lead, next+"  ", " ", []string{
		fmt.Sprintf("and %d more alike,", len(groups)),
		fmt.Sprintf("%s to %s", groups[0].Names[0], groups[len(groups)-1].Names[0]),
	})
	p.Wrapped(next+"CPUs ", next+"     ", ",", strings.Split(cputree.List(cpus), ","))
}

// group draws a group's own line and, if nothing narrower is in it, its CPUs.
func (p *drawing) group(g *cputree.Group, lead, next string) {
	name := strings.Join(g.Names, ", ")
	name = strings.ToUpper(name[:1]) + name[1:]
	parts := []string{p.Bolden(name)}
	if memory := p.memory(g); memory != "" {
		parts = append(parts, memory)
	}
	if len(g.Children) > 0 {
		p.Wrapped(lead, next+"  ", "  ", append(parts, g.Content()...))
		return
	}
	if p.detailed {
		p.Wrapped(lead, next+"  ", "  ", parts)
		p.body(g, next+"   ", next+"   ")
		return
	}
	parts = append(parts, g.Content()...)
	if isolated := g.Isolated(); len(isolated) > 0 {
		parts = append(parts, p.Paint(page.Amber, fmt.Sprintf("%d isolated", len(isolated))))
	}
	if short := lead + strings.Join(append(parts, "CPUs "+g.List()), "  "); text.Width(short) <= p.Columns {
		p.Line(short)
		return
	}
	p.Wrapped(lead, next+"  ", "  ", parts)
	p.Wrapped(next+"   CPUs ", next+"        ", ",", strings.Split(g.List(), ","))
}

// memory says how much memory the node has that a group's line names.
func (p *drawing) memory(g *cputree.Group) string {
	for _, name := range g.Names {
		for _, n := range p.machine.NUMANodes {
			if name == cputree.Name(topology.LevelNUMANode, topology.ID(n.ID)) {
				return memoryText(n.MemoryBytes)
			}
		}
	}
	return ""
}

func memoryText(bytes *uint64) string {
	switch {
	case bytes == nil:
		return ""
	case *bytes == 0:
		return "no memory"
	case *bytes < 1<<30:
		return fmt.Sprintf("%d MiB", *bytes>>20)
	}
	return fmt.Sprintf("%d GiB", (*bytes+1<<29)>>30)
}

// body draws every core of a group, each kind on lines of its own.
func (p *drawing) body(g *cputree.Group, first, next string) {
	byKind := map[topology.Kind][]string{}
	for _, c := range g.Cores() {
		byKind[c[0].Kind] = append(byKind[c[0].Kind], p.core(c))
	}
	for _, kind := range []topology.Kind{topology.KindPerformance, topology.KindEfficiency, topology.KindUnknown} {
		if len(byKind[kind]) == 0 {
			continue
		}
		label := ""
		if kind != topology.KindUnknown {
			label = fmt.Sprintf("%-12s", kind)
		}
		p.Wrapped(first+label, next+strings.Repeat(" ", len(label)), " ", byKind[kind])
	}
}

// core draws one core: its threads in brackets.
func (p *drawing) core(c cputree.Core) string {
	p.coresDrawn = true
	var threads []string
	for _, cpu := range c {
		text := strconv.Itoa(cpu.ID)
		if cpu.Isolated {
			p.isolatedDrawn = true
			text = p.Paint(page.Amber, text+"*")
		}
		threads = append(threads, text)
	}
	return "[" + strings.Join(threads, " ") + "]"
}
