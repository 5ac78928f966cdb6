package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/unthrottle/unthrottle/topology"
)

// branches are the characters that a tree is drawn with.
type branches struct{ item, last, pass, gap string }

func (p *picture) branches() branches {
	if p.options.ASCII {
		return branches{item: "|- ", last: "`- ", pass: "|  ", gap: "   "}
	}
	return branches{item: "├─ ", last: "└─ ", pass: "│  ", gap: "   "}
}

// children draws the groups within a group, those of the same shape beyond the
// first mostAlike as one line. The widest groups stand at the margin.
func (p *picture) children(g *cpuGroup, indent string) {
	b, top := p.branches(), g.names == nil
	drawn := map[string]int{}
	var groups, folded []*cpuGroup
	for _, child := range g.children {
		shape := child.shape()
		if drawn[shape]++; drawn[shape] > mostAlike {
			folded = append(folded, child)
			continue
		}
		groups = append(groups, child)
	}
	if len(g.children) == 0 && top {
		p.body(g, "", "")
	}
	for i, child := range groups {
		lead, next := indent+b.item, indent+b.pass
		if i == len(groups)-1 && len(folded) == 0 {
			lead, next = indent+b.last, indent+b.gap
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
func (p *picture) fold(groups []*cpuGroup, indent string, top bool) {
	p.folded = true
	lead := indent + p.branches().last
	if top {
		lead = ""
	}
	var all []topology.CPU
	for _, g := range groups {
		all = append(all, g.cpus...)
	}
	next := indent + p.branches().gap
	p.wrapped(lead, next+"  ", " ", []string{
		fmt.Sprintf("and %d more alike,", len(groups)),
		fmt.Sprintf("%s to %s", groups[0].names[0], groups[len(groups)-1].names[0]),
	})
	p.wrapped(next+"CPUs ", next+"     ", ",", strings.Split(listOf(all), ","))
}

// group draws a group's own line and, if nothing narrower is in it, its CPUs.
func (p *picture) group(g *cpuGroup, lead, next string) {
	name := strings.Join(g.names, ", ")
	name = strings.ToUpper(name[:1]) + name[1:]
	parts := []string{p.bold(name)}
	if memory := p.memory(g); memory != "" {
		parts = append(parts, memory)
	}
	if len(g.children) > 0 {
		p.wrapped(lead, next+"  ", "  ", append(parts, g.content()...))
		return
	}
	if p.detailed {
		p.wrapped(lead, next+"  ", "  ", parts)
		p.body(g, next+"   ", next+"   ")
		return
	}
	parts = append(parts, g.content()...)
	if isolated := g.isolated(); len(isolated) > 0 {
		parts = append(parts, p.yellow(fmt.Sprintf("%d isolated", len(isolated))))
	}
	if short := lead + strings.Join(append(parts, "CPUs "+g.list()), "  "); width(short) <= p.options.Width {
		p.line(short)
		return
	}
	p.wrapped(lead, next+"  ", "  ", parts)
	p.wrapped(next+"   CPUs ", next+"        ", ",", strings.Split(g.list(), ","))
}

// memory says how much memory the node has that a group's line names.
func (p *picture) memory(g *cpuGroup) string {
	for _, name := range g.names {
		for _, n := range p.machine.NUMANodes {
			if name == groupName(topology.LevelNUMANode, topology.ID(n.ID)) {
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
func (p *picture) body(g *cpuGroup, first, next string) {
	byKind := map[topology.Kind][]string{}
	for _, c := range g.cores() {
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
		p.wrapped(first+label, next+strings.Repeat(" ", len(label)), " ", byKind[kind])
	}
}

// core draws one core: its threads in brackets.
func (p *picture) core(c core) string {
	p.coresDrawn = true
	var threads []string
	for _, cpu := range c {
		text := strconv.Itoa(cpu.ID)
		if cpu.Isolated {
			p.isolatedDrawn = true
			text = p.yellow(text + "*")
		}
		threads = append(threads, text)
	}
	return "[" + strings.Join(threads, " ") + "]"
}
