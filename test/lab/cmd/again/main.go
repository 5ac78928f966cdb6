// Command again runs the failed tests of a run once more, each twice and alone, where the failure may be noise of the
// machine. Its arguments are the file of the run's events, then the command that runs one test. In the command, PACKAGE
// and TEST stand for the test, and FILE for the file that gets the events; without FILE, the command prints them.
// Command skips judges what came of it.
//
//	again kernel.json go test -json -count=1 -run ^TEST$ PACKAGE
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/unthrottle/unthrottle/test/lab/results"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) < 2 {
		fmt.Fprintln(stderr, "usage: again FILE COMMAND... (with TEST, PACKAGE and FILE in it)")
		return 2
	}
	file, command := args[0], args[1:]
	if err := forget(file); err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	failed, err := failures(file)
	if err != nil {
		fmt.Fprintln(stdout, "not run again:", err)
		return 0 // command skips fails for it
	}
	for i, id := range failed {
		fmt.Fprintf(stdout, "== once more, twice and alone: %s\n", id)
		for attempt := range results.LaterRuns {
			if err := once(ctx, command, id, results.LaterFile(file, i, attempt), stderr); err != nil {
				fmt.Fprintln(stderr, err)
				return 1
			}
		}
	}
	return 0
}

// forget removes what was run again for an earlier run of that name.
func forget(file string) error {
	old, err := filepath.Glob(results.LaterFiles(file))
	for _, f := range old {
		err = errors.Join(err, os.Remove(f))
	}
	return err
}

func failures(file string) ([]results.TestID, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := results.Read(file, f)
	if err != nil {
		return nil, err
	}
	return r.Again()
}

// once runs the command for one test. That the test fails is no error here.
func once(ctx context.Context, command []string, id results.TestID, file string, stderr io.Writer) error {
	words := slices.Clone(command)
	for i, w := range words {
		words[i] = strings.NewReplacer("PACKAGE", id.Package, "TEST", id.Test, "FILE", file).Replace(w)
	}
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Stderr = stderr
	if !slices.Contains(command, "FILE") {
		out, err := os.Create(file)
		if err != nil {
			return err
		}
		defer out.Close()
		cmd.Stdout = out
	}
	err := cmd.Run()
	if failed := new(exec.ExitError); errors.As(err, &failed) && failed.ExitCode() == 1 {
		return nil
	}
	return err
}
