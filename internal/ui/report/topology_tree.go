package report

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/topology"
)

// cpuGroup is a group of online CPUs and the narrower ones in it.
type cpuGroup struct {
	names    []string // "socket 0"; several where levels hold the same CPUs
	node     topology.ID
	cpus     []topology.CPU
	children []*cpuGroup
}

// groupTree nests the machine's groups. Where levels cross, the narrower is cut
// along the wider one.
func groupTree(m topology.Machine) *cpuGroup {
	var levels []topology.Level
	for _, level := range m.Nesting(topology.LevelSocket, topology.LevelDie, topology.LevelNUMANode, topology.LevelL3) {
		if level != topology.LevelDie || !m.Alike(level, topology.LevelSocket) {
			levels = append(levels, level)
		}
	}
	root := &cpuGroup{node: topology.Unknown}
	for _, c := range m.CPUs {
		if c.Online {
			root.cpus = append(root.cpus, c)
		}
	}
	root.split(levels)
	return root
}

func (g *cpuGroup) split(levels []topology.Level) {
	if len(levels) == 0 {
		return
	}
	level := levels[0]
	byID := map[topology.ID]*cpuGroup{}
	for _, c := range g.cpus {
		id := c.At(level)
		child := byID[id]
		if child == nil {
			child = &cpuGroup{names: []string{groupName(level, id)}, node: g.node}
			if level == topology.LevelNUMANode {
				child.node = id
			}
			byID[id] = child
			g.children = append(g.children, child)
		}
		child.cpus = append(child.cpus, c)
	}
	for _, child := range g.children {
		child.split(levels[1:])
		if len(child.children) == 1 { // the same CPUs: one line for both
			only := child.children[0]
			child.names = append(child.names, only.names...)
			child.node, child.children = only.node, only.children
		}
	}
}

func groupName(level topology.Level, id topology.ID) string {
	if id == topology.Unknown {
		return string(level) + " not known"
	}
	return fmt.Sprintf("%s %d", level, id)
}

// list returns the group's CPUs as the kernel writes them.
func (g *cpuGroup) list() string { return listOf(g.cpus) }

func listOf(cpus []topology.CPU) string {
	ids := make([]int, len(cpus))
	for i, c := range cpus {
		ids[i] = c.ID
	}
	return cpuset.New(ids...).String()
}

func (g *cpuGroup) isolated() []topology.CPU {
	return slices.DeleteFunc(slices.Clone(g.cpus), func(c topology.CPU) bool { return !c.Isolated })
}

// core is one core's online CPUs.
type core []topology.CPU

// cores returns the group's cores in the order of their lowest CPU.
func (g *cpuGroup) cores() []core {
	var cores []core
	at := map[topology.ID]int{}
	for _, c := range g.cpus {
		if i, ok := at[c.Core]; ok && c.Core != topology.Unknown {
			cores[i] = append(cores[i], c)
			continue
		}
		at[c.Core] = len(cores)
		cores = append(cores, core{c})
	}
	return cores
}

// shape tells how a group is built, whatever its ids; groups of one shape fold.
func (g *cpuGroup) shape() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d,%q,%d(", len(g.names), g.content(), len(g.isolated()))
	for _, child := range g.children {
		b.WriteString(child.shape())
	}
	b.WriteByte(')')
	return b.String()
}

// content says what cores a group has: "8 cores of 2 threads", then "+ 4
// cores", by kind and by number of threads.
func (g *cpuGroup) content() []string {
	type coreSort struct {
		kind    topology.Kind
		threads int
	}
	var sorts []coreSort
	cores := map[coreSort]int{}
	for _, c := range g.cores() {
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
