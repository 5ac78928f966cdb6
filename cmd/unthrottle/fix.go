package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/clock"
	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/fix"
	"github.com/unthrottle/unthrottle/internal/cure/fix/learn"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/slo"
	"github.com/unthrottle/unthrottle/internal/cure/trial"
	"github.com/unthrottle/unthrottle/internal/cure/verdict"
	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/infile"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/see/probe"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	explanation "github.com/unthrottle/unthrottle/internal/ui/report/explain"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fix"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/progress"
	"github.com/unthrottle/unthrottle/internal/ui/terminal"
)

// howChosen is the rule of policy.Choose and of forecast.Judged, for the commands that recommend a remedy.
const howChosen = `Recommended is the row with the lowest latency among those that grant no more
CPU than the limit; with an objective (--slo) the cheapest that keeps it. The
latency is that of requests, of the kind that waits most, where 20 or more
were seen (Linux 6.3 and later); else that of the responses of a thread pool.`

type fixFlags struct {
	write                writeFlags
	remedy               remedyFlags
	out                  output
	slo                  sloFlags
	least, neighbours    bound
	window, budget       time.Duration
	tries                int
	may                  []string
	yes, dryRun, noTrial bool
	whole                bool // the explanation
}

func newFix() *cobra.Command {
	f := fixFlags{neighbours: bound{share: trial.DefaultNeighbours, text: "50%"}}
	cmd := &cobra.Command{
		Use:     "fix TARGET",
		GroupID: groupChange,
		Short:   "Look, forecast, ask, try remedies in turns, and keep the best",
		Long: `Look at a container, forecast every remedy, ask, try the remedies that keep
the limit in turns, and keep the one that measured best.

The container is recorded, and every remedy is replayed on the recording. The
table shows what each would bring and cost. Then each that can be applied here
is in force for some seconds, in another order each round, and is taken back.
What does harm is ended at once. After --budget at most, the best one stays.
"Leave it", "more CPU" and "a setting of the service" are answers too.

` + howChosen + `

With --no-trial, --remedy or too few requests one remedy is applied, the first
by the forecast, and the same requests, or the responses of the same pool, are
measured before and after. A change that does not help is undone, and the next
best is tried (--tries).

With --slo-command your own latency decides. The command prints a latency in ms
per line, after the time of the request if it knows it. It is run without a
shell, as the user who called unthrottle, before anything is changed and after
each turn, and has 30 s each time.

Without BPF nothing is forecast. Then the counters decide, and without
--slo-command the verdict is "unverified": the change is kept only if you
confirm it (or say --yes).

Exit code 1: nothing that helps is in force and the container is stopped above
the bound, or the objective is missed. 3: stopped time, the latencies or the
effect could not be measured, and nothing stays in force.`,
		Args: oneTarget,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	f.write.add(cmd)
	f.write.addLift(cmd)
	f.remedy.add(cmd)
	flags := cmd.Flags()
	flags.Lookup("remedy").Usage += " (default: what fits)"
	shareSwitch(cmd, &f.yes, "yes", ": apply and keep")
	shareSwitch(cmd, &f.dryRun, "dry-run", "")
	f.out.add(cmd)
	f.slo.add(cmd, " (p50, p90, p95, p99, p99.9, max)",
		"`CMD` that prints your latencies, one number in ms per line")
	boundVar(cmd, &f.least, "1%", ": less is no finding")
	flags.StringSliceVar(&f.may, "may", nil, "`REMEDIES` that may grant more CPU than the limit: "+policy.MayNames())
	flags.IntVar(&f.tries, "tries", 3, "at most `N` remedies are tried, one after the other, until one helps")
	timeVar(cmd, &f.budget, "budget", 3*time.Minute, "try remedies in turns for at most `TIME`")
	flags.Var(&f.neighbours, "neighbours", "a remedy that makes other containers' threads wait longer for a CPU by this `SHARE` cannot win")
	flags.BoolVar(&f.noTrial, "no-trial", false, "the forecast chooses one remedy, which is tried once")
	shareSwitch(cmd, &f.whole, "explain", " of the recording, whole")
	lengthVar(cmd, &f.window, 5*time.Second, " to look, before and after")
	return cmd
}

// check refuses what no fix can be asked for.
func (f *fixFlags) check() error {
	if err := checkWindow(f.window); err != nil {
		return err
	}
	if f.tries < 1 || f.tries > maxTries {
		return fmt.Errorf("--tries %d: give a number from 1 to %d", f.tries, maxTries)
	}
	if f.budget < policy.LeastTrial || f.budget > policy.LongestTrial {
		return fmt.Errorf("--budget %v: give %v to %v", f.budget, policy.LeastTrial, policy.LongestTrial)
	}
	return nil
}

// options are those of fix, and what it shows on the way.
func (f *fixFlags) options(cmd *cobra.Command) (o fix.Options, err error) {
	if err := f.remedy.rejectEmptyFlags(cmd); err != nil {
		return o, err
	}
	request, err := f.remedy.request(cmd)
	if err != nil {
		return o, err
	}
	if err := f.check(); err != nil {
		return o, err
	}
	wish := policy.Wish{Request: request, Auto: request.Kind == "", Bound: f.least.share, Judged: f.slo.command != ""}
	if wish.May, err = policy.ParseMay(f.may); err != nil {
		return o, fmt.Errorf("--may: %w", err)
	}
	o = fix.Options{
		Wish: wish, Window: f.window, Settle: time.Second, Budget: f.budget,
		Neighbours: f.neighbours.share, Yes: f.yes, Tries: f.tries, DryRun: f.dryRun,
		Explained: f.explained,
		Found:     func(p policy.Proposal) error { return view.Found(os.Stderr, p, terminal.Style(os.Stderr)) },
		Shown: func(_ policy.Proposal, planned apply.Result) error {
			return view.Proposal(os.Stderr, planned, terminal.Style(os.Stderr))
		},
	}
	if f.noTrial {
		o.Budget = 0
	}
	if terminal.Is(os.Stdin) {
		o.Ask = func(question string) (bool, error) { return terminal.Ask(cmd.Context(), os.Stdin, os.Stderr, question) }
	}
	return o, nil
}

// explained shows the recording's explanation: the whole of it where it is asked for, or the cause of a container that is stopped.
func (f *fixFlags) explained(e diagnose.Explanation, stoppedAbove bool) error {
	switch {
	case f.whole:
		return explanation.Write(os.Stderr, e, explanation.Options{Style: terminal.Style(os.Stderr)})
	case stoppedAbove, e.Cause != diagnose.None && e.Cause != "": // such as a neighbour that holds the CPUs
		return view.Cause(os.Stderr, e, terminal.Style(os.Stderr))
	}
	return nil
}

func (f *fixFlags) run(cmd *cobra.Command, args []string) error {
	o, err := f.options(cmd)
	if err != nil {
		return err
	}
	latencies, err := f.slo.source(cmd, &o, true)
	if err != nil {
		return err
	}
	var look looking
	result, err := runFix(cmd, &f.write, &look, args[0], fix.Run, o, latencies)
	if few := new(fix.TooFewLatencies); errors.As(err, &few) {
		if line := afterTooFew(cmd, args, few); line != "" {
			err = fmt.Errorf("%w; type: %s", err, line)
		}
	}
	ended := showFix(cmd, result, &look, err, f.out)
	switch {
	case err != nil:
	case f.dryRun && result.Proposal.Plan != nil:
		sayNext(f.out, forReal(cmd, args))
	default:
		sayNext(f.out, afterFix(f.write.next(), args[0], result))
	}
	return ended
}

// maxTries bounds --tries: each try disturbs the container.
const maxTries = 8

// runFix resolves the target and puts this host behind fix.Run.
func runFix(cmd *cobra.Command, w *writeFlags, look *looking, target string,
	do func(context.Context, fix.Env, fix.Options) (fix.Result, error), o fix.Options, latencies slo.Source) (fix.Result, error) {
	ctx := cmd.Context()
	h, err := openCgroups()
	if err != nil {
		return fix.Result{}, err
	}
	if _, err := existingPrefix(h, "lift-below", w.liftBelow); err != nil { // the agent's may come with its first container
		return fix.Result{}, err
	}
	if o.Target, o.All, err = resolve(h, target); err != nil {
		return fix.Result{}, err
	}
	o.All = withTarget(o.All, o.Target)
	env, done, err := w.env(cmd, h)
	if err != nil {
		return fix.Result{}, err
	}
	defer done()
	if !o.DryRun {
		if err := mayWrite(h, o.Target.Group.Path, env.Systemd != nil); err != nil {
			return fix.Result{}, err
		}
	}
	o.Say = func(text string) { say("%s", text) }
	kept := probe.Kept{Around: look.load}
	defer kept.Close()
	return do(ctx, hostEnv(ctx, h, env, w, latencies, &kept, look), o)
}

// withTarget adds a target to the list of containers where it is none of them but has some below it. These then are the
// target's: what stops one of them stops the target.
func withTarget(containers []container.Container, target container.Container) []container.Container {
	if slices.ContainsFunc(containers, func(c container.Container) bool { return c.Group.Path == target.Group.Path }) {
		return containers
	}
	others := slices.DeleteFunc(slices.Clone(containers),
		func(c container.Container) bool { return cgroup.Below(c.Group.Path, target.Group.Path) })
	return append(others, target)
}

// hostEnv connects package fix to this host. kept records; nil: each recording has a probe of its own. look gives way as a whole process;
// nil: this process has other work.
func hostEnv(ctx context.Context, h *cgroup.Host, env apply.Env, w *writeFlags, latencies slo.Source, kept *probe.Kept,
	look *looking) fix.Env {
	return fix.Env{
		Apply: env,
		Observe: func(ctx context.Context, containers []container.Container, window time.Duration) ([]observe.Observation, error) {
			return observe.Once(ctx, h, containers, window)
		},
		Facts: func(ctx context.Context, containers []container.Container, used map[string]float64) (hoststate.Facts, error) {
			return w.facts(ctx, h, env, containers, used)
		},
		Learn: func(ctx context.Context, target container.Container, length time.Duration) (fix.Learned, error) {
			host, done := learning(h, target, length, kept)
			defer done()
			return host.Learn(ctx, target, length)
		},
		LearnUntil: func(ctx context.Context, target container.Container, length, bound time.Duration) (fix.Learned, time.Duration, error) {
			host, done := learning(h, target, length, kept)
			defer done()
			return host.LearnUntil(ctx, target, length, bound)
		},
		Each: func() func(n int, do func(i int) error) error {
			run := within(ctx)
			if look != nil {
				run = look.replays(ctx)
			}
			return func(n int, do func(i int) error) error {
				defer slowly("forecasting")()
				return run(n, do)
			}
		},
		Waited:    func(paths []string) map[int]time.Duration { return waitedIn(h, paths) },
		SchedExt:  schedExt().Can,
		Latencies: latencies,
		Wait:      clock.Sleep,
	}
}

// learning is this host for a recording of a target, with a line that tells of long steps until done is called.
func learning(h *cgroup.Host, target container.Container, length time.Duration, kept *probe.Kept) (host learn.Host, done func()) {
	containers, err := list(h, "") // its neighbours by name; without them they are cgroups
	if err != nil {
		containers = nil
	}
	line := progress.NewRecording(os.Stderr, progress.OnlyLate, target.Name, length, waitsForCPU())
	return learn.Host{Cgroups: h, Root: infile.Root("/"), All: containers, Doing: line.Doing, Began: line.Began, Probe: kept}, line.Done
}

func showFix(cmd *cobra.Command, result fix.Result, look *looking, failure error, out output) error {
	if errors.As(failure, new(*fix.NotMeasured)) && !result.Kept {
		failure = exitWith{exitNotMeasurable, failure}
	}
	if failure != nil && result.ID == "" {
		return failure
	}
	var err error
	if out.json() {
		err = view.JSON(cmd.OutOrStdout(), result, look.cost())
	} else {
		err = view.Write(cmd.OutOrStdout(), result, look.cost(), outStyle())
	}
	if failure != nil || err != nil {
		return errors.Join(failure, err)
	}
	if result.Verdict == fix.VerdictNotApplied && !out.json() {
		say("nothing was changed")
	}
	if met := result.ObjectiveMet; met != nil && !*met {
		return exitWith{exitAboveBound, errors.New("the objective is not met")}
	}
	if result.StoppedAbove && !(result.Kept && result.Verdict == verdict.Better) { // what helped is no failure
		return exitWith{exitAboveBound, errors.New("the container is still stopped above the bound")}
	}
	return nil
}
