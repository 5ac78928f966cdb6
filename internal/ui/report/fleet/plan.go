package fleet

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
)

// Plan is the JSON of `unthrottle fleet plan`.
type Plan struct {
	// From and Until are as those of Document.
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
	// Risk is the share of the time for which a host's containers may want more CPUs than it has. MovesAtMost is the
	// budget; null: none.
	Risk        float64 `json:"risk"`
	MovesAtMost *int    `json:"moves_at_most"`
	// Reserve is the share of each host's CPUs and memory that the plan leaves alone.
	Reserve    float64 `json:"reserve"`
	Containers int     `json:"containers"`
	// Secondaries are those of them that yield to all others, and need on average what these leave idle.
	Secondaries int `json:"secondaries"`
	// HostsNow and Hosts are how many hosts have containers that may move: now, and with the plan. LowerBound is how many
	// every plan needs.
	HostsNow   int `json:"hosts_now"`
	Hosts      int `json:"hosts"`
	LowerBound int `json:"lower_bound"`
	Moves      int `json:"moves"`
	// OverNow and Over are how many hosts want more than they have, with that risk: now, and with the plan.
	OverNow int `json:"hosts_over_now"`
	Over    int `json:"hosts_over"`
	// Seconds is how long the plan took, without reading the rows.
	Seconds float64 `json:"seconds"`
	Stay    []Stay  `json:"stay"`
	// HostsUnknown are hosts whose CPUs or memory are not known, ContainersUnknown their containers: neither is part of
	// the plan.
	HostsUnknown      int `json:"hosts_unknown"`
	ContainersUnknown int `json:"containers_unknown"`
	// Rounds is in how many rounds the moves can be made: those of one at once, so that no host holds more than it has
	// meanwhile. MovesTight is how many have no such order, and come in the last round.
	Rounds     int `json:"rounds"`
	MovesTight int `json:"moves_tight"`
	// Exclusive is about containers with exclusive CPUs; null: there are none.
	Exclusive *Exclusive `json:"exclusive"`
	Emptied   []Host     `json:"emptied"`
	MoveList  []Move     `json:"move_list"`
	Input     Input      `json:"input"`
}

// Stay is a reason for which containers are not moved.
type Stay struct {
	Reason     string `json:"reason"`
	Containers int    `json:"containers"`
}

// Host is the name of a host.
type Host struct {
	Cluster string `json:"cluster"`
	Node    string `json:"node"`
}

// Move is a container that goes from one host to another.
type Move struct {
	Cluster   string `json:"cluster"`
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Container string `json:"container"`
	Service   string `json:"service"`
	From      string `json:"from"`
	To        string `json:"to"`
	// Round is the first round in which it can move, from 1.
	Round int `json:"round"`
	// CPUs are the exclusive ones that it gets there, as a list; null: it has none, or it is not known how CPUs lie there.
	CPUs *string `json:"cpus"`
}

// Exclusive is how exclusive CPUs lie on the hosts' sockets, NUMA nodes and L3 caches.
type Exclusive struct {
	Containers int `json:"containers"`
	// Unknown is how many of them are on hosts of which it is not known how CPUs lie, or which they have.
	Unknown int `json:"unknown"`
	// CrossingNow is how many touch more groups than they must: now, with the plan, and after the repairs.
	CrossingNow      int `json:"crossing_now"`
	Crossing         int `json:"crossing"`
	CrossingRepaired int `json:"crossing_repaired"`
	// Repairs are moves within hosts after the last round, in their order.
	Repairs []Repair `json:"repairs"`
}

// Repair is a container that gets other CPUs of its host.
type Repair struct {
	Cluster   string `json:"cluster"`
	Node      string `json:"node"`
	Pod       string `json:"pod"`
	Container string `json:"container"`
	From      string `json:"from"`
	To        string `json:"to"`
}

