package text

import (
	"strings"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// EscapePath makes a path fit for JSON and other UTF-8 text without loss. Bytes that are not valid UTF-8 become \xNN
// (two lower-case hex digits, 80 to ff); a backslash that would then be misread (one before "xNN" with NN from 80 to
// ff, or 5c) becomes \x5c. All else stays, so ordinary systemd names such as "dev-disk\x2d1.device" are unchanged.
func EscapePath(path string) string {
	clean := utf8.ValidString(path)
	if clean && strings.IndexByte(path, '\\') < 0 {
		return path
	}
	var b strings.Builder
	for i := 0; i < len(path); {
		if path[i] == '\\' {
			if _, ok := escaped(path[i:]); ok {
				b.WriteString(`\x5c`)
			} else {
				b.WriteByte('\\')
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(path[i:])
		if r == utf8.RuneError && n == 1 {
			b.WriteString(`\x`)
			b.WriteByte(hexDigits[path[i]>>4])
			b.WriteByte(hexDigits[path[i]&15])
			i++
			continue
		}
		b.WriteString(path[i : i+n])
		i += n
	}
	return b.String()
}

// UnescapePath is the inverse of EscapePath. Text that EscapePath never writes is left as it is.
func UnescapePath(escapedPath string) string {
	if strings.IndexByte(escapedPath, '\\') < 0 {
		return escapedPath
	}
	var b strings.Builder
	for i := 0; i < len(escapedPath); {
		if c, ok := escaped(escapedPath[i:]); ok {
			b.WriteByte(c)
			i += 4
			continue
		}
		b.WriteByte(escapedPath[i])
		i++
	}
	return b.String()
}

// escaped decodes an escape of ours at the start of s.
func escaped(s string) (byte, bool) {
	if len(s) < 4 || s[0] != '\\' || s[1] != 'x' {
		return 0, false
	}
	hi, lo := strings.IndexByte(hexDigits, s[2]), strings.IndexByte(hexDigits, s[3])
	if hi < 0 || lo < 0 {
		return 0, false
	}
	c := byte(hi<<4 | lo)
	return c, c >= 0x80 || c == '\\'
}
