package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/topology"
)

// TopologyOptions say how Topology draws.
type TopologyOptions struct {
	Width int  // columns; 0 means 80, below 40 means 40
	ASCII bool // no box characters
	Color bool // ANSI colours
}

const (
	defaultWidth = 80
	leastWidth   = 40
	// mostCores is how many online CPUs a machine may have for each of its
	// cores to be drawn; on larger ones a group is a line.
	mostCores = 64
	// mostAlike is how many groups of the same shape are drawn side by side
	// before the rest are folded into a line.
	mostAlike = 16
)

// Topology draws a machine as text: its groups of CPUs from wide to narrow,
// each with its CPUs, then what is offline or isolated, memory nodes without
// CPUs, distances between nodes, and a legend of the signs that were used.
// Groups that hold the same CPUs share a line.
func Topology(w io.Writer, m topology.Machine, o TopologyOptions) error {
	if o.Width == 0 {
		o.Width = defaultWidth
	}
	o.Width = max(o.Width, leastWidth)
	p := &picture{machine: m, options: o, detailed: m.Online().Size() <= mostCores}
	p.summary()
	p.line("")
	root := groupTree(m)
	p.children(root, "")
	p.aside()
	p.distances()
	p.legend()
	_, err := io.WriteString(w, p.text.String())
	return err
}

// picture collects the lines of a drawing and remembers which signs it used.
type picture struct {
	machine  topology.Machine
	options  TopologyOptions
	detailed bool // draw every core
	text     strings.Builder

	coresDrawn, isolatedDrawn, folded bool
}

func (p *picture) line(s string) {
	p.text.WriteString(strings.TrimRight(s, " "))
	p.text.WriteByte('\n')
}

// wrapped writes words one after the other, breaking lines at the width; lines
// after the first begin with next.
func (p *picture) wrapped(first, next, separator string, parts []string) {
	line, columns, empty := first, width(first), true
	for i, word := range parts {
		if i < len(parts)-1 {
			word += strings.TrimRight(separator, " ")
		}
		gap := separator[len(strings.TrimRight(separator, " ")):]
		if !empty && columns+len(gap)+width(word) > p.options.Width {
			p.line(line)
			line, columns, empty = next, width(next), true
		}
		if !empty {
			line += gap
			columns += len(gap)
		}
		line += word
		columns += width(word)
		empty = false
	}
	p.line(line)
}

// width is the number of columns of a text without its colours.
func width(s string) int {
	n, escape := 0, false
	for _, r := range s {
		switch {
		case r == '\x1b':
			escape = true
		case escape:
			escape = r != 'm'
		default:
			n++
		}
	}
	return n
}

func (p *picture) paint(code, s string) string {
	if !p.options.Color || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p *picture) bold(s string) string   { return p.paint("1", s) }
func (p *picture) yellow(s string) string { return p.paint("33", s) }

// summary says in a line or two what the machine has.
func (p *picture) summary() {
	m := p.machine
	online := m.Online()
	parts := []string{p.bold(text.Count(online.Size(), "CPU") + " online")}
	if offline := m.Present().Size() - online.Size(); offline > 0 {
		parts = append(parts, fmt.Sprintf("%d offline", offline))
	}
	for _, level := range []topology.Level{topology.LevelSocket, topology.LevelDie, topology.LevelNUMANode, topology.LevelL3, topology.LevelCore} {
		n := knownGroups(m, level)
		if n == 0 || level == topology.LevelDie && m.Alike(level, topology.LevelSocket) {
			continue
		}
		parts = append(parts, text.Count(n, string(level)))
	}
	p.wrapped("", "  ", ", ", parts)
}

func knownGroups(m topology.Machine, level topology.Level) int {
	n := 0
	for _, id := range m.Spans(level, m.Online()) {
		if id != topology.Unknown {
			n++
		}
	}
	return n
}
