package text

import "strings"

// Width is how many columns of a terminal a text takes. Colours (ANSI sequences
// that end in m) take none; every other rune takes one.
func Width(s string) int {
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

// Fill breaks a text into lines of at most that many columns, between words. A
// word that is wider than a line stays whole.
func Fill(s string, columns int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		if line != "" && Width(line)+1+Width(word) > columns {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// Pad appends blanks until a text takes that many columns.
func Pad(s string, columns int) string {
	return s + strings.Repeat(" ", max(0, columns-Width(s)))
}

// Cut shortens a text without colours to that many columns; mark replaces the
// end that was cut off and counts among them.
func Cut(s string, columns int, mark string) string {
	runes := []rune(s)
	if len(runes) <= columns {
		return s
	}
	return string(runes[:max(0, columns-Width(mark))]) + mark
}

// CutFront shortens a text as Cut does, but keeps its end: the end of a path
// says more.
func CutFront(s string, columns int, mark string) string {
	runes := []rune(s)
	if len(runes) <= columns {
		return s
	}
	return mark + string(runes[len(runes)-max(0, columns-Width(mark)):])
}

// Either is one of two texts.
func Either(yes bool, a, b string) string {
	if yes {
		return a
	}
	return b
}
