package results

import (
	"cmp"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/test/lab/require"
)

// Skipped is a test that no run ran.
type Skipped struct {
	Package, Test string
	Reasons       []string // one for each run, "host: needs v2: ..."
	Needs         []string // the needs among them, "v2"
	LeftOut       bool     // no run looked at what the machine has: each left the test out
}

// SkippedEverywhere lists the tests that every run that knows them skipped, in order of package and name. It does not
// list subtests of a listed test.
func SkippedEverywhere(runs []*Run) []Skipped {
	type key struct{ pkg, test string }
	found := map[key]*Skipped{}
	ran := map[key]bool{}
	for _, r := range runs {
		for _, p := range r.Packages {
			for name, t := range p.Tests {
				k := key{p.Name, name}
				if t.Status != Skip {
					ran[k] = true
					continue
				}
				s := found[k]
				if s == nil {
					s = &Skipped{Package: p.Name, Test: name, LeftOut: true}
					found[k] = s
				}
				reason := skipReason(t.Output)
				s.Reasons = append(s.Reasons, r.Name+": "+reason)
				s.LeftOut = s.LeftOut && require.IsLeftOut(reason)
				if need, _, _, ok := require.SkipMessage(reason); ok {
					s.Needs = append(s.Needs, need)
				}
			}
		}
	}
	var list []Skipped
	for k, s := range found {
		if !ran[k] {
			list = append(list, *s)
		}
	}
	slices.SortFunc(list, func(a, b Skipped) int {
		return cmp.Or(strings.Compare(a.Package, b.Package), strings.Compare(a.Test, b.Test))
	})
	return list
}

// skipReason finds the message of t.Skip in a test's output. It is the text after "file_test.go:12: " on the last such
// line, so that earlier log lines do not count.
func skipReason(output string) string {
	reason := "no reason given"
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "=== ") || strings.HasPrefix(line, "--- ") {
			continue
		}
		if _, message, ok := strings.Cut(line, ".go:"); ok {
			if _, message, ok = strings.Cut(message, ": "); ok {
				reason = message
			}
		}
	}
	return reason
}
