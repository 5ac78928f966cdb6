package threadpool

import (
	"fmt"
	"math/bits"
	"strings"
)

// pattern is a full thread name with gaps. Matching keeps a set of positions in it (bit i: before atom i), so
// a name of any shape costs one step per byte.
type pattern struct {
	text    string
	atoms   []atom
	literal uint64 // the atoms that are plain bytes
	program bool   // {program} alone: the program's name
	open    bool   // has a {s}, so a part of it matches many names
}

// atom is one byte of a name, or a gap of one byte or more.
type atom struct {
	gap  byte // 0: a plain byte
	byte byte
}

const (
	gapNumber = 'n'
	gapText   = 's'

	maxAtoms = 63
	// minLiteral is how many bytes a cut name must share with a pattern that has a {s}. Fewer match by
	// chance.
	minLiteral = 6
)

func parsePattern(text string) (pattern, error) {
	p := pattern{text: text, program: text == "{program}"}
	if p.program {
		return p, nil
	}
	for rest := text; rest != ""; {
		a := atom{byte: rest[0]}
		if len(rest) >= 3 && rest[0] == '{' && rest[2] == '}' {
			a = atom{gap: rest[1]}
			rest = rest[3:]
		} else {
			rest = rest[1:]
		}
		switch a.gap {
		case 0:
			p.literal |= 1 << len(p.atoms)
		case gapText:
			p.open = true
		case gapNumber:
		default:
			return p, fmt.Errorf("name %q: gaps are {n} and {s}, or {program} alone", text)
		}
		if len(p.atoms) == maxAtoms {
			return p, fmt.Errorf("name %.40q...: at most %d bytes and gaps", text, maxAtoms)
		}
		p.atoms = append(p.atoms, a)
	}
	if p.literal == 0 {
		return p, fmt.Errorf("name %q: a pattern without a plain byte matches everything", text)
	}
	return p, nil
}

func (a atom) accepts(c byte) bool {
	switch a.gap {
	case gapNumber:
		return isDigit(c)
	case gapText:
		return true
	}
	return a.byte == c
}

// walk returns the positions after s, from the front or from the back.
func (p *pattern) walk(s string, backwards bool) uint64 {
	at := uint64(1)
	for i := range len(s) {
		c := s[i]
		if backwards {
			c = s[len(s)-1-i]
		}
		var next uint64
		for left := at; left != 0; left &= left - 1 {
			j := bits.TrailingZeros64(left)
			if j == len(p.atoms) {
				continue
			}
			a := p.atoms[j]
			if backwards {
				a = p.atoms[len(p.atoms)-1-j]
			}
			if !a.accepts(c) {
				continue
			}
			next |= 1 << (j + 1)
			if a.gap != 0 {
				next |= 1 << j
			}
		}
		if at = next; at == 0 {
			break
		}
	}
	return at
}

// match reports whether a comm or full thread name can be of this pattern, and how many plain bytes matched.
func (p *pattern) match(name string) (literal int, ok bool) {
	if p.program {
		return 0, false
	}
	if p.walk(name, false)&(1<<len(p.atoms)) != 0 {
		return bits.OnesCount64(p.literal), true
	}
	if len(name) != CommBytes {
		return 0, false
	}
	if at := p.walk(name, false); at != 0 {
		if literal = p.plain(at); !p.open || literal >= minLiteral {
			return literal, true
		}
	}
	if name[headBytes:headBytes+len(dots)] != dots || p.short() {
		return 0, false
	}
	head, tail := p.walk(name[:headBytes], false), p.walk(name[headBytes+len(dots):], true)
	if head == 0 || tail == 0 {
		return 0, false
	}
	literal = p.plain(head) + p.plainBack(tail)
	return literal, !p.open || literal >= minLiteral
}

// short reports whether no name of this pattern is long enough to be shortened.
func (p *pattern) short() bool { return len(p.atoms) <= CommBytes && p.literal == 1<<len(p.atoms)-1 }

// plain returns how many plain bytes lie before the furthest position.
func (p *pattern) plain(at uint64) int {
	return bits.OnesCount64(p.literal & (1<<(bits.Len64(at)-1) - 1))
}

func (p *pattern) plainBack(at uint64) int {
	n := 0
	for j := range bits.Len64(at) - 1 {
		if p.atoms[len(p.atoms)-1-j].gap == 0 {
			n++
		}
	}
	return n
}

// Shorten returns the comms that a thread with this full name may have. first is its first 15 bytes. middle
// is how newer JDKs shorten it (main since September 2025; not 25.0.3): the first 7, two dots and the last 6.
func Shorten(name string) (first, middle string) {
	if len(name) <= CommBytes {
		return name, name
	}
	return name[:CommBytes], strings.Join([]string{name[:headBytes], name[len(name)-tailBytes:]}, dots)
}
