package results

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Event is one line of `go test -json`.
type Event struct {
	Time        string  `json:",omitempty"`
	Action      string  // start, run, pause, cont, pass, fail, skip, output, bench, build-output, build-fail
	Package     string  `json:",omitempty"`
	Test        string  `json:",omitempty"`
	Elapsed     float64 `json:",omitempty"` // s
	Output      string  `json:",omitempty"`
	ImportPath  string  `json:",omitempty"` // of build events
	FailedBuild string  `json:",omitempty"` // the build that failed the package
}

// Status is how a test or package ended.
type Status string

// The ways to end.
const (
	Pass  Status = "pass"
	Fail  Status = "fail"
	Skip  Status = "skip"
	Unend Status = "did not end"
)

// Test is one test of a package, subtests included.
type Test struct {
	Status     Status
	ElapsedSec float64
	Output     string
}

// Package is the result of one package in a run.
type Package struct {
	Name       string
	Status     Status
	ElapsedSec float64
	Output     string // of no test in particular
	Build      string // the compiler's output
	Tests      map[string]*Test
}

// Run is one run of tests on one machine.
type Run struct {
	Name     string // of the machine: "host", "lab"
	Packages []*Package

	index map[string]*Package
	build map[string]string
}

const (
	maxLine          = 1 << 20
	maxTestOutput    = 64 << 10
	maxPackageOutput = 1 << 20
)

// Read reads the lines of `go test -json`. It keeps a line that is not JSON as output of no package: the go command
// prints such lines if it cannot load the packages.
func Read(name string, in io.Reader) (*Run, error) {
	r := &Run{Name: name, index: map[string]*Package{}, build: map[string]string{}}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	var stray []string
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" {
			continue
		}
		var e Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			if len(stray) < 20 {
				stray = append(stray, line)
			}
			continue
		}
		r.add(e)
	}
	if err := lines.Err(); err != nil {
		return r, fmt.Errorf("test output of the %s: %w", name, err)
	}
	if stray != nil {
		return r, fmt.Errorf("test output of the %s has lines that are not events: %s", name, strings.Join(stray, "; "))
	}
	return r, nil
}

func (r *Run) add(e Event) {
	if e.Action == "build-output" {
		r.build[e.ImportPath] = last(r.build[e.ImportPath]+e.Output, maxPackageOutput)
		return
	}
	if e.Package == "" {
		return
	}
	p := r.index[e.Package]
	if p == nil {
		p = &Package{Name: e.Package, Status: Unend, Tests: map[string]*Test{}}
		r.index[e.Package] = p
		r.Packages = append(r.Packages, p)
	}
	if e.Test == "" {
		switch e.Action {
		case "start":
			p.end(Unend)
		case "output":
			p.Output = last(p.Output+e.Output, maxPackageOutput)
		case "pass", "fail", "skip":
			p.end(Status(e.Action))
			p.ElapsedSec += e.Elapsed
			p.Build += r.build[e.FailedBuild]
		}
		return
	}
	t := p.Tests[e.Test]
	if t == nil {
		t = &Test{Status: Unend}
		p.Tests[e.Test] = t
	}
	switch e.Action {
	case "output":
		t.Output = last(t.Output+e.Output, maxTestOutput)
	case "pass", "fail", "skip":
		t.Status, t.ElapsedSec = Status(e.Action), e.Elapsed
	}
}

// end notes how the package's tests ended. A run may have some of them first and the others later: a failure stays.
func (p *Package) end(s Status) {
	if p.Status != Fail {
		p.Status = s
	}
}

func last(s string, n int) string { return s[max(0, len(s)-n):] }

// TestNames returns the package's tests in order of their names.
func (p *Package) TestNames() []string {
	var names []string
	for name := range p.Tests {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Ran counts the tests of a run that passed or failed.
func (r *Run) Ran() int {
	n := 0
	for _, p := range r.Packages {
		for _, t := range p.Tests {
			if t.Status == Pass || t.Status == Fail {
				n++
			}
		}
	}
	return n
}

// Took reports whether a test ran here, whatever came of it.
func (r *Run) Took(pkg, test string) bool {
	p := r.index[pkg]
	if p == nil || p.Tests[test] == nil {
		return false
	}
	id := TestID{pkg, test}
	for name, t := range p.Tests {
		if id.covers(name) && t.Status != Pass && t.Status != Fail {
			return false
		}
	}
	return true
}

// Err returns what is wrong with a run: failures, tests that did not end, a run without tests. It is nil for a good
// one.
func (r *Run) Err() error {
	var wrong []error
	for _, p := range r.Packages {
		if p.Status == Fail || p.Status == Unend {
			wrong = append(wrong, fmt.Errorf("%s (%s): %s", p.Name, r.Name, p.Status))
		}
		for _, name := range p.TestNames() {
			if s := p.Tests[name].Status; s == Fail || s == Unend && p.Status == Pass {
				wrong = append(wrong, fmt.Errorf("%s.%s (%s): %s", p.Name, name, r.Name, s))
			}
		}
	}
	if r.Ran() == 0 {
		wrong = append(wrong, fmt.Errorf("%s: no test ran", r.Name))
	}
	return errors.Join(wrong...)
}
