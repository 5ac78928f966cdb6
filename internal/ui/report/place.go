package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/placement"
	"github.com/unthrottle/unthrottle/topology"
)

// Placement is what `unthrottle place --json` prints. Lists of CPUs are in the
// kernel's form.
type Placement struct {
	Containers []PlacedContainer  `json:"containers"` // in the order of arrival
	Shared     string             `json:"shared"`     // CPUs that are nobody's alone
	Refused    []RefusedContainer `json:"refused"`
	Score      PlacementScore     `json:"score"`
	// Moves would repair it; null where none were asked for.
	Moves []PlacementMove `json:"moves"`
	// After is the score that they would leave behind; null without them.
	After *PlacementScore `json:"after"`
	Order string          `json:"order"` // of the objectives
}

// PlacedContainer is where one container is.
type PlacedContainer struct {
	Name         string  `json:"name"`
	CPUs         string  `json:"cpus"` // those it may use
	Sockets      int     `json:"sockets"`
	NUMANodes    int     `json:"numa_nodes"`
	L3s          int     `json:"l3s"`
	CoresShared  int     `json:"cores_shared"`
	Avoidable    bool    `json:"avoidable"`
	Why          string  `json:"why"`
	Class        string  `json:"class"`
	Dedicated    string  `json:"dedicated"` // those that are its alone
	Idle         string  `json:"idle"`      // threads that nobody uses, for its sake
	Wanted       float64 `json:"wanted"`
	FullCores    bool    `json:"full_cores"`
	IdleSiblings bool    `json:"idle_siblings"`
	Lends        bool    `json:"lends"`
	Stays        bool    `json:"stays"`
	QuotaBinds   *bool   `json:"quota_binds"` // null: not known
}

// RefusedContainer got nothing.
type RefusedContainer struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// PlacementScore is what a placement costs.
type PlacementScore struct {
	Sockets     CrossingScore `json:"sockets"`
	NUMANodes   CrossingScore `json:"numa_nodes"`
	L3s         CrossingScore `json:"l3s"`
	CoresShared int           `json:"cores_shared"` // cores on which two containers have CPUs
	Sharing     int           `json:"containers_sharing_a_core"`
	Stranded    int           `json:"stranded_half_cores"`
	Idle        int           `json:"idle_threads"`
	Pool        int           `json:"shared_cpus"`
	// The largest request for exclusive CPUs that still fits in one group.
	Fits FitScore `json:"largest_request"`
}

// CrossingScore counts groups touched beyond what an empty machine would need.
type CrossingScore struct {
	Containers int `json:"containers"`
	Avoidable  int `json:"avoidable"`
	Forced     int `json:"forced"`
}

// FitScore is the largest request that fits in one group of each level.
type FitScore struct {
	Machine  int `json:"machine"`
	Socket   int `json:"socket"`
	NUMANode int `json:"numa_node"`
	L3       int `json:"l3"`
}

// PlacementMove is one container's change of CPUs.
type PlacementMove struct {
	Name     string `json:"name"`
	From     string `json:"from"`
	To       string `json:"to"`
	Gain     int    `json:"gain"`
	Cost     int    `json:"cost"`
	Repair   int    `json:"repair"`
	Step     bool   `json:"step"`
	Overlaps bool   `json:"overlaps"`
}

// NewPlacement is the outcome as JSON shows it.
func NewPlacement(o placement.Outcome) Placement {
	out := Placement{Containers: []PlacedContainer{}, Shared: o.Pool.String(), Refused: []RefusedContainer{},
		Score: newScore(o.Score), Order: o.State.Order.String()}
	asked := map[string]placement.Container{}
	for _, c := range o.State.Containers {
		asked[c.Name] = c
	}
	for _, p := range o.Containers {
		c := asked[p.Name]
		out.Containers = append(out.Containers, PlacedContainer{
			Name: p.Name, CPUs: p.CPUs.String(), Sockets: p.Sockets, NUMANodes: p.NUMANodes, L3s: p.L3s,
			CoresShared: p.CoresShared, Avoidable: p.Avoidable, Why: p.Why, Class: string(p.Class),
			Dedicated: p.Own.String(), Idle: p.Idle.String(), Wanted: c.CPUs, FullCores: c.FullCores,
			IdleSiblings: c.IdleSiblings, Lends: c.Lends, Stays: c.Stays != "", QuotaBinds: p.QuotaBinds,
		})
	}
	for _, r := range o.Refused {
		out.Refused = append(out.Refused, RefusedContainer{r.Name, strings.TrimPrefix(r.Err.Error(), "placement: ")})
	}
	if o.After == nil {
		return out
	}
	after := newScore(*o.After)
	out.After, out.Moves = &after, []PlacementMove{}
	for _, m := range o.Moves {
		out.Moves = append(out.Moves, PlacementMove{m.Container, m.From.String(), m.To.String(), m.Gain, m.Cost, m.Repair, m.Step, m.Overlaps})
	}
	return out
}

