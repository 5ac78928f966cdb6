// Package defrag writes what `unthrottle defrag` moved or would move.
package defrag

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/placing/rebalance"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/placement"
)

// Repair is a plan to repair a node, or what came of it, as JSON has it.
type Repair struct {
	Moves []jsonMove `json:"moves"`
	// LeftAlone are containers that cross and are not moved, and why.
	LeftAlone []jsonLeftAlone `json:"left_alone"`
	// Before and After are what the placement costs; After that of the plan
	// where nothing was done.
	Before jsonQuality `json:"before"`
	After  jsonQuality `json:"after"`
	// Planned: nothing was done.
	Planned bool `json:"planned"`
}

// jsonMove is one container's change of CPUs.
type jsonMove struct {
	Path string `json:"path"`
	Name string `json:"name"`
	From string `json:"from"`
	To   string `json:"to"`
	// Gain is how many fewer sockets, NUMA nodes and L3s together it touches,
	// below 0 where it makes way. Cost is how many CPUs it did not have before.
	Gain int `json:"gain"`
	Cost int `json:"cost"`
	// Repair numbers the repair that the move is part of.
	Repair   int     `json:"repair"`
	Step     bool    `json:"step,omitempty"`
	Overlaps bool    `json:"overlaps,omitempty"`
	Done     bool    `json:"done"`
	ID       string  `json:"id,omitempty"`
	Seconds  float64 `json:"seconds,omitempty"`
}

// jsonLeftAlone is a container that is not moved.
type jsonLeftAlone struct {
	Path string `json:"path"`
	Name string `json:"name"`
	Why  string `json:"why"`
}

// jsonQuality is what a placement costs.
type jsonQuality struct {
	Crossings []jsonCrossings `json:"crossings"`
	// CoresShared are cores on which two containers have CPUs of their own,
	// StrandedHalfCores cores that are partly taken and partly free.
	CoresShared       int `json:"cores_shared"`
	StrandedHalfCores int `json:"stranded_half_cores"`
	// LargestFit is the largest request that fits, on the machine and in one
	// group of each level; 0 where the kernel does not tell the groups.
	LargestFit jsonFit `json:"largest_fit"`
}

// jsonCrossings are the groups of one level touched beyond what must be.
type jsonCrossings struct {
	Level     string `json:"level"`
	Avoidable int    `json:"avoidable"`
	Forced    int    `json:"forced"`
}

// jsonFit is a number of CPUs for each level.
type jsonFit struct {
	Machine  int `json:"machine"`
	Socket   int `json:"socket"`
	NUMANode int `json:"numa_node"`
	L3       int `json:"l3"`
}

// New is the outcome of a run as JSON shows it.
func New(d rebalance.Defragmented) Repair {
	out := Repair{Moves: []jsonMove{}, LeftAlone: []jsonLeftAlone{}, Before: qualityOf(d.Before),
		After: qualityOf(d.After), Planned: d.Planned}
	for _, step := range d.Steps {
		m := jsonMove{Path: text.EscapePath(step.Container), Name: step.Name, From: step.From.String(),
			To: step.To.String(), Gain: step.Gain,
			Cost: step.Cost, Repair: step.Repair, Step: step.Step, Overlaps: step.Overlaps}
		if step.Done != nil {
			m.Done, m.ID, m.Seconds = true, step.Done.ID, step.Done.Took.Seconds()
		}
		out.Moves = append(out.Moves, m)
	}
	for _, l := range d.LeftAlone {
		out.LeftAlone = append(out.LeftAlone, jsonLeftAlone{text.EscapePath(l.Path), l.Name, l.Why})
	}
	return out
}

func qualityOf(s placement.Score) jsonQuality {
	q := jsonQuality{CoresShared: s.CoresShared, StrandedHalfCores: s.Stranded,
		LargestFit: jsonFit{s.Fits.Machine, s.Fits.Socket, s.Fits.NUMANode, s.Fits.L3}}
	for _, c := range s.Crossings {
		q.Crossings = append(q.Crossings, jsonCrossings{string(c.Level), c.Avoidable, c.Forced})
	}
	return q
}

// Write writes a plan, or what came of it, a line per move.
func Write(w io.Writer, d Repair, style page.Style) error {
	var b strings.Builder
	if len(d.Moves) == 0 {
		b.WriteString("nothing to move: no crossing can be repaired within the budget\n")
	}
	for i, m := range d.Moves {
		state := ""
		if !d.Planned {
			state = text.Either(m.Done, "moved", "not moved") + "  "
		}
		fmt.Fprintf(&b, "%3d. %s%s: CPUs %s -> %s  (%s)\n", i+1, state, text.Shown(m.Name), m.From, m.To, m.why())
	}
	for _, l := range d.LeftAlone {
		fmt.Fprintf(&b, "left alone  %s: %s\n", text.Shown(l.Name), text.Shown(l.Why))
	}
	fmt.Fprintf(&b, "crossings   %s\n", crossings(d.Before, d.After))
	fmt.Fprintf(&b, "fits        largest request in one NUMA node: %d -> %d CPUs; stranded half-cores: %d -> %d\n",
		d.Before.LargestFit.NUMANode, d.After.LargestFit.NUMANode, d.Before.StrandedHalfCores, d.After.StrandedHalfCores)
	return style.Send(w, b.String())
}

// why says what a move is for and what it costs.
func (m jsonMove) why() string {
	var parts []string
	switch {
	case m.Step:
		parts = append(parts, "a step on its way")
	case m.Gain > 0:
		parts = append(parts, text.CountOf(m.Gain, "fewer group", "fewer groups")+" crossed")
	default:
		parts = append(parts, "makes way")
	}
	parts = append(parts, fmt.Sprintf("%d of %d CPUs change", m.Cost, size(m.To)))
	if m.Overlaps {
		parts = append(parts, "overlaps with the next for a moment")
	}
	if m.Seconds > 0 {
		parts = append(parts, text.Duration(time.Duration(m.Seconds*float64(time.Second))))
	}
	return strings.Join(parts, ", ")
}

func size(list string) int {
	set, err := cpuset.Parse(list)
	if err != nil {
		return 0
	}
	return set.Size()
}

// crossings shows each level before and after.
func crossings(before, after jsonQuality) string {
	var parts []string
	for i, c := range before.Crossings {
		if i >= len(after.Crossings) {
			break
		}
		a := after.Crossings[i]
		parts = append(parts, fmt.Sprintf("%s %d -> %d", c.Level, c.Avoidable+c.Forced, a.Avoidable+a.Forced))
	}
	return strings.Join(parts, ", ")
}
