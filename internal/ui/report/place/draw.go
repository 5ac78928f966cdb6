package place

import (
	"strings"

	"github.com/unthrottle/unthrottle/internal/ui/report/shared/cputree"
	"github.com/unthrottle/unthrottle/placement"
)

// signs are the characters that stand for containers, and for CPUs that none has alone.
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

// machine draws the groups of a machine, the narrowest with a sign per CPU, the
// threads of a core together.
func (d *drawing) machine(g *cputree.Group, indent string) {
	b := d.branches
	if len(g.Children) == 0 && g.Names == nil {
		d.cores(g, "", "")
	}
	for i, child := range g.Children {
		lead, next := indent+b.Item, indent+b.Pass
		if i == len(g.Children)-1 {
			lead, next = indent+b.Last, indent+b.Gap
		}
		if g.Names == nil {
			lead, next = "", ""
		}
		name := strings.Join(child.Names, ", ")
		name = strings.ToUpper(name[:1]) + name[1:]
		if len(child.Children) > 0 {
			d.Line(lead + d.Bolden(name))
			d.machine(child, next)
			continue
		}
		d.cores(child, lead+d.Bolden(name)+"  ", next+strings.Repeat(" ", len(name)+2))
	}
	if g.Names == nil {
		d.Wrapped("", "", "; ", []string{"a letter is a CPU of a container of its own, threads of a core together",
			string(signShared) + " shared", string(signIdle) + " kept idle", string(signAway) + " not to be given"})
	}
}

func (d *drawing) cores(g *cputree.Group, first, next string) {
	var parts []string
	for _, c := range g.Cores() {
		parts = append(parts, d.core(c))
	}
	d.Wrapped(first, next, " ", parts)
}

func (d *drawing) core(c cputree.Core) string {
	var b strings.Builder
	for _, cpu := range c {
		b.WriteRune(d.signs.at[cpu.ID])
	}
	return b.String()
}
