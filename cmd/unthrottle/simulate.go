package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/sim/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
	"github.com/unthrottle/unthrottle/internal/ui/report"
)

// maxRepeat bounds --repeat.
const maxRepeat = 10_000

type simulateFlags struct {
	asJSON, ascii, timeline, explain bool
	seed                             uint64
	repeat                           int
	set                              []string
}

func newSimulate() *cobra.Command {
	var f simulateFlags
	cmd := &cobra.Command{
		Use:     "simulate SCENARIO.yaml",
		GroupID: groupTry,
		Short:   "Simulate a scenario: what a CPU limit does to it, on any kernel and number of CPUs",
		Long: `Simulate a scenario file (docs/reference/scenarios.md) on a simulated host: nothing runs
for real, and no rights are needed. "-" reads standard input.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage(cmd, "one SCENARIO.yaml is wanted, not %d: the folder examples/scenarios/ has some", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.repeat < 1 || f.repeat > maxRepeat {
				return fmt.Errorf("--repeat %d: give a number from 1 to %d", f.repeat, maxRepeat)
			}
			s, err := readScenario(args[0], cmd.InOrStdin())
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
			result, err := f.run(cmd.Context(), s, filepath.Base(args[0]))
			if err != nil {
				return err
			}
			if f.asJSON {
				return printJSON(cmd.OutOrStdout(), result)
			}
			return report.Simulate(cmd.OutOrStdout(), result, report.SimulateOptions{ASCII: f.ascii})
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.asJSON, "json", false, "print JSON")
	flags.Uint64Var(&f.seed, "seed", 1, "of everything that is left to chance")
	flags.IntVar(&f.repeat, "repeat", 1, "run with that many seeds, and show the spread")
	flags.BoolVar(&f.timeline, "timeline", false, "draw the first ten periods of each limited cgroup")
	flags.BoolVar(&f.explain, "explain", false, "say each step of one period's accounting in words")
	flags.StringArrayVar(&f.set, "set", nil, "override a constant of the kernel, `NAME=TIME`: "+strings.Join(scenario.Constants(), ", "))
	flags.BoolVar(&f.ascii, "ascii", false, "no characters beyond ASCII in the timeline")
	cmd.MarkFlagsMutuallyExclusive("json", "timeline")
	cmd.MarkFlagsMutuallyExclusive("json", "explain")
	return cmd
}

// readScenario reads at most as much as a scenario may have.
func readScenario(name string, stdin io.Reader) (scenario.Scenario, error) {
	in := stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return scenario.Scenario{}, err
		}
		defer file.Close()
		in = file
	}
	data, err := io.ReadAll(io.LimitReader(in, scenario.MaxFile+1))
	if err != nil {
		return scenario.Scenario{}, fmt.Errorf("%s: %w", name, err)
	}
	return scenario.Parse(name, data)
}

// timelinePeriods are drawn by --timeline.
const timelinePeriods = 10

// run simulates with every seed, on all cores. A run itself knows no context:
// when interrupted, what is under way is left to the end of the process.
func (f *simulateFlags) run(ctx context.Context, s scenario.Scenario, name string) (report.Simulation, error) {
	type numbered struct {
		i      int
		result simulate.Result
		err    error
	}
	todo, done := make(chan int), make(chan numbered, f.repeat)
	for range min(f.repeat, runtime.GOMAXPROCS(0)) {
		go func() {
			for i := range todo {
				o := simulate.Options{Seed: f.seed + uint64(i)}
				if i == 0 {
					o.Explain = f.explain
					if f.timeline {
						o.Timeline = timelinePeriods
					}
				}
				result, err := simulate.Run(s, o)
				done <- numbered{i, result, err}
			}
		}()
	}
	defer close(todo)
	since := s.Host.Rules.Since
	era := since.Letter()
	out := report.Simulation{Rules: since, Trial: report.Trial{
		Scenario: name, About: s.About, Simulated: true, Kernel: s.Host.Rules.Kernel, Era: &era,
		CPUs: s.Host.CPUs, HZ: &s.Host.HZ, Seed: f.seed,
	}}
	runs := make([]scenario.Outcome, f.repeat)
	for next, left := 0, f.repeat; left > 0; {
		feed := todo
		if next == f.repeat {
			feed = nil
		}
		select {
		case <-ctx.Done():
			return out, ctx.Err()
		case feed <- next:
			next++
		case r := <-done:
			if r.err != nil {
				return out, r.err
			}
			left--
			runs[r.i] = r.result.Outcome
			if r.i == 0 {
				out.Timeline, out.Explain = r.result.Timeline, r.result.Explain
			}
		}
	}
	out.Summarize(runs)
	return out, nil
}
