package text

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// plainFor has a character of ASCII for each other character that our views draw. Each takes one column, as its original does.
var plainFor = map[rune]string{
	'…': "~", '·': ".", '×': "x", '–': "-", '—': "-", 'µ': "u", '°': "o", '→': ">", '←': "<", '↑': "^", '↓': "v",
	'█': "#", '▉': "#", '▊': "#", '▋': "#", '▌': "=", '▍': "-", '▎': "-", '▏': "-", '░': "x",
	'▁': "1", '▂': "2", '▃': "3", '▄': "4", '▅': "5", '▆': "6", '▇': "7",
	'─': "-", '│': "|", '├': "|", '└': "`", '┌': ",", '┐': ".", '┘': "'", '┤': "|", '┬': "-", '┴': "-", '┼': "+",
}

// ASCII replaces every character beyond ASCII: those that our views draw by one of the same width, all others, which
// come from strangers' names, by an escape such as \u00e9.
func ASCII(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch plain, ours := plainFor[r]; {
		case r < utf8.RuneSelf:
			b.WriteRune(r)
		case ours:
			b.WriteString(plain)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
