// Command skips reads the `go test -json` output of several machines and prints it as `go test` would. Then it prints
// the tests that every one of them skipped. It fails if a test or package failed, or if a machine ran no test. It also
// fails if a test was skipped everywhere for a need that UNTHROTTLE_MUST lists.
//
//	skips host.json lab.json
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/unthrottle/unthrottle/test/lab/require"
	"github.com/unthrottle/unthrottle/test/lab/results"
)

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
		fmt.Fprintf(stdout, "== %s: %d tests ran\n", r.Name, r.Ran())
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
		for _, need := range s.Needs {
			known, err := require.Must(must, need)
			complain(err)
			if known {
				complain(fmt.Errorf("%s.%s: skipped for lack of %s, which %s lists as present", s.Package, s.Test, need, require.EnvMust))
			}
		}
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
