package results

import (
	"fmt"
	"slices"
	"strings"
)

// TestID names a test within a run.
type TestID struct{ Package, Test string }

func (t TestID) String() string { return t.Package + "." + t.Test }

// mostAgain is how many failed tests of a run may be noise. More have one cause, and that is not the machine's.
const mostAgain = 3

// notNoise marks failures that no second run excuses: they happen once in many runs, and are faults each time.
var notNoise = []string{"race detected during execution of test", "WARNING: DATA RACE", "panic:", "fatal error:"}

// Again returns the failed tests of a run whose failure may be noise of the machine, without subtests. It is an error if
// something else is wrong with the run, or if the failures are too many or of a kind that is never noise.
func (r *Run) Again() ([]TestID, error) {
	var again []TestID
	for _, p := range r.Packages {
		failed := p.failed()
		switch {
		case p.Build != "" || p.Status == Unend:
			return nil, fmt.Errorf("%s (%s): it was not built, or did not end", p.Name, r.Name)
		case p.Status == Fail && len(failed) == 0:
			return nil, fmt.Errorf("%s (%s): it failed outside its tests", p.Name, r.Name)
		}
		if mark := fault(p.Output); mark != "" {
			return nil, fmt.Errorf("%s (%s): %s", p.Name, r.Name, mark)
		}
		for _, name := range failed {
			top, _, _ := strings.Cut(name, "/")
			if mark := p.mark(name); mark != "" {
				return nil, fmt.Errorf("%s.%s (%s): %s", p.Name, name, r.Name, mark)
			}
			if id := (TestID{p.Name, top}); !slices.Contains(again, id) {
				again = append(again, id)
			}
		}
	}
	if len(again) > mostAgain {
		return nil, fmt.Errorf("%s: %d tests failed, more than the %d that may be noise", r.Name, len(again), mostAgain)
	}
	return again, nil
}

// failed returns the names of the tests that failed or did not end, subtests included.
func (p *Package) failed() []string {
	var names []string
	for _, name := range p.TestNames() {
		if s := p.Tests[name].Status; s == Fail || s == Unend {
			names = append(names, name)
		}
	}
	return names
}

// mark returns what shows that a test's failure is not noise; "": nothing.
func (p *Package) mark(name string) string {
	if p.Tests[name].Status == Unend {
		return string(Unend)
	}
	return fault(p.Tests[name].Output)
}

// fault returns the mark of notNoise in an output; "": none.
func fault(output string) string {
	for _, mark := range notNoise {
		if strings.Contains(output, mark) {
			return mark
		}
	}
	return ""
}

// Settle takes a test's failure as noise if it ran alone in at least [LaterRuns] of the later runs, and passed in all of
// them. It returns these tests. Their status in r is Pass afterwards, and so is their package's where nothing else is
// wrong in it.
func (r *Run) Settle(later []*Run) []TestID {
	again, err := r.Again()
	if err != nil {
		return nil
	}
	var settled []TestID
	for _, id := range again {
		ran, passed := 0, 0
		for _, l := range later {
			if p := l.index[id.Package]; p != nil && p.Tests[id.Test] != nil {
				ran++
				if p.Status == Pass && p.Tests[id.Test].Status == Pass {
					passed++
				}
			}
		}
		if ran < LaterRuns || passed < ran {
			continue
		}
		settled = append(settled, id)
		p := r.index[id.Package]
		for _, name := range p.failed() {
			if id.covers(name) {
				p.Tests[name].Status = Pass
			}
		}
		if len(p.failed()) == 0 {
			p.Status = Pass
		}
	}
	return settled
}

// covers reports whether a name is of the test or of a subtest.
func (t TestID) covers(name string) bool {
	return name == t.Test || strings.HasPrefix(name, t.Test+"/")
}

// Output returns what a test and its subtests printed.
func (r *Run) Output(id TestID) string {
	var b strings.Builder
	p := r.index[id.Package]
	for _, name := range p.TestNames() {
		if id.covers(name) {
			b.WriteString(withoutFraming(p.Tests[name].Output))
		}
	}
	return b.String()
}

// LaterRuns is how often a failed test runs again, alone.
const LaterRuns = 2

// LaterFile is the file for one later run of a failed test, beside the file of the run that it failed in.
func LaterFile(file string, failure, attempt int) string {
	return fmt.Sprintf("%s.again.%d.%d", file, failure, attempt)
}

// LaterFiles is a pattern of all of them.
func LaterFiles(file string) string { return file + ".again.*.*" }
