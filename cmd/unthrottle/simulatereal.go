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
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/jsonout"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/next"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/scenariorun"
	view "github.com/unthrottle/unthrottle/internal/ui/report/simulate"
)

// maxRealRepeat bounds --repeat with --real: each takes the scenario's duration.
const maxRealRepeat = 1000

// realFlags are those of simulate --real.
type realFlags struct {
	fair, dryRun bool
	parent       string
}

// runReal runs a scenario on this host, or says what that would make.
func (f *simulateFlags) runReal(cmd *cobra.Command, args []string, s scenario.Scenario) error {
	name := filepath.Base(args[0])
	if f.real.dryRun {
		if err := f.plan(cmd, s, name); err != nil {
			return err
		}
		if args[0] != "-" {
			sayNext(f.out, forReal(cmd, args))
		}
		return nil
	}
	defer goingOn("simulate --real")()
	out, err := f.measure(cmd.Context(), s, name)
	if err != nil {
		return notMeasurable(err)
	}
	if f.out.json() {
		return jsonout.Write(cmd.OutOrStdout(), "run", out)
	}
	if err := view.WriteReal(cmd.OutOrStdout(), out, outStyle()); err != nil {
		return err
	}
	if args[0] != "-" {
		sayNext(f.out, next.Simulate(args[0]))
	}
	return nil
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
func (f *simulateFlags) plan(cmd *cobra.Command, s scenario.Scenario, name string) error {
	h, err := openCgroups()
	if err != nil {
		return err
	}
	p := view.Plan{Scenario: name, About: s.About, Seconds: s.Duration.Seconds(), Repeat: f.repeat}
	if p.Parent, err = cleanPrefix(h, "parent", f.real.parent); err != nil {
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

// measure runs it as often as was asked for.
func (f *simulateFlags) measure(ctx context.Context, s scenario.Scenario, name string) (out scenariorun.Run, err error) {
	h, err := openCgroups()
	if err != nil {
		return out, err
	}
	o := realrun.Options{Host: h, Fair: f.real.fair, Probe: realrun.Probed{Host: h}}
	if o.Scope, err = cleanPrefix(h, "parent", f.real.parent); err != nil {
		return out, err
	}
	var uts unix.Utsname
	_ = unix.Uname(&uts) // fails for a bad pointer only
	mode := h.Mode()
	out = scenariorun.Run{
		Scenario: name, About: s.About, Kernel: unix.ByteSliceToString(uts.Release[:]), Mode: &mode,
		CPUs: s.Host.CPUs, Seed: f.seed, Fair: &f.real.fair,
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
