package cgroup

import (
	"strings"
	"unicode/utf8"
)

// CheckPath accepts a kernel path: "/" or "/a/b", no empty, "." or ".." part, no NUL. Everything else, newlines and
// broken UTF-8 included, is data.
func CheckPath(path string) error {
	if path == "/" {
		return nil
	}
	if !strings.HasPrefix(path, "/") || strings.IndexByte(path, 0) >= 0 {
		return ErrBadPath
	}
	for part := range strings.SplitSeq(path[1:], "/") {
		if part == "" || part == "." || part == ".." {
			return ErrBadPath
		}
	}
	return nil
}

// Parent is the path one level up; the parent of "/" is "/".
func Parent(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return "/"
}

// Join appends one part to a path.
func Join(path, part string) string {
	if path == "/" {
		return "/" + part
	}
	return path + "/" + part
}

// Base is the last part of a path, "" for "/".
func Base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// Below tells whether path is scope or a descendant of it; scope "" and "/" hold everything.
func Below(path, scope string) bool {
	return scope == "" || scope == "/" || path == scope ||
		len(path) > len(scope) && path[:len(scope)] == scope && path[len(scope)] == '/'
}

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
func UnescapePath(text string) string {
	if strings.IndexByte(text, '\\') < 0 {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		if c, ok := escaped(text[i:]); ok {
			b.WriteByte(c)
			i += 4
			continue
		}
		b.WriteByte(text[i])
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
