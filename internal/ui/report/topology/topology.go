// Package topology draws a machine as text.
package topology

import (
	"fmt"
	"io"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/cputree"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/topology"
)

// Options say how Write draws.
type Options struct {
	Width int  // columns; 0 means 80, below 40 means 40
	ASCII bool // no box characters
	Color bool // ANSI colours
}

const (
	leastWidth = 40
	// mostCores is how many online CPUs a machine may have for each of its
	// cores to be drawn; on larger ones a group is a line.
	mostCores = 64
	// mostAlike is how many groups of the same shape are drawn side by side
	// before the rest are folded into a line.
	mostAlike = 16
)

// Write draws a machine as text: its groups of CPUs from wide to narrow,
// each with its CPUs, then what is offline or isolated, memory nodes without
// CPUs, distances between nodes, and a legend of the signs that were used.
// Groups that hold the same CPUs share a line.
func Write(w io.Writer, m topology.Machine, o Options) error {
	p := &drawing{
		Page: page.New(page.Style{Width: o.Width, ASCII: o.ASCII, Color: o.Color}, leastWidth, 0), machine: m,
		branches: cputree.NewBranches(o.ASCII), detailed: m.Online().Size() <= mostCores,
	}
	p.summary()
	p.Line("")
	root := cputree.Of(m)
	p.children(root, "")
	p.aside()
	p.distances()
	p.legend()
	return p.Send(w)
}

// drawing is a machine drawn so far, and which signs that used.
type drawing struct {
	*page.Page
	machine  topology.Machine
	branches cputree.Branches
	detailed bool // draw every core

	coresDrawn, isolatedDrawn, folded bool
}

// summary says in a line or two what the machine has.
func (p *drawing) summary() {
	m := p.machine
	online := m.Online()
	parts := []string{p.Bolden(text.Count(online.Size(), "CPU") + " online")}
	if offline := m.Present().Size() - online.Size(); offline > 0 {
		parts = append(parts, fmt.Sprintf("%d offline", offline))
	}
	for _, level := range []topology.Level{topology.LevelSocket, topology.LevelDie, topology.LevelNUMANode,
		topology.LevelL3, topology.LevelCore} {
		n := cputree.Known(m, level)
		if n == 0 || level == topology.LevelDie && m.Alike(level, topology.LevelSocket) {
			continue
		}
		parts = append(parts, text.Count(n, string(level)))
	}
	p.Wrapped("", "  ", ", ", parts)
}
