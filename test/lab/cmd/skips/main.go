// Command skips reads the `go test -json` output of several machines and prints it as `go test` would. Then it prints
// the tests that every one of them skipped. It fails if a test or package failed, or if a machine ran no test. It also
// fails if a test was skipped everywhere for a need that UNTHROTTLE_MUST lists, or if every run left a test out. The ten
// slowest tests end the list.
//
// A test that failed, and then passed each time that command again ran it alone, is printed with its output and is no
// failure: on a shared machine an experiment now and then measures something else. The file of -failed-once has these
// tests of the last ten runs, and a test that does so in three of them is a failure.
//
//	skips -failed-once .cache/failed-once.txt pure.json kernel.json lab.json
//
// With -failures it prints what failed, and nothing else.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/test/lab/require"
	"github.com/unthrottle/unthrottle/test/lab/results"
)

// slowest is how many of the slowest tests are printed.
const slowest = 10

func main() {
	os.Exit(run(os.Args[1:], os.Getenv(require.EnvMust), os.Stdout, os.Stderr))
}

// report is what is said of the runs, and whether they are good.
type report struct {
	stdout, stderr io.Writer
	bad            bool
}

func (r *report) complain(err error) {
	if err != nil {
		r.bad = true
		fmt.Fprintln(r.stderr, err)
	}
}

func run(args []string, must string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("skips", flag.ContinueOnError)
	flags.SetOutput(stderr)
	failures := flags.Bool("failures", false, "print what failed only")
	history := flags.String("failed-once", "", "the file of the tests that failed once in the last runs")
	if err := flags.Parse(args); err != nil || flags.NArg() == 0 {
		fmt.Fprintln(stderr, "usage: skips [-failures] [-failed-once FILE] FILE... (each the output of go test -json)")
		return 2
	}
	r := &report{stdout: stdout, stderr: stderr}
	if *failures {
		r.failures(flags.Args())
	} else {
		r.all(flags.Args(), must, *history)
	}
	if r.bad {
		fmt.Fprintln(stdout, "FAIL")
		return 1
	}
	if !*failures {
		fmt.Fprintln(stdout, "PASS")
	}
	return 0
}

// failures prints what failed.
func (r *report) failures(files []string) {
	for _, file := range files {
		tests, err := read(file)
		r.complain(err)
		if tests == nil {
			continue
		}
		for _, p := range tests.Packages {
			if p.Status == results.Fail || p.Status == results.Unend {
				p.Print(r.stdout)
			}
		}
		r.complain(tests.Err())
	}
}

// all prints the runs, and then what they are together.
func (r *report) all(files []string, must, history string) {
	var runs []*results.Run
	var settled []results.TestID
	for _, file := range files {
		tests, err := read(file)
		r.complain(err)
		if tests == nil {
			continue
		}
		later, err := laterRuns(file)
		r.complain(err)
		fmt.Fprintf(r.stdout, "== %s: %d tests ran\n", tests.Name, tests.Ran())
		for _, id := range tests.Settle(later) {
			fmt.Fprintf(r.stdout, "FAILED ONCE, then passed %d times alone: %s; what it printed:\n%s",
				results.LaterRuns, id, tests.Output(id))
			settled = append(settled, id)
		}
		tests.Print(r.stdout)
		r.complain(tests.Err())
		runs = append(runs, tests)
	}
	r.skipped(runs, must)
	fmt.Fprintln(r.stdout, "== slowest tests")
	for _, s := range results.Slowest(runs, slowest) {
		fmt.Fprintf(r.stdout, "%7.1f s  %s.%s (%s)\n", s.ElapsedSec, s.Package, s.Test, s.Run)
	}
	if history != "" {
		r.failedOnce(history, settled)
	}
}

// skipped prints the tests that all runs skipped.
func (r *report) skipped(runs []*results.Run, must string) {
	skipped := results.SkippedEverywhere(runs)
	if len(skipped) > 0 {
		fmt.Fprintf(r.stdout, "== skipped on every machine: %d\n", len(skipped))
	}
	for _, s := range skipped {
		fmt.Fprintf(r.stdout, "%s.%s\n    %s\n", s.Package, s.Test, strings.Join(s.Reasons, "\n    "))
		if s.LeftOut {
			r.complain(fmt.Errorf("%s.%s: left out of a run without kernel experiments, and no other run has it", s.Package, s.Test))
		}
		for _, need := range s.Needs {
			known, err := require.Must(must, need)
			r.complain(err)
			if known {
				r.complain(fmt.Errorf("%s.%s: skipped for lack of %s, which %s lists as present", s.Package, s.Test, need, require.EnvMust))
			}
		}
	}
}

// failedOnce adds the tests that failed once to those of the last runs, and prints these.
func (r *report) failedOnce(file string, now []results.TestID) {
	runs, err := results.FailedOnce(file, now)
	r.complain(err)
	if len(runs) > 0 {
		fmt.Fprintln(r.stdout, "== failed once, of the last runs on this machine")
	}
	for _, name := range slices.Sorted(maps.Keys(runs)) {
		fmt.Fprintf(r.stdout, "%3d  %s\n", runs[name], name)
	}
	for _, id := range now {
		if n := runs[id.String()]; n >= results.TooOften {
			r.complain(fmt.Errorf("%s: failed once in %d of the last runs, so that it has a cause", id, n))
		}
	}
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
