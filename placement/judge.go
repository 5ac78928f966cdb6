package placement

import (
	"fmt"
	"strings"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/topology"
)

// judge counts what a set of CPUs touches.
func judge(m topology.Machine, cpus cpuset.CPUSet) Choice {
	shared, _ := cores(m, cpus)
	return Choice{
		CPUs:        cpus,
		Sockets:     groupsTouched(m, topology.LevelSocket, cpus),
		NUMANodes:   groupsTouched(m, topology.LevelNUMANode, cpus),
		L3s:         groupsTouched(m, topology.LevelL3, cpus),
		CoresShared: shared,
	}
}

// groupsTouched counts the groups of a level, CPUs of unknown group together
// as one more; 0 if no group of the set is known.
func groupsTouched(m topology.Machine, level topology.Level, cpus cpuset.CPUSet) int {
	ids := m.Spans(level, cpus)
	if len(ids) == 1 && ids[0] == topology.Unknown {
		return 0
	}
	return len(ids)
}

// coreKey names a core. A CPU whose core the kernel does not tell is a core of
// its own.
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

// cores counts the cores that a set touches: those with online threads outside
// the set, and those it has whole.
func cores(m topology.Machine, cpus cpuset.CPUSet) (shared, whole int) {
	in, out := map[coreKey]bool{}, map[coreKey]bool{}
	for _, c := range m.CPUs {
		switch {
		case cpus.Contains(c.ID):
			in[keyOf(c)] = true
		case c.Online:
			out[keyOf(c)] = true
		}
	}
	for key := range in {
		if out[key] {
			shared++
		}
	}
	return shared, len(in) - shared
}

// why tells in a line what decided: the narrowest group that holds the choice
// and how full that makes it, and each level that is crossed with the most that
// one group had to offer.
func why(m topology.Machine, levels []topology.Level, free []topology.CPU, c Choice) string {
	var parts []string
	within := ""
	for _, level := range levels {
		freeIn := map[topology.ID]int{}
		most := 0
		for _, f := range free {
			freeIn[f.At(level)]++
			most = max(most, freeIn[f.At(level)])
		}
		ids := m.Spans(level, c.CPUs)
		switch {
		case len(ids) > 1:
			parts = append(parts, fmt.Sprintf("over %d %ss (most free in one: %d)", len(ids), level, most))
		case ids[0] != topology.Unknown:
			within = fmt.Sprintf("in %s %d (%d of its %d free)", level, ids[0], c.CPUs.Size(), freeIn[ids[0]])
		}
	}
	if within != "" {
		parts = append([]string{within}, parts...)
	}
	shared, whole := cores(m, c.CPUs)
	if whole > 0 {
		parts = append(parts, text.Count(whole, "whole core"))
	}
	if shared > 0 {
		parts = append(parts, text.Count(shared, "core")+" shared with others")
	}
	return strings.Join(parts, ", ")
}
