package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/experiment/capacity"
	"github.com/unthrottle/unthrottle/internal/experiment/demo"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/sandbox"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/realrun"
	view "github.com/unthrottle/unthrottle/internal/ui/report/run"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/jsonout"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/next"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/trial"
)

// maxRealRepeat bounds run's --repeat: each takes the scenario's duration.
const maxRealRepeat = 1000

type runFlags struct {
	fair, dryRun bool
	seed         uint64
	repeat       int
	length       time.Duration
	parent       string
	out          output
}

func newRun() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:     "run SCENARIO.yaml",
		GroupID: groupTry,
		Short:   "Run a scenario for real, in cgroups of its own",
		Long: `Run a scenario file (docs/reference/scenarios.md) for real on this host: real
threads, in cgroups of its own with the file's limits. Only those are written,
and all of them are removed, also after Ctrl-C; after a kill -9 by the next
start or by 'unthrottle restore --scope' with the same cgroup. The kernel is
this host's, whatever the file says of one: 'unthrottle simulate' takes the same
file. "-" reads standard input.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage(cmd, "one SCENARIO.yaml is wanted, not %d: the folder examples/scenarios/ has some", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := rejectEmptyFlags(cmd, "parent"); err != nil {
				return err
			}
			if f.repeat < 1 || f.repeat > maxRealRepeat {
				return fmt.Errorf("--repeat %d: give a number from 1 to %d", f.repeat, maxRealRepeat)
			}
			s, err := readScenario(cmd.Context(), args[0], cmd.InOrStdin())
			if err == nil && cmd.Flags().Changed("for") {
				err = lasting(&s, f.length)
			}
			if err != nil {
				return err
			}
			if f.dryRun {
				if err := f.plan(cmd, s, filepath.Base(args[0])); err != nil {
					return err
				}
				if args[0] != "-" {
					sayNext(f.out, forReal(cmd, args))
				}
				return nil
			}
			defer goingOn("run")()
			out, err := f.run(cmd.Context(), s, filepath.Base(args[0]))
			if err != nil {
				return notMeasurable(err)
			}
			if f.out.json() {
				return jsonout.Write(cmd.OutOrStdout(), "run", out)
			}
			if err := view.Write(cmd.OutOrStdout(), out, outStyle()); err != nil {
				return err
			}
			if args[0] != "-" {
				sayNext(f.out, next.Simulate(args[0]))
			}
			return nil
		},
	}
	f.out.add(cmd)
	shareCount(cmd, &f.repeat, "repeat", 1, ": medians, with the lowest and the highest")
	lengthVar(cmd, &f.length, 0, " to run, instead of the file's duration")
	shareSeed(cmd, &f.seed)
	shareString(cmd, &f.parent, "parent", "", "")
	shareSwitch(cmd, &f.fair, "fair", "")
	shareSwitch(cmd, &f.dryRun, "dry-run", "")
	return cmd
}

// lasting sets the duration of a scenario.
func lasting(s *scenario.Scenario, d time.Duration) error {
	if d < time.Millisecond || d > scenario.MaxDuration {
		return fmt.Errorf("--for %v: give a time from 1ms to %v", plainTime(d), plainTime(scenario.MaxDuration))
	}
	for _, w := range s.Workloads {
		if w.Start >= d {
			return fmt.Errorf("--for %v: %s starts at %v only", d, w.Name, w.Start)
		}
	}
	s.Duration = d
	return nil
}

// plan shows what a run would make.
func (f *runFlags) plan(cmd *cobra.Command, s scenario.Scenario, name string) error {
	h, err := openCgroups()
	if err != nil {
		return err
	}
	p := view.Plan{Scenario: name, About: s.About, Seconds: s.Duration.Seconds(), Repeat: f.repeat}
	if p.Parent, err = cleanPrefix(h, "parent", f.parent); err != nil {
		return err
	}
	if p.Plan, err = realrun.Check(s, realrun.Options{Host: h, Scope: p.Parent}); err != nil {
		return notMeasurable(err)
	}
	if f.out.json() {
		return jsonout.Write(cmd.OutOrStdout(), "run_plan", p)
	}
	return view.WritePlan(cmd.OutOrStdout(), p)
}

func (f *runFlags) run(ctx context.Context, s scenario.Scenario, name string) (out trial.Trial, err error) {
	h, err := openCgroups()
	if err != nil {
		return out, err
	}
	o := realrun.Options{Host: h, Fair: f.fair, Probe: realrun.Probed{Host: h}}
	if o.Scope, err = cleanPrefix(h, "parent", f.parent); err != nil {
		return out, err
	}
	var uts unix.Utsname
	_ = unix.Uname(&uts) // fails for a bad pointer only
	mode := h.Mode()
	out = trial.Trial{
		Scenario: name, About: s.About, Kernel: unix.ByteSliceToString(uts.Release[:]), Mode: &mode,
		CPUs: s.Host.CPUs, Seed: f.seed, Fair: &f.fair,
	}
	var runs []scenario.Outcome
	for i := range f.repeat {
		if f.repeat > 1 {
			say("run %d of %d", i+1, f.repeat)
		}
		o.Seed = f.seed + uint64(i)
		r, err := realrun.Run(ctx, s, o)
		if err != nil {
			return out, err
		}
		runs = append(runs, r.Outcome)
		out.Notes = append(out.Notes, r.Notes...)
	}
	out.Summarize(runs)
	return out, nil
}

// removeLeftovers removes the cgroups that killed runs, benches and demos left
// behind directly below the scope ("": where they make them without one). A failure
// is a message, not an error: the command is about something else.
func removeLeftovers(h *cgroup.Host, scope string) {
	left, err := sandbox.RemoveLeftovers(h, scope, realrun.Prefix, capacity.Prefix, demo.Prefix)
	if err != nil {
		return // without cgroups of our own there are no leftovers
	}
	if left.Removed > 0 {
		say("removed the cgroups that %d killed experiments had left", left.Removed)
	}
	for _, note := range left.Stay {
		say("%s", note)
	}
}
