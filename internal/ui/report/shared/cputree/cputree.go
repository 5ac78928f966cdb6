// Package cputree nests the CPUs of a machine: sockets, dies, NUMA nodes and L3
// caches, each group with the narrower ones in it.
//
// # Rule
//
// Only online CPUs count. Levels that hold the same CPUs are one group with several
// names. Where levels cross, the wider one cuts the narrower.
//
// # Example
//
// A desktop with one socket, one NUMA node and one L3 is one group with the names
// "socket 0", "NUMA node 0", "L3 0"; a server with two sockets of two L3s each is
// two groups with two children each.
package cputree

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/topology"
)

// Group is a group of online CPUs and the narrower ones in it.
type Group struct {
	Names    []string // "socket 0"; several where levels hold the same CPUs
	node     topology.ID
	CPUs     []topology.CPU
	Children []*Group
}

// Of nests the machine's groups. Where levels cross, the narrower is cut
// along the wider one.
func Of(m topology.Machine) *Group {
	var levels []topology.Level
	for _, level := range m.Nesting(topology.LevelSocket, topology.LevelDie, topology.LevelNUMANode, topology.LevelL3) {
		if level != topology.LevelDie || !m.Alike(level, topology.LevelSocket) {
			levels = append(levels, level)
		}
	}
	root := &Group{node: topology.Unknown}
	for _, c := range m.CPUs {
		if c.Online {
			root.CPUs = append(root.CPUs, c)
		}
	}
	root.split(levels)
	return root
}

func (g *Group) split(levels []topology.Level) {
	if len(levels) == 0 {
		return
	}
	level := levels[0]
	byID := map[topology.ID]*Group{}
	for _, c := range g.CPUs {
		id := c.At(level)
		child := byID[id]
		if child == nil {
			child = &Group{Names: []string{Name(level, id)}, node: g.node}
			if level == topology.LevelNUMANode {
				child.node = id
			}
			byID[id] = child
			g.Children = append(g.Children, child)
		}
		child.CPUs = append(child.CPUs, c)
	}
	for _, child := range g.Children {
		child.split(levels[1:])
		if len(child.Children) == 1 { // the same CPUs: one line for both
			only := child.Children[0]
			child.Names = append(child.Names, only.Names...)
			child.node, child.Children = only.node, only.Children
		}
	}
}

// Name names a group of a level: "socket 0".
func Name(level topology.Level, id topology.ID) string {
	if id == topology.Unknown {
		return string(level) + " not known"
	}
	return fmt.Sprintf("%s %d", level, id)
}

// List returns the group's CPUs as the kernel writes them.
func (g *Group) List() string { return List(g.CPUs) }

// List is CPUs as the kernel writes them.
func List(cpus []topology.CPU) string {
	ids := make([]int, len(cpus))
	for i, c := range cpus {
		ids[i] = c.ID
	}
	return cpuset.New(ids...).String()
}

// Isolated returns the group's CPUs that were isolated at boot.
func (g *Group) Isolated() []topology.CPU {
	return slices.DeleteFunc(slices.Clone(g.CPUs), func(c topology.CPU) bool { return !c.Isolated })
}

// Core is one core's online CPUs.
type Core []topology.CPU

// Cores returns the group's cores in the order of their lowest CPU.
func (g *Group) Cores() []Core {
	var cores []Core
	at := map[topology.ID]int{}
	for _, c := range g.CPUs {
		if i, ok := at[c.Core]; ok && c.Core != topology.Unknown {
			cores[i] = append(cores[i], c)
			continue
		}
		at[c.Core] = len(cores)
		cores = append(cores, Core{c})
	}
	return cores
}

// Shape tells how a group is built, whatever its ids; groups of one shape fold.
func (g *Group) Shape() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d,%q,%d(", len(g.Names), g.Content(), len(g.Isolated()))
	for _, child := range g.Children {
		b.WriteString(child.Shape())
	}
	b.WriteByte(')')
	return b.String()
}

// Content says what cores a group has: "8 cores of 2 threads", then "+ 4
// cores", by kind and by number of threads.
func (g *Group) Content() []string {
	type coreSort struct {
		kind    topology.Kind
		threads int
	}
	var sorts []coreSort
	cores := map[coreSort]int{}
	for _, c := range g.Cores() {
		s := coreSort{c[0].Kind, len(c)}
		if c[0].Core == topology.Unknown {
			s.threads = 0
		}
		if cores[s] == 0 {
			sorts = append(sorts, s)
		}
		cores[s]++
	}
	var parts []string
	for _, s := range sorts {
		what := "core"
		if s.threads == 0 {
			what = "CPU"
		}
		if s.kind != topology.KindUnknown {
			what = string(s.kind) + " " + what
		}
		part := text.Count(cores[s], what)
		if s.threads > 1 {
			part += fmt.Sprintf(" of %d threads", s.threads)
		}
		if len(parts) > 0 {
			part = "+ " + part
		}
		parts = append(parts, part)
	}
	return parts
}

// Known is how many groups of a level the kernel tells of, among online CPUs.
func Known(m topology.Machine, level topology.Level) int {
	n := 0
	for _, id := range m.Spans(level, m.Online()) {
		if id != topology.Unknown {
			n++
		}
	}
	return n
}

// Branches are the characters that a tree is drawn with.
type Branches struct{ Item, Last, Pass, Gap string }

// NewBranches chooses lines, or characters of ASCII.
func NewBranches(ascii bool) Branches {
	if ascii {
		return Branches{Item: "|- ", Last: "`- ", Pass: "|  ", Gap: "   "}
	}
	return Branches{Item: "├─ ", Last: "└─ ", Pass: "│  ", Gap: "   "}
}
