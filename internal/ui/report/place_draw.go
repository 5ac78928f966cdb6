package report

import (
	"strings"

	"github.com/unthrottle/unthrottle/placement"
	"github.com/unthrottle/unthrottle/topology"
)

// signs are the characters that stand for containers and for what is nobody's.
type signs struct {
	of map[string]rune // by container
	at map[int]rune    // by CPU
}

const (
	signShared  = '.'
	signIdle    = '-'
	signAway    = 'x'
	signMore    = '#' // for those beyond the letters
	signLetters = "abcdefghijklmnopqrstuvwyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
)

// newSigns gives letters to the containers that have CPUs of their own, in the
// order of arrival.
func newSigns(o placement.Outcome) signs {
	s := signs{of: map[string]rune{}, at: map[int]rune{}}
	for _, c := range o.State.Machine.CPUs {
		s.at[c.ID] = signAway
	}
	for _, id := range o.Pool.List() {
		s.at[id] = signShared
	}
	next := 0
	for _, c := range o.Containers {
		s.of[c.Name] = ' '
		if c.Own.IsEmpty() {
			continue
		}
		s.of[c.Name] = signMore
		if next < len(signLetters) {
			s.of[c.Name] = rune(signLetters[next])
			next++
		}
		for _, id := range c.Own.List() {
			s.at[id] = s.of[c.Name]
		}
		for _, id := range c.Idle.List() {
			s.at[id] = signIdle
		}
	}
	return s
}

// placed draws the groups of a machine, the narrowest with a sign per CPU, the
// threads of a core together.
func (p *picture) placed(g *cpuGroup, indent string, s signs) {
	b := p.branches()
	if len(g.children) == 0 && g.names == nil {
		p.placedCores(g, "", "", s)
	}
	for i, child := range g.children {
		lead, next := indent+b.item, indent+b.pass
		if i == len(g.children)-1 {
			lead, next = indent+b.last, indent+b.gap
		}
		if g.names == nil {
			lead, next = "", ""
		}
		name := strings.Join(child.names, ", ")
		name = strings.ToUpper(name[:1]) + name[1:]
		if len(child.children) > 0 {
			p.line(lead + p.bold(name))
			p.placed(child, next, s)
			continue
		}
		p.placedCores(child, lead+p.bold(name)+"  ", next+strings.Repeat(" ", len(name)+2), s)
	}
	if g.names == nil {
		p.wrapped("", "", "; ", []string{"a letter is a CPU of a container of its own, threads of a core together",
			string(signShared) + " shared", string(signIdle) + " kept idle", string(signAway) + " not to be given"})
	}
}

func (p *picture) placedCores(g *cpuGroup, first, next string, s signs) {
	var parts []string
	for _, c := range g.cores() {
		parts = append(parts, placedCore(c, s))
	}
	p.wrapped(first, next, " ", parts)
}

func placedCore(c []topology.CPU, s signs) string {
	var b strings.Builder
	for _, cpu := range c {
		b.WriteRune(s.at[cpu.ID])
	}
	return b.String()
}
