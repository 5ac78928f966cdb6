package threadpool

import (
	"strings"
	"unicode/utf8"

	"github.com/unthrottle/unthrottle/internal/text"
)

const (
	// CommBytes is the length to which the kernel cuts a thread's name (TASK_COMM_LEN without the final 0).
	CommBytes = 15
	// MaxName bounds the result of [Fold], in runes.
	MaxName = 64
	// Unnamed is the pool of threads with an empty name.
	Unnamed = "(unnamed)"

	maxFoldedBytes = 4 * MaxName // of a name longer than a comm, as a JVM gives it
	longNumber     = 4           // digits; a number of this length is no part of a word
	hexID          = 6           // least digits of an id in hexadecimal
)

// Fold returns the pool's name for a thread's name: a comm, or a longer name from a JVM. These numbers become
// *:
//
//   - a number with no letter on either side ("http-worker-12" gives "http-worker-*", "nioEven..up-2-1"
//     "nioEven..up-*-*"), decimals included;
//   - one that ends the name ("C2 Comp..hread0" gives "C2 Comp..hread*"), unless the name is an interpreter's
//     ("python3");
//   - one of 4 or more digits anywhere ("qtp1424788681-35" gives "qtp*-*");
//   - a word of 6 or more hexadecimal digits, with a letter after a decimal one ("req-3f2a9b" gives "req-*").
//
// Other digits are part of a word ("G1 Conc#0" gives "G1 Conc#*"). The kernel cut a name of [CommBytes] bytes
// that ends in a separator, so Fold adds a * for the rest. The result is safe to print, has at most [MaxName]
// runes, and is never empty. A * in the name stays one, so a thread can join another pool of its process by
// choosing its name.
func Fold(comm string) string {
	if comm == "" {
		return Unnamed
	}
	comm = cutName(comm)
	if isInterpreter(comm) {
		return text.Sanitize(comm, MaxName)
	}
	var b strings.Builder
	for i := 0; i < len(comm); {
		n := numberAt(comm, i)
		if n == 0 {
			b.WriteByte(comm[i])
			i++
			continue
		}
		if counts(comm, i, i+n) {
			b.WriteByte('*')
		} else {
			b.WriteString(comm[i : i+n])
		}
		i += n
	}
	if len(comm) == CommBytes && strings.IndexByte("-_#:/. ", comm[CommBytes-1]) >= 0 {
		b.WriteByte('*')
	}
	return text.Sanitize(b.String(), MaxName)
}

// cutName bounds a name. It drops a rune at the end that the bound would split.
func cutName(name string) string {
	if len(name) > maxFoldedBytes {
		name = name[:maxFoldedBytes]
	} else if len(name) != CommBytes {
		return name
	}
	for i := 1; i < utf8.UTFMax && i < len(name); i++ {
		at := len(name) - i
		if !utf8.RuneStart(name[at]) {
			continue
		}
		if name[at] >= utf8.RuneSelf && !utf8.FullRuneInString(name[at:]) {
			return name[:at]
		}
		break
	}
	return name
}

// numberAt returns the length of the number that begins at i: digits, parts joined by single dots, or a whole
// word that looks like an id in hexadecimal. 0: no number begins there.
func numberAt(s string, i int) int {
	if i == 0 || !isAlnum(s[i-1]) {
		if n := hexAt(s, i); n > 0 {
			return n
		}
	}
	end := i
	for end < len(s) && isDigit(s[end]) {
		end++
		if end+1 < len(s) && s[end] == '.' && isDigit(s[end+1]) {
			end++
		}
	}
	return end - i
}

// hexAt returns the length of the word at i if it is an id in hexadecimal, else 0.
func hexAt(s string, i int) int {
	end, mixed := i, false
	for ; end < len(s) && isAlnum(s[end]); end++ {
		if !isHex(s[end]) {
			return 0
		}
		mixed = mixed || end > i && isDigit(s[end-1]) && isLetter(s[end])
	}
	if end-i < hexID || !mixed {
		return 0
	}
	return end - i
}

// counts reports whether the number s[from:to] distinguishes threads, rather than being part of a word.
func counts(s string, from, to int) bool {
	if to-from >= longNumber {
		return true
	}
	letterAfter := to < len(s) && isLetter(s[to])
	letterBefore := from > 0 && isLetter(s[from-1])
	return !letterAfter && (!letterBefore || to == len(s))
}

// isInterpreter reports whether a name is that of a program with its version.
func isInterpreter(comm string) bool {
	for _, program := range []string{"python", "pypy", "php", "ruby", "perl", "lua", "node", "nodejs", "java"} {
		version, ok := strings.CutPrefix(comm, program)
		if ok && version != "" && strings.Trim(version, "0123456789.") == "" {
			return true
		}
	}
	return false
}

func isHex(c byte) bool    { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || c >= utf8.RuneSelf }
func isAlnum(c byte) bool  { return isDigit(c) || isLetter(c) }
