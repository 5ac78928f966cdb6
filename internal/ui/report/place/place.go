// Package place draws an outcome of placement, and has its JSON.
package place

import (
	"fmt"
	"io"
	"strings"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/cputree"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/table"
	"github.com/unthrottle/unthrottle/placement"
	"github.com/unthrottle/unthrottle/topology"
)

// JSON is what `unthrottle place --json` prints. Lists of CPUs are in the
// kernel's form.
type JSON struct {
	Containers []jsonPlaced  `json:"containers"` // in the order of arrival
	Shared     string        `json:"shared"`     // CPUs that no container has alone
	Refused    []jsonRefused `json:"refused"`
	Score      jsonScore     `json:"score"`
	// Moves would repair it; null where none were asked for.
	Moves []jsonMove `json:"moves"`
	// After is the score that they would leave behind; null without them.
	After *jsonScore `json:"after"`
	Order string     `json:"order"` // of the objectives
}

// jsonPlaced is where one container is.
type jsonPlaced struct {
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
	Idle         string  `json:"idle"`      // threads that are kept idle for it
	Wanted       float64 `json:"wanted"`
	FullCores    bool    `json:"full_cores"`
	IdleSiblings bool    `json:"idle_siblings"`
	Lends        bool    `json:"lends"`
	Stays        bool    `json:"stays"`
	QuotaBinds   *bool   `json:"quota_binds"` // null: not known
}

// jsonRefused got nothing.
type jsonRefused struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// jsonScore is what a placement costs.
type jsonScore struct {
	Sockets     jsonCrossings `json:"sockets"`
	NUMANodes   jsonCrossings `json:"numa_nodes"`
	L3s         jsonCrossings `json:"l3s"`
	CoresShared int           `json:"cores_shared"` // cores on which two containers have CPUs
	Sharing     int           `json:"containers_sharing_a_core"`
	Stranded    int           `json:"stranded_half_cores"`
	Idle        int           `json:"idle_threads"`
	Pool        int           `json:"shared_cpus"`
	// The largest request for exclusive CPUs that still fits in one group.
	Fits jsonFits `json:"largest_request"`
}

// jsonCrossings counts groups touched beyond what an empty machine would need.
type jsonCrossings struct {
	Containers int `json:"containers"`
	Avoidable  int `json:"avoidable"`
	Forced     int `json:"forced"`
}

// jsonFits is the largest request that fits in one group of each level.
type jsonFits struct {
	Machine  int `json:"machine"`
	Socket   int `json:"socket"`
	NUMANode int `json:"numa_node"`
	L3       int `json:"l3"`
}

// jsonMove is one container's change of CPUs.
type jsonMove struct {
	Name     string `json:"name"`
	From     string `json:"from"`
	To       string `json:"to"`
	Gain     int    `json:"gain"`
	Cost     int    `json:"cost"`
	Repair   int    `json:"repair"`
	Step     bool   `json:"step"`
	Overlaps bool   `json:"overlaps"`
}

// NewJSON is the outcome as JSON shows it.
func NewJSON(o placement.Outcome) JSON {
	out := JSON{Containers: []jsonPlaced{}, Shared: o.Pool.String(), Refused: []jsonRefused{},
		Score: newScore(o.Score), Order: o.State.Order.String()}
	asked := map[string]placement.Container{}
	for _, c := range o.State.Containers {
		asked[c.Name] = c
	}
	for _, p := range o.Containers {
		c := asked[p.Name]
		out.Containers = append(out.Containers, jsonPlaced{
			Name: p.Name, CPUs: p.CPUs.String(), Sockets: p.Sockets, NUMANodes: p.NUMANodes, L3s: p.L3s,
			CoresShared: p.CoresShared, Avoidable: p.Avoidable, Why: p.Why, Class: string(p.Class),
			Dedicated: p.Own.String(), Idle: p.Idle.String(), Wanted: c.CPUs, FullCores: c.FullCores,
			IdleSiblings: c.IdleSiblings, Lends: c.SharesIdle, Stays: c.Immovable != "", QuotaBinds: p.QuotaBinds,
		})
	}
	for _, r := range o.Refused {
		out.Refused = append(out.Refused, jsonRefused{r.Name, strings.TrimPrefix(r.Err.Error(), "placement: ")})
	}
	if o.After == nil {
		return out
	}
	after := newScore(*o.After)
	out.After, out.Moves = &after, []jsonMove{}
	for _, m := range o.Moves {
		out.Moves = append(out.Moves, jsonMove{m.Container, m.From.String(), m.To.String(), m.Gain, m.Cost, m.Repair, m.Step, m.Overlaps})
	}
	return out
}

func newScore(s placement.Score) jsonScore {
	crossing := func(i int) jsonCrossings {
		return jsonCrossings{s.Crossings[i].Containers, s.Crossings[i].Avoidable, s.Crossings[i].Forced}
	}
	return jsonScore{crossing(0), crossing(1), crossing(2), s.CoresShared, s.Sharing, s.Stranded, s.Idle, s.Pool,
		jsonFits{s.Fits.Machine, s.Fits.Socket, s.Fits.NUMANode, s.Fits.L3}}
}

