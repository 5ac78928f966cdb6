package cgroup

import (
	"errors"
	"fmt"
	"strings"
)

// Kinds of an *Error, where the kernel's errno alone is ambiguous. Test with errors.Is.
var (
	// ErrNoController means that the controller is mounted nowhere that we can see.
	ErrNoController = errors.New("controller not mounted")
	// ErrNoCgroup means that the cgroup does not exist.
	ErrNoCgroup = errors.New("no such cgroup")
	// ErrNoFile means that the cgroup exists without this file (controller not enabled, older kernel, root cgroup).
	ErrNoFile = errors.New("no such file in this cgroup")
	// ErrBadPath reports text that is not a kernel path ("..", empty parts, NUL).
	ErrBadPath = errors.New("not a cgroup path")
	// ErrOutside reports a path that is not below the mounted cgroup.
	ErrOutside = errors.New("outside the mounted part of the hierarchy")
	// ErrEmptyValue reports a write of zero bytes, which the kernel ignores.
	ErrEmptyValue = errors.New("empty value")
	// ErrBadPID reports a PID below 1; 0 is a process outside our PID namespace.
	ErrBadPID = errors.New("not a process of our PID namespace")
	// ErrTooMuch reports a file, directory or walk beyond our bounds.
	ErrTooMuch = errors.New("larger than the bound")
	// ErrFormat reports a file whose content the kernel would not write.
	ErrFormat = errors.New("unexpected content")
)

// Operations of an *Error.
const (
	OpRead     = "read"
	OpWrite    = "write"
	OpMake     = "mkdir"
	OpRemove   = "rmdir"
	OpChildren = "list"
	OpAttach   = "attach"
	OpID       = "stat"
)

// Error is a failed operation on a cgroup: what, where, and why as far as a look-up can find it.
type Error struct {
	// Path, File and Value are those of the operation; File and Value may be "".
	Path, File, Value string
	// Op is one of the Op constants.
	Op string
	// Errno is the kernel's error, or one of our own Err values if the kernel was not asked.
	Errno error
	// Kind is one of the Err values above, or nil.
	Kind error
	// Why is the cause in words, "" if unknown.
	Why string
}

// Unwrap lets errors.Is find the errno as well as the kind.
func (e *Error) Unwrap() []error {
	var all []error
	if e.Errno != nil {
		all = append(all, e.Errno)
	}
	if e.Kind != nil {
		all = append(all, e.Kind)
	}
	return all
}

// Error names object, operation and cause: "cgroup /a/b: cpuset.cpus: kernel refused 3-5: outside the parent's 0-3
// (permission denied)". It escapes names and cuts long values.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("cgroup ")
	b.WriteString(show(e.Path, 4096))
	if e.File != "" {
		b.WriteString(": ")
		b.WriteString(show(e.File, 255))
	}
	switch e.Op {
	case OpWrite:
		fmt.Fprintf(&b, ": kernel refused %s", show(e.Value, 200))
	case OpAttach:
		fmt.Fprintf(&b, ": cannot move process %s here", show(e.Value, 20))
	case OpMake:
		b.WriteString(": cannot be created")
	case OpRemove:
		b.WriteString(": cannot be removed")
	default:
		b.WriteString(": cannot " + e.Op)
	}
	cause := e.Errno
	if cause == nil {
		cause = e.Kind
	}
	switch {
	case e.Why != "" && cause != nil:
		fmt.Fprintf(&b, ": %s (%v)", e.Why, cause)
	case e.Why != "":
		b.WriteString(": " + e.Why)
	case cause != nil:
		fmt.Fprintf(&b, ": %v", cause)
	}
	return b.String()
}

// show quotes text only if it holds something that a terminal or a reader could misread.
func show(s string, limit int) string {
	cut := false
	if len(s) > limit {
		s, cut = s[:limit], true
	}
	q := fmt.Sprintf("%q", s)
	if s == "" || q[1:len(q)-1] != s || strings.ContainsAny(s, " ") && !plainList(s) {
		s = q
	}
	if cut {
		s += "..."
	}
	return s
}

// plainList reports values such as "100000 100000" or "max 100000", which need no quotes.
func plainList(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c != ' ' && c != '-' && c != '+' && (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}
