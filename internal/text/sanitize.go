package text

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxName bounds a Name in runes.
const MaxName = 256

// Sanitize makes a stranger's text safe to print: one line, no control or formatting characters (which could move
// the cursor or turn the writing direction), no broken UTF-8. These become \n, \t, \xNN or \uNNNN. At most max runes
// remain, the last an ellipsis if something was cut; max below 1 means MaxName.
func Sanitize(name string, max int) string {
	if max < 1 {
		max = MaxName
	}
	if safe(name) && len(name) <= max {
		return name
	}
	var b strings.Builder
	left := max
	for i := 0; i < len(name); {
		r, n := utf8.DecodeRuneInString(name[i:])
		piece := escapeRune(r, name[i:i+n])
		size := utf8.RuneCountInString(piece)
		i += n
		if size > left || size == left && i < len(name) {
			b.WriteString("…")
			break
		}
		b.WriteString(piece)
		left -= size
	}
	return b.String()
}

func safe(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

func escapeRune(r rune, raw string) string {
	switch {
	case r == utf8.RuneError && len(raw) == 1:
		return fmt.Sprintf(`\x%02x`, raw[0])
	case r == '\n':
		return `\n`
	case r == '\t':
		return `\t`
	case r == ' ' || unicode.IsGraphic(r) && !unicode.IsSpace(r):
		return raw
	case r < 0x100:
		return fmt.Sprintf(`\x%02x`, r)
	case r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}