// Write writes an outcome for people: the machine with a letter per CPU, who is
// where and why, what it costs, and the moves that would repair it.
func Write(w io.Writer, o placement.Outcome, options Options) error {
	d := &drawing{
		Page: page.New(page.Style{Width: options.Width, ASCII: options.ASCII, Color: options.Color}, leastWidth, 0), outcome: o,
		branches: cputree.NewBranches(options.ASCII), signs: newSigns(o),
	}
	d.machine(cputree.Of(o.State.Machine), "")
	d.Line("")
	d.table()
	d.costs()
	d.moves()
	return d.Send(w)
}

// Options say how Write draws.
type Options struct {
	Width int  // columns; 0 means 80, below 40 means 40
	ASCII bool // no box characters
	Color bool // ANSI colours
}

const leastWidth = 40

// drawing is a placement drawn so far.
type drawing struct {
	*page.Page
	outcome  placement.Outcome
	branches cputree.Branches
	signs    signs
}

// maxName is how much of a name a line shows.
const maxName = 32

func shownName(name string) string { return text.Sanitize(name, maxName) }

// longList is the length from which a list of CPUs is their number; leastWhy the least width of the column WHY.
const (
	longList = 24
	leastWhy = 24
)

// table is a line per container, and one per refusal.
func (d *drawing) table() {
	o := d.outcome
	fields := []table.Field[placement.Placed]{
		{Text: func(c placement.Placed) string { return string(d.signs.of[c.Name]) }},
		{Column: table.Column{Name: "CONTAINER", Least: 12}, Text: func(c placement.Placed) string { return shownName(c.Name) }},
		{Column: table.Column{Name: "CLASS", Spare: 1}, Text: func(c placement.Placed) string { return string(c.Class) }},
		{Column: table.Column{Name: "CPUS"}, Text: cpusOf},
		{Column: table.Column{Name: "SOCKETS", Right: true, Spare: 2},
			Text: func(c placement.Placed) string { return groupCount(c.Sockets) }},
		{Column: table.Column{Name: "NUMA NODES", Right: true, Spare: 3},
			Text: func(c placement.Placed) string { return groupCount(c.NUMANodes) }},
		{Column: table.Column{Name: "L3S", Right: true, Spare: 4}, Text: func(c placement.Placed) string { return groupCount(c.L3s) }},
		{Column: table.Column{Name: "WHY", Fill: true, Least: leastWhy}, Text: whyOf},
	}
	for i := range fields {
		fields[i].Color = func(c placement.Placed) string { return text.Either(c.Avoidable, page.Amber, "") }
	}
	table.Of(fields, o.Containers).Fitted(d.Page)
	for _, r := range o.Refused {
		d.Wrapped(d.Paint(page.Amber, "!")+"  "+shownName(r.Name)+": ", "   ", " ",
			strings.Fields(strings.TrimPrefix(r.Err.Error(), "placement: ")))
	}
	d.Line("")
}

// cpusOf is a list of CPUs, or their number where that is long.
func cpusOf(c placement.Placed) string {
	if cpus := c.CPUs.String(); len(cpus) <= longList {
		return cpus
	}
	return text.Count(c.CPUs.Size(), "CPU")
}

func whyOf(c placement.Placed) string {
	return c.Why + text.Either(c.QuotaBinds != nil && *c.QuotaBinds, "; its quota can still stop it", "")
}

// groupCount shows a level that the kernel does not tell as not known.
func groupCount(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

// costs says what the placement costs as a whole.
func (d *drawing) costs() {
	o := d.outcome
	s := o.Score
	for i, c := range s.Crossings {
		if cputree.Known(o.State.Machine, c.Level) < 2 {
			continue
		}
		name := string(c.Level)
		text := fmt.Sprintf("%s crossings: %d avoidable, %d forced", strings.ToUpper(name[:1])+name[1:], c.Avoidable, c.Forced)
		if o.After != nil && len(o.Moves) > 0 {
			a := o.After.Crossings[i]
			text += fmt.Sprintf("; after the moves below %d avoidable, %d forced", a.Avoidable, a.Forced)
		}
		d.Line(text)
	}
	d.Line(fmt.Sprintf("%s shared by two containers, %s stranded, %s in the shared pool",
		text.Count(s.CoresShared, "core"), text.Count(s.Stranded, "half-core"), text.Count(s.Pool, "CPU")))
	fits := "Largest request that still fits: " + text.Count(s.Fits.Machine, "CPU")
	for _, f := range []struct {
		level topology.Level
		n     int
	}{{topology.LevelSocket, s.Fits.Socket}, {topology.LevelNUMANode, s.Fits.NUMANode}, {topology.LevelL3, s.Fits.L3}} {
		if cputree.Known(o.State.Machine, f.level) > 1 {
			fits += fmt.Sprintf(", %d on one %s", f.n, f.level)
		}
	}
	d.Line(fits)
}

// moves lists the moves that would repair it.
func (d *drawing) moves() {
	o := d.outcome
	if o.After == nil {
		return
	}
	d.Line("")
	if len(o.Moves) == 0 {
		d.Line("No moves would repair more.")
		return
	}
	d.Line(d.Bolden("Moves that would repair it, in order:"))
	for i, m := range o.Moves {
		line := fmt.Sprintf("%s from %s to %s: %s moved", shownName(m.Container), m.From, m.To, text.Count(m.Cost, "CPU"))
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
		d.Wrapped(fmt.Sprintf("%3d  ", i+1), "     ", " ", strings.Fields(line))
	}
}
