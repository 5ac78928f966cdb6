package threadpool

import (
	"fmt"
	"go/version"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/unthrottle/unthrottle/internal/text"
)

// evidence is what must be true of a process, beside a thread's name, for a row to match. Any one item is
// enough.
type evidence struct {
	Exe       []string `yaml:"exe"`       // patterns of the file name of the executable, or of the first thread's name
	Libraries []string `yaml:"libraries"` // patterns of a mapped file's name
	Arguments []string `yaml:"arguments"` // parts of an argument
	Holds     []string `yaml:"holds"`     // libraries linked into the executable
	GoFrom    string   `yaml:"go_from"`   // built by Go of this version or later
	GoBefore  string   `yaml:"go_before"` // built by Go before this version
}

// verdict on evidence; a larger one is better.
type verdict int

const (
	contradicted verdict = iota // the process shows none of the evidence, and all of it is known
	unknown
	met
)

const maxShown = 40 // runes of a process's text in a sentence

func (e evidence) none() bool {
	return len(e.Exe)+len(e.Libraries)+len(e.Arguments)+len(e.Holds) == 0 && e.GoFrom+e.GoBefore == ""
}

func (e evidence) check() error {
	for _, p := range slices.Concat(e.Exe, e.Libraries) {
		if _, err := path.Match(p, ""); err != nil {
			return fmt.Errorf("pattern %q: %w", p, err)
		}
	}
	for _, v := range []string{e.GoFrom, e.GoBefore} {
		if v != "" && !version.IsValid(v) {
			return fmt.Errorf("%.40q is no version of Go, such as go1.25", v)
		}
	}
	return nil
}

// byGo reports whether the evidence names this version of Go ("": the program is not built by Go). A version
// that is no release ("devel go1.27-...") counts as later than all named ones.
func (e evidence) byGo(built string) bool {
	if built == "" || e.GoFrom+e.GoBefore == "" {
		return false
	}
	built, _, _ = strings.Cut(built, " ") // "go1.26.8 X:nocoverageredesign"
	if !version.IsValid(built) {
		return e.GoBefore == ""
	}
	return (e.GoFrom == "" || version.Compare(built, e.GoFrom) >= 0) &&
		(e.GoBefore == "" || version.Compare(built, e.GoBefore) < 0)
}

// beforeLimits is the last version of Go whose runtime does not look at a limit (Go release notes 1.25).
const beforeLimits = "go1.24"

// GoRules is the version of Go by whose rules the runtime counts CPUs: that which built it, or the last one before 1.25 where its GODEBUG
// says so (internal/godebugs: containermaxprocs is 0 for a go.mod of 1.24 and earlier).
func (p *Process) GoRules() string {
	if p.debug("containermaxprocs") <= 0 && version.Compare(p.Go, beforeLimits) > 0 {
		return beforeLimits
	}
	return p.Go
}

// FollowsLimit reports whether a Go runtime looks again at a limit that changes, as its GODEBUG has it.
func (p *Process) FollowsLimit() bool { return p.debug("updatemaxprocs") != 0 }

// debug is a setting of GODEBUG that is 1 by itself: parsegodebug of Go's runtime/runtime1.go. The last number counts.
func (p *Process) debug(name string) int {
	n := 1
	for field := range strings.SplitSeq(p.GoDebug, ",") {
		key, value, _ := strings.Cut(field, "=")
		if v, err := strconv.ParseInt(value, 10, 32); err == nil && key == name {
			n = int(v)
		}
	}
	return n
}

// judge compares the evidence with a process. because is empty unless a part of the evidence is met. unnamed: it is of threads
// without a name of their own. A library that is mapped need not own these.
func (e evidence) judge(p *Process, unnamed bool) (v verdict, because string) {
	if e.none() || p == nil {
		return unknown, ""
	}
	if unnamed && p.Unnamed != "" && p.Unnamed != path.Base(p.Exe) {
		if !matchesAny(e.Libraries, p.Unnamed) {
			return contradicted, ""
		}
		return met, text.Sanitize(p.Unnamed, maxShown) + " started its threads"
	}
	missing := unnamed && p.Unnamed == "" && len(e.Libraries) > 0
	if len(e.Exe) > 0 {
		for _, name := range []string{path.Base(p.Exe), p.Comm} {
			if name != "" && matchesAny(e.Exe, name) {
				return met, "the program is " + text.Sanitize(name, maxShown)
			}
		}
		missing = missing || p.Exe == "" && p.Comm == ""
	}
	if !unnamed {
		for _, file := range p.Libraries {
			if name := path.Base(file); matchesAny(e.Libraries, name) {
				return met, text.Sanitize(name, maxShown) + " is mapped"
			}
		}
		missing = missing || len(e.Libraries) > 0 && p.Libraries == nil
	}
	for _, part := range e.Arguments {
		if slices.ContainsFunc(p.Cmdline, func(arg string) bool { return strings.Contains(arg, part) }) {
			return met, "its command line has " + part
		}
	}
	missing = missing || len(e.Arguments) > 0 && p.Cmdline == nil
	for _, held := range e.Holds {
		if slices.Contains(p.Holds, held) {
			return met, held + " is linked into the program"
		}
	}
	if e.byGo(p.GoRules()) {
		return met, "the program was built by " + text.Sanitize(p.Go, maxShown)
	}
	// Go and Holds are known to be absent only if the executable was readable, which gives its path as well.
	missing = missing || (e.GoFrom+e.GoBefore != "" || len(e.Holds) > 0) && p.Exe == ""
	if missing {
		return unknown, ""
	}
	return contradicted, ""
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, name)
		return ok && err == nil
	})
}
