// Command skips reads the `go test -json` output of several machines and prints it as `go test` would. Then it prints
// the tests that every one of them skipped. It fails if a test or package failed, or if a machine ran no test. It also
// fails if a test was skipped everywhere for a need that UNTHROTTLE_MUST lists, or if every run left a test out. The ten
// slowest tests end the list.
//
// A test that failed, and then passed each time that command again ran it alone, is printed with its output and is no
// failure: on a shared machine an experiment now and then measures something else.
//
//	skips pure.json kernel.json lab.json
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/unthrottle/unthrottle/test/lab/require"
	"github.com/unthrottle/unthrottle/test/lab/results"
)

// slowest is how many of the slowest tests are printed.
const slowest = 10

func main() {
	os.Exit(run(os.Args[1:], os.Getenv(require.EnvMust), os.Stdout, os.Stderr))
}

func run(files []string, must string, stdout, stderr io.Writer) int {
	if len(files) == 0 {
		fmt.Fprintln(stderr, "usage: skips FILE... (each the output of go test -json)")
		return 2
	}
	good := true
	complain := func(err error) {
		if err != nil {
			good = false
			fmt.Fprintln(stderr, err)
		}
	}
	var runs []*results.Run
	for _, file := range files {
		r, err := read(file)
		complain(err)
		if r == nil {
			continue
		}
		later, err := laterRuns(file)
		complain(err)
		fmt.Fprintf(stdout, "== %s: %d tests ran\n", r.Name, r.Ran())
		for _, id := range r.Settle(later) {
			fmt.Fprintf(stdout, "FAILED ONCE, then passed %d times alone: %s; what it printed:\n%s", results.LaterRuns, id, r.Output(id))
		}
		r.Print(stdout)
		complain(r.Err())
		runs = append(runs, r)
	}
	skipped := results.SkippedEverywhere(runs)
	if len(skipped) > 0 {
		fmt.Fprintf(stdout, "== skipped on every machine: %d\n", len(skipped))
	}
	for _, s := range skipped {
		fmt.Fprintf(stdout, "%s.%s\n    %s\n", s.Package, s.Test, strings.Join(s.Reasons, "\n    "))
		if s.LeftOut {
			complain(fmt.Errorf("%s.%s: left out of a run without kernel experiments, and no other run has it", s.Package, s.Test))
		}
		for _, need := range s.Needs {
			known, err := require.Must(must, need)
			complain(err)
			if known {
				complain(fmt.Errorf("%s.%s: skipped for lack of %s, which %s lists as present", s.Package, s.Test, need, require.EnvMust))
			}
		}
	}
	fmt.Fprintln(stdout, "== slowest tests")
	for _, s := range results.Slowest(runs, slowest) {
		fmt.Fprintf(stdout, "%7.1f s  %s.%s (%s)\n", s.ElapsedSec, s.Package, s.Test, s.Run)
	}
	if !good {
		fmt.Fprintln(stdout, "FAIL")
		return 1
	}
	fmt.Fprintln(stdout, "PASS")
	return 0
}

// read names the run after its file: host.json is "host".
func read(file string) (*results.Run, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return results.Read(strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)), f)
}

// laterRuns reads what command again left of a run.
func laterRuns(file string) ([]*results.Run, error) {
	files, err := filepath.Glob(results.LaterFiles(file))
	var runs []*results.Run
	for _, name := range files {
		r, readErr := read(name)
		err = errors.Join(err, readErr)
		if r != nil {
			runs = append(runs, r)
		}
	}
	return runs, err
}
