package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/infile"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/parallel"
	"github.com/unthrottle/unthrottle/internal/sim/realrun"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/jsonout"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/next"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/scenariorun"
	view "github.com/unthrottle/unthrottle/internal/ui/report/simulate"
)

// maxRepeat bounds --repeat.
const maxRepeat = 10_000

type simulateFlags struct {
	ascii, timeline, explain bool
	seed                     uint64
	repeat                   int
	length                   time.Duration
	set                      []string
	out                      output
	isReal                   bool
	real                     realFlags
}

func newSimulate() *cobra.Command {
	var f simulateFlags
	cmd := &cobra.Command{
		Use:     "simulate SCENARIO.yaml",
		GroupID: groupTry,
		Short:   "Simulate a scenario: what a CPU limit does to it; or run it for real (--real)",
		Long: `Simulate a scenario file (docs/reference/scenarios.md) on any kernel and number
of CPUs: nothing runs for real, and no rights are needed. "-" reads standard
input.

With --real it runs on this host and its kernel: real threads, in cgroups of its
own with the file's limits. Only those are written, and all of them are removed,
also after Ctrl-C; after a kill -9 by the next start or by 'unthrottle restore
--scope' with the same cgroup.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage(cmd, "one SCENARIO.yaml is wanted, not %d: the folder examples/scenarios/ has some", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			if f.out.json() && (f.timeline || f.explain) {
				return usage(cmd, "--timeline and --explain are for people: they go with no --json")
			}
			s, err := readScenario(cmd.Context(), args[0], cmd.InOrStdin())
			if err == nil && cmd.Flags().Changed("for") {
				err = lasting(&s, f.length)
			}
			if err != nil {
				return err
			}
			for _, set := range f.set {
				name, value, ok := strings.Cut(set, "=")
				if !ok {
					return fmt.Errorf("--set %s: give NAME=TIME, NAME one of %s", set, strings.Join(scenario.Constants(), ", "))
				}
				if err := s.Host.Set(name, value); err != nil {
					return fmt.Errorf("--set %w", err)
				}
			}
			if f.isReal {
				return f.runReal(cmd, args, s)
			}
			defer goingOn("simulate")()
			result, err := f.run(cmd.Context(), s, filepath.Base(args[0]))
			if err != nil {
				return err
			}
			if f.out.json() {
				return jsonout.Write(cmd.OutOrStdout(), "simulate", result)
			}
			if err := view.Write(cmd.OutOrStdout(), result, styleOf(f.ascii)); err != nil {
				return err
			}
			if runsHere(s) && args[0] != "-" {
				sayNext(f.out, next.Run(args[0]))
			}
			return nil
		},
	}
	flags := cmd.Flags()
	f.out.add(cmd)
	shareSeed(cmd, &f.seed)
	shareCount(cmd, &f.repeat, "repeat", 1, ", each with the next seed, and show the spread")
	lengthVar(cmd, &f.length, 0, " to simulate, instead of the file's duration")
	flags.BoolVar(&f.timeline, "timeline", false, "draw the first ten periods of each limited cgroup")
	shareSwitch(cmd, &f.explain, "explain", ": each step of one period's accounting")
	flags.StringArrayVar(&f.set, "set", nil, "override a constant of the kernel, `NAME=TIME`: "+strings.Join(scenario.Constants(), ", "))
	shareSwitch(cmd, &f.ascii, "ascii", " in the timeline")
	flags.BoolVar(&f.isReal, "real", false, "run it on this host, in cgroups of its own")
	shareString(cmd, &f.real.parent, "parent", "", "; with --real")
	shareSwitch(cmd, &f.real.fair, "fair", "; with --real")
	shareSwitch(cmd, &f.real.dryRun, "dry-run", "; with --real")
	return cmd
}

// check refuses flags that do not go together.
func (f *simulateFlags) check(cmd *cobra.Command) error {
	most, wrong, only := maxRepeat, []string{"parent", "fair", "dry-run"}, "goes with --real only"
	if f.isReal {
		most, wrong, only = maxRealRepeat, []string{"timeline", "explain", "set", "ascii"}, "is of a simulation: it goes without --real"
	}
	for _, name := range wrong {
		if cmd.Flags().Changed(name) {
			return usage(cmd, "--%s %s", name, only)
		}
	}
	if f.repeat < 1 || f.repeat > most {
		return fmt.Errorf("--repeat %d: give a number from 1 to %d", f.repeat, most)
	}
	return rejectEmptyFlags(cmd, "parent")
}

// runsHere tells whether this host can run a scenario for real.
func runsHere(s scenario.Scenario) bool {
	h, err := openCgroups()
	if err == nil {
		_, err = realrun.Check(s, realrun.Options{Host: h})
	}
	return err == nil
}

// readScenario reads a file of at most scenario.MaxFile bytes.
func readScenario(ctx context.Context, name string, stdin io.Reader) (scenario.Scenario, error) {
	data, err := infile.ReadAll(ctx, name, stdin, scenario.MaxFile)
	if err != nil {
		return scenario.Scenario{}, err
	}
	return scenario.Parse(name, data)
}

// timelinePeriods are drawn by --timeline.
const timelinePeriods = 10

// run simulates with every seed. The first run is the one that is drawn and explained.
func (f *simulateFlags) run(ctx context.Context, s scenario.Scenario, name string) (view.Simulation, error) {
	results, err := parallel.Collect(ctx, f.repeat, func(i int) (simulate.Result, error) {
		o := simulate.Options{Seed: f.seed + uint64(i)}
		if i == 0 {
			o.Explain = f.explain
			if f.timeline {
				o.Timeline = timelinePeriods
			}
		}
		return simulate.Run(s, o)
	})
	if err != nil {
		return view.Simulation{}, err
	}
	runs := make([]scenario.Outcome, len(results))
	for i, r := range results {
		runs[i] = r.Outcome
	}
	since := s.Host.Rules.Since
	era := since.Letter()
	out := view.Simulation{Rules: since, Timeline: results[0].Timeline, Explain: results[0].Explain, Run: scenariorun.Run{
		Scenario: name, About: s.About, Simulated: true, Kernel: s.Host.Rules.Kernel, Era: &era,
		CPUs: s.Host.CPUs, HZ: &s.Host.HZ, Seed: f.seed,
	}}
	out.Summarize(runs)
	return out, nil
}
