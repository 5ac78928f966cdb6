package text

import (
	"regexp"
	"strings"
)

// Fit breaks the lines of a text that are wider than that many columns, between words. What is broken off hangs below
// the text behind a line's label ("note     ", " 3. "), else two columns further in. A word that is wider than a line
// stays whole: readers copy it. Colours count no column.
func Fit(s string, columns int) string {
	lines := strings.SplitAfter(s, "\n")
	for i, line := range lines {
		body := strings.TrimRight(line, " \n")
		if Width(body) > columns {
			lines[i] = strings.Join(broken(body, columns), "\n") + strings.Repeat("\n", strings.Count(line, "\n"))
		}
	}
	return strings.Join(lines, "")
}

// label matches what a line begins with, up to its text: blanks, a number of a list, a label with two blanks behind it.
var label = regexp.MustCompile(`^ *(?:\d+\. +|> )?(?:\S+(?: \S+){0,3}(?:  +))?`)

// broken is one line as several. The blanks within it are kept.
func broken(line string, columns int) []string {
	lead := label.FindString(line)
	hang := Width(lead)
	if hang > columns/2 || !strings.HasSuffix(lead, " ") && lead != "" {
		lead, hang = "", 0
	}
	if strings.TrimSpace(lead) == "" {
		hang += 2
	}
	rest, room, before := line[len(lead):], columns-Width(lead), lead
	var lines []string
	for Width(rest) > room {
		at := breakAt(rest, room)
		if at < 0 {
			break
		}
		lines = append(lines, before+strings.TrimRight(rest[:at], " "))
		rest = strings.TrimLeft(rest[at:], " ")
		before, room = strings.Repeat(" ", hang), columns-hang
	}
	return append(lines, before+rest)
}

// breakAt is the byte at which a line is broken: the last blank within the columns, else the first behind them;
// below 0: there is none.
func breakAt(s string, columns int) int {
	at, column, escape, word := -1, 0, false, false
	for i, r := range s {
		switch {
		case r == '\x1b':
			escape = true
		case escape:
			escape = r != 'm'
		case r == ' ' && word:
			if column > columns && at >= 0 {
				return at
			}
			at = i
			column++
		default:
			word = word || r != ' '
			column++
		}
		if column > columns && at >= 0 {
			return at
		}
	}
	return at
}
