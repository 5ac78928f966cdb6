package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/test/lab"
	"github.com/unthrottle/unthrottle/test/lab/boot"
	"github.com/unthrottle/unthrottle/test/lab/fetch"
	"github.com/unthrottle/unthrottle/test/lab/require"
	"github.com/unthrottle/unthrottle/test/lab/results"
	"github.com/unthrottle/unthrottle/test/lab/suite"
	"github.com/unthrottle/unthrottle/test/lab/wire"
)

// The Makefile distinguishes exitTestsFailed from exitCannotTest.
const exitTestsFailed = 1

func testCommand(o *options) *cobra.Command {
	var jsonFile, out, taken string
	var so suite.Options
	cmd := &cobra.Command{
		Use:   "test [PACKAGE...]",
		Short: "Run the tests that use lab/require in one guest",
		Long: `Run the tests that use lab/require in one guest.

Prints what go test prints. The exit code is 0, 1 if a test failed, or 125 if
the lab could not test.`,
		RunE: func(cmd *cobra.Command, patterns []string) error {
			ctx := cmd.Context()
			g, err := o.guest(ctx, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			packages, moduleDir, err := suite.Find(ctx, suite.Guest, patterns...)
			if err != nil {
				return err
			}
			if packages, err = notRepeated(packages, taken, cmd.ErrOrStderr()); err != nil {
				return err
			}
			dir, err := os.MkdirTemp("", "unthrottle-lab-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(dir)
			so.Must = must(g.Machine, o.kernel, o.cgroup)
			so.Machine = fmt.Sprintf("%s %d %s", g.Machine.SMP(), g.Machine.L3sPerSocket, g.Machine.NUMA)
			if require.All() {
				so.Env = append(so.Env, require.EnvAll+"=1")
			}
			if o.slow.factor > 1 {
				so.Env = append(so.Env, fmt.Sprintf("%s=%d", require.EnvSlow, o.slow.factor))
				so.Must += ",slow"
			}
			start := time.Now()
			built, err := suite.Build(ctx, packages, moduleDir, dir, so)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "lab: built %d test binaries in %.1f s\n", len(built.Packages), time.Since(start).Seconds())
			g.OutDir, g.Files, g.Plan.Steps = out, built.Files, built.Steps
			run, err := runTests(cmd, g, &o.slow, built, jsonFile)
			if err != nil {
				return err
			}
			if err := run.Err(); err != nil {
				fmt.Fprintln(cmd.ErrOrStderr(), err)
				return exitCode(exitTestsFailed)
			}
			return nil
		},
	}
	o.add(cmd, 10*time.Minute)
	f := cmd.Flags()
	f.StringVar(&jsonFile, "json", "", "write go test -json events to this file")
	f.StringVar(&taken, "taken", "", "go test -json events of the host's run: the tests that it took are not "+
		"repeated, but for those with require.EachCgroup")
	f.StringVar(&out, "out", "", "folder that gets what tests leave in "+wire.OutDir)
	f.StringVar(&so.Run, "run", "", "only tests that match this regular expression")
	f.DurationVar(&so.PackageLimit, "package-timeout", 4*time.Minute, "end the tests of a package after this time")
	f.StringArrayVar(&so.Env, "env", nil, "NAME=VALUE in the tests' environment (repeat)")
	return cmd
}

// notRepeated takes out the tests that need not run twice, and did in the run that a
// file has; "": none.
func notRepeated(packages []suite.Package, file string, stderr io.Writer) ([]suite.Package, error) {
	if file == "" {
		return packages, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("--taken: %w", err)
	}
	defer f.Close()
	host, err := results.Read("host", f)
	if err != nil { // skips judges that run; what it took is known all the same
		fmt.Fprintln(stderr, "lab: --taken:", err)
	}
	rest, left := suite.NotRepeated(packages, host)
	fmt.Fprintf(stderr, "lab: not repeated: %s, which the host took\n", text.Count(left, "test"))
	return rest, nil
}

// runTests boots the guest and prints each package as it ends.
func runTests(cmd *cobra.Command, g boot.Guest, slow *slowed, built suite.Built, jsonFile string) (*results.Run, error) {
	var all []results.Event
	var outputs suite.Outputs
	var converting error
	show := func(events []results.Event) {
		run, err := readEvents(events)
		converting = errors.Join(converting, err)
		run.Print(cmd.OutOrStdout())
		all = append(all, events...)
	}
	show(built.Failed)
	g.Stdout, g.Stderr = outputs.Step, outputs.Step
	g.Booted = func(f wire.BootFacts, took time.Duration) {
		fmt.Fprintf(cmd.ErrOrStderr(), "lab: Linux %s with %d CPUs up in %.1f s\n", f.Release, g.Machine.CPUs(), took.Seconds())
	}
	g.NotBooted = func(err error) { fmt.Fprintf(cmd.ErrOrStderr(), "lab: %v: started again\n", err) }
	g.Ended = func(step int, status wire.ExitStatus) {
		events, err := suite.Events(cmd.Context(), built.Packages[step], outputs.Take(step), status)
		converting = errors.Join(converting, err)
		show(events)
	}
	result, err := slow.run(cmd.Context(), g, cmd.ErrOrStderr())
	for step, status := range result.Exits {
		if err != nil && status.NotRun != "" {
			g.Ended(step, status) // output from before the guest ended
		}
	}
	err = errors.Join(err, converting)
	if jsonFile != "" {
		err = errors.Join(err, writeEvents(jsonFile, all))
	}
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "lab: %.1f s in all\n", result.Total.Seconds())
	return readEvents(all)
}

func readEvents(events []results.Event) (*results.Run, error) {
	var text bytes.Buffer
	err := encode(&text, events)
	run, readErr := results.Read("lab", &text)
	return run, errors.Join(err, readErr)
}

func encode(w io.Writer, events []results.Event) error {
	to := json.NewEncoder(w)
	for _, e := range events {
		if err := to.Encode(e); err != nil {
			return err
		}
	}
	return nil
}

func writeEvents(name string, events []results.Event) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(encode(f, events), f.Close())
}

// must is UNTHROTTLE_MUST for a guest; cgroup is v1 or v2.
func must(m lab.Machine, kernel, cgroup string) string {
	needs := []string{"root", cgroup, fmt.Sprintf("cpus=%d", m.CPUs())}
	if line, err := fetch.FindLine(kernel); err == nil {
		if line.BTF {
			needs = append(needs, "bpf")
		}
		if line.SchedExt {
			needs = append(needs, "sched_ext")
		}
	}
	return strings.Join(needs, ",")
}