// WritePlan writes a plan as text.
func WritePlan(w io.Writer, d Plan, style page.Style) error {
	p := page.New(style, 0, 0)
	p.Paragraph(fmt.Sprintf("%s on %s now, on %s with %s; every plan needs at least %d",
		text.Count(d.Containers, "container"), text.Count(d.HostsNow, "host"),
		text.Count(d.Hosts, "host"), text.Count(d.Moves, "move"), d.LowerBound))
	if line := gone(d.Input); line != "" {
		p.Hanging("  ", line)
	}
	have := "they have"
	if d.Reserve > 0 {
		have = fmt.Sprintf("%s of what they have", risk(1-d.Reserve))
	}
	p.Hanging("  ",
		fmt.Sprintf("hosts whose containers want more CPUs than %s for more than %s of the time, or more memory: %d now, "+
			"%d with the plan", have, risk(d.Risk), d.OverNow, d.Over))
	if d.Secondaries > 0 {
		p.Hanging("  ",
			text.CountOf(d.Secondaries,
				"container is a secondary: it yields to all others, and is placed where there is room on average",
				"containers are secondaries: they yield to all others, and are placed where there is room on average"))
	}
	if d.Rounds > 1 || d.MovesTight > 0 {
		p.Hanging("  ", rounds(d))
	}
	if x := d.Exclusive; x != nil {
		p.Hanging("  ", exclusive(x))
	}
	if len(d.Stay) > 0 || d.HostsUnknown > 0 {
		p.Section(p.Bolden("Not moved"))
		for _, s := range d.Stay {
			p.Hanging("  ", text.Count(s.Containers, "container")+": "+s.Reason)
		}
		if d.HostsUnknown > 0 {
			p.Hanging("  ", fmt.Sprintf("%s on %s whose CPUs or memory are not known: no part of the plan",
				text.Count(d.ContainersUnknown, "container"), text.Count(d.HostsUnknown, "host")))
		}
	}
	if len(d.Emptied) > 0 {
		p.Section(p.Bolden("Emptied hosts"))
		var names []string
		hosts, left := first(d.Emptied)
		for _, h := range hosts {
			names = append(names, shownName(h.Node))
		}
		p.Hanging("  ", strings.Join(names, ", "))
		more(p, left)
	}
	if len(d.MoveList) > 0 {
		p.Section(p.Bolden("Moves"))
		rows, left := first(d.MoveList)
		newTable(p, moveColumns, rows)
		more(p, left)
	}
	if d.Exclusive != nil && len(d.Exclusive.Repairs) > 0 {
		p.Section(p.Bolden("Exclusive CPUs, after the moves"))
		rows, left := first(d.Exclusive.Repairs)
		newTable(p, repairColumns, rows)
		more(p, left)
	}
	writeLeftOut(p, d.Input)
	return p.Send(w)
}

// rounds says in which order the moves can be made.
func rounds(d Plan) string {
	line := fmt.Sprintf("the moves take %s: those of one at once, so that no host holds more than it has meanwhile",
		text.Count(d.Rounds, "round"))
	if d.MovesTight > 0 {
		line += fmt.Sprintf("; %s no such order, and come in the last round",
			text.CountOf(d.MovesTight, "move has", "moves have"))
	}
	return line
}

// exclusive says how exclusive CPUs lie.
func exclusive(x *Exclusive) string {
	line := fmt.Sprintf("%s exclusive CPUs: %d touch more sockets, NUMA nodes or L3 caches than they must now, %d with "+
		"the plan, %d after %s on their hosts",
		text.CountOf(x.Containers-x.Unknown, "container has", "containers have"), x.CrossingNow, x.Crossing,
		x.CrossingRepaired, text.Count(len(x.Repairs), "repair"))
	if x.Unknown > 0 {
		line += fmt.Sprintf("; of %d more rows do not tell how they lie", x.Unknown)
	}
	return line
}

// risk is a share of the time that is often small.
func risk(share float64) string { return fmt.Sprintf("%.3g %%", 100*share) }
