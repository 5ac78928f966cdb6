// Package timeline has the characters of a timeline: a row of characters, one per
// stretch of time, whose height is the CPUs in use.
//
// # Rule
//
// A full character stands for the most CPUs on the timeline, or for the limit. One
// character marks a stretch in which a quota held threads back and none ran, and a
// dot an idle one.
//
// # Example
//
// Half of the most CPUs is '▅', or '5' in ASCII.
package timeline

// Idle marks a stretch in which nothing ran and nothing was held back.
const Idle = '.'

// Glyphs are the characters of one timeline.
type Glyphs struct {
	heights []rune
	// Held marks a stretch in which a quota held threads back.
	Held rune
}

// New chooses block characters, or digits in ASCII.
func New(ascii bool) Glyphs {
	if ascii {
		return Glyphs{[]rune("123456789"), 'x'}
	}
	return Glyphs{[]rune("▁▂▃▄▅▆▇█"), '░'}
}

// Height is the character for a share, 0 to 1, of a full character.
func (g Glyphs) Height(share float64) rune {
	n := len(g.heights)
	return g.heights[min(n-1, int(share*float64(n)))]
}