func newScore(s placement.Score) PlacementScore {
	crossing := func(i int) CrossingScore {
		return CrossingScore{s.Crossings[i].Containers, s.Crossings[i].Avoidable, s.Crossings[i].Forced}
	}
	return PlacementScore{crossing(0), crossing(1), crossing(2), s.CoresShared, s.Sharing, s.Stranded, s.Idle, s.Pool,
		FitScore{s.Fits.Machine, s.Fits.Socket, s.Fits.NUMANode, s.Fits.L3}}
}

// Place writes an outcome for people: the machine with a letter per CPU, who is
// where and why, what it costs, and the moves that would repair it.
func Place(w io.Writer, o placement.Outcome, t TopologyOptions) error {
	if t.Width == 0 {
		t.Width = defaultWidth
	}
	t.Width = max(t.Width, leastWidth)
	p := &picture{machine: o.State.Machine, options: t}
	signs := newSigns(o)
	p.placed(groupTree(o.State.Machine), "", signs)
	p.line("")
	p.placedTable(o, signs)
	p.placedCosts(o)
	p.placedMoves(o)
	_, err := io.WriteString(w, p.text.String())
	return err
}

// maxPlacedName is how much of a name a line shows.
const maxPlacedName = 32

func placedName(name string) string { return text.Sanitize(name, maxPlacedName) }

// placedTable is a line per container, and one per refusal.
func (p *picture) placedTable(o placement.Outcome, s signs) {
	wide, list := len("CONTAINER"), len("CPUS")
	const longList = 24
	for _, c := range o.Containers {
		wide, list = max(wide, width(placedName(c.Name))), max(list, min(longList, len(c.CPUs.String())))
	}
	p.line(p.bold(fmt.Sprintf("   %-*s  %-9s  %-*s  %7s  %10s  %3s  %s", wide, "CONTAINER", "CLASS", list, "CPUS", "SOCKETS", "NUMA NODES", "L3S", "WHY")))
	for _, c := range o.Containers {
		cpus := c.CPUs.String()
		if len(cpus) > longList {
			cpus = fmt.Sprintf("%d CPUs", c.CPUs.Size())
		}
		line := fmt.Sprintf("%c  %s%s  %-9s  %-*s  %7s  %10s  %3s  %s", s.of[c.Name], placedName(c.Name),
			strings.Repeat(" ", max(0, wide-width(placedName(c.Name)))), c.Class, list, cpus,
			groupCount(c.Sockets), groupCount(c.NUMANodes), groupCount(c.L3s), c.Why)
		if c.QuotaBinds != nil && *c.QuotaBinds {
			line += "; its quota can still stop it"
		}
		if c.Avoidable {
			line = p.yellow(line)
		}
		p.line(line)
	}
	for _, r := range o.Refused {
		p.wrapped(p.yellow("!")+"  "+placedName(r.Name)+": ", "   ", " ",
			strings.Fields(strings.TrimPrefix(r.Err.Error(), "placement: ")))
	}
	p.line("")
}

// groupCount shows a level that the kernel does not tell as not known.
func groupCount(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

// placedCosts says what the placement costs as a whole.
func (p *picture) placedCosts(o placement.Outcome) {
	s := o.Score
	for i, c := range s.Crossings {
		if knownGroups(o.State.Machine, c.Level) < 2 {
			continue
		}
		name := string(c.Level)
		text := fmt.Sprintf("%s crossings: %d avoidable, %d forced", strings.ToUpper(name[:1])+name[1:], c.Avoidable, c.Forced)
		if o.After != nil && len(o.Moves) > 0 {
			a := o.After.Crossings[i]
			text += fmt.Sprintf("; after the moves below %d avoidable, %d forced", a.Avoidable, a.Forced)
		}
		p.line(text)
	}
	p.line(fmt.Sprintf("%s shared by two containers, %s stranded, %s in the shared pool",
		text.Count(s.CoresShared, "core"), text.Count(s.Stranded, "half-core"), text.Count(s.Pool, "CPU")))
	fits := fmt.Sprintf("Largest request that still fits: %d CPUs", s.Fits.Machine)
	for _, f := range []struct {
		level topology.Level
		n     int
	}{{topology.LevelSocket, s.Fits.Socket}, {topology.LevelNUMANode, s.Fits.NUMANode}, {topology.LevelL3, s.Fits.L3}} {
		if knownGroups(o.State.Machine, f.level) > 1 {
			fits += fmt.Sprintf(", %d on one %s", f.n, f.level)
		}
	}
	p.line(fits)
}

// placedMoves lists the moves that would repair it.
func (p *picture) placedMoves(o placement.Outcome) {
	if o.After == nil {
		return
	}
	p.line("")
	if len(o.Moves) == 0 {
		p.line("No moves would repair more.")
		return
	}
	p.line(p.bold("Moves that would repair it, in order:"))
	for i, m := range o.Moves {
		line := fmt.Sprintf("%s from %s to %s: %s moved", placedName(m.Container), m.From, m.To, text.Count(m.Cost, "CPU"))
		switch {
		case m.Step:
			line += ", a step aside"
		case m.Gain > 0:
			line += fmt.Sprintf(", %s fewer", text.Count(m.Gain, "group"))
		default:
			line += ", makes way"
		}
		if m.Overlaps {
			line += "; shares CPUs until the next move is done"
		}
		p.wrapped(fmt.Sprintf("%3d  ", i+1), "     ", " ", strings.Fields(line))
	}
}
