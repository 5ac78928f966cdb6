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
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/cure/slo"
	"github.com/unthrottle/unthrottle/internal/cure/txn/apply"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fix"
	"github.com/unthrottle/unthrottle/internal/ui/report/jsonout"
	"github.com/unthrottle/unthrottle/internal/ui/terminal"
)

func newFix() *cobra.Command {
	var w writeFlags
	var rf remedyFlags
	var yes, asJSON bool
	var sf sloFlags
	var boundText string
	var window time.Duration
	cmd := &cobra.Command{
		Use:     "fix TARGET",
		GroupID: groupChange,
		Short:   "Look, propose, ask, apply, verify, and undo what did not help",
		Long: `Look at a container, propose a remedy, show the exact writes, ask, apply,
look again, and undo what did not help.

Without --slo the effect on latency is not known: the verdict is "unverified",
and the change is kept only if you confirm it (or say --yes). With --slo and
--slo-command your own latency decides. The command prints one number in ms per
line; it is run without a shell, as the user who called unthrottle, before and
after, and has 30 s each time. UNTHROTTLE_SINCE in its environment and {since} in
its words say from when on latencies are wanted. A command that cannot choose, and
always gives the last 20 s, needs --slo-look-back 20s.

Exit code 1: at the end the container is still stopped above the bound.`,
		Args: oneTarget,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := rf.rejectEmptyFlags(cmd); err != nil {
				return err
			}
			request, err := rf.request(cmd)
			if err != nil {
				return err
			}
			if err := checkWindow(window); err != nil {
				return err
			}
			bound, err := parseShare(boundText)
			if err != nil {
				return fmt.Errorf("--bound %s: %w", boundText, err)
			}
			o := fix.Options{
				Wish:   policy.Wish{Request: request, Auto: request.Kind == "", Bound: bound},
				Window: window, Settle: time.Second, Yes: yes,
				Shown: func(p policy.Proposal, planned apply.Result) error {
					return view.Proposal(os.Stderr, p, planned)
				},
			}
			if terminal.Is(os.Stdin) {
				o.Ask = func(question string) (bool, error) { return terminal.Ask(cmd.Context(), os.Stdin, os.Stderr, question) }
			}
			latencies, err := sf.source(cmd, &o)
			if err != nil {
				return err
			}
			result, err := runFix(cmd, &w, args[0], o, latencies)
			return showFix(cmd, result, err, asJSON)
		},
	}
	w.add(cmd)
	w.addLift(cmd)
	rf.add(cmd)
	flags := cmd.Flags()
	flags.Lookup("remedy").Usage = remedy.Names() + " (default: what fits)"
	flags.BoolVarP(&yes, "yes", "y", false, "apply and keep without asking")
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	sf.add(cmd, "the objective your latency is judged by, such as 'p99<20ms' (p50, p90, p95, p99, p99.9, max)",
		"`CMD` that prints your latencies, one number in ms per line")
	flags.StringVar(&boundText, "bound", "1%", "stopped for less than this share of the time is no finding")
	flags.DurationVar(&window, "window", 5*time.Second, "how long to look, before and after")
	return cmd
}

// runFix resolves the target and puts this host behind fix.Run.
func runFix(cmd *cobra.Command, w *writeFlags, target string, o fix.Options, latencies slo.Source) (fix.Result, error) {
	ctx := cmd.Context()
	h, err := openCgroups()
	if err != nil {
		return fix.Result{}, err
	}
	if o.Target, o.All, err = resolve(h, target); err != nil {
		return fix.Result{}, err
	}
	// The list has leaf cgroups only; a target with children joins it.
	if !slices.ContainsFunc(o.All, func(c container.Container) bool { return c.Group.Path == o.Target.Group.Path }) {
		o.All = append(o.All, o.Target)
	}
	env, done, err := w.env(cmd, h)
	if err != nil {
		return fix.Result{}, err
	}
	defer done()
	if terminal.Is(os.Stderr) {
		o.Say = func(text string) { say("%s", text) }
	}
	return fix.Run(ctx, hostEnv(h, env, w, latencies), o)
}

// hostEnv connects package fix to this host.
func hostEnv(h *cgroup.Host, env apply.Env, w *writeFlags, latencies slo.Source) fix.Env {
	return fix.Env{
		Apply: env,
		Observe: func(ctx context.Context, all []container.Container, window time.Duration) ([]observe.Observation, error) {
			return observe.Once(ctx, h, all, window)
		},
		Facts: func(ctx context.Context, all []container.Container, used map[string]float64) (hoststate.Facts, error) {
			return w.facts(ctx, h, env, all, used)
		},
		Latencies: latencies,
		Wait:      clock.Sleep,
	}
}

func showFix(cmd *cobra.Command, result fix.Result, failure error, asJSON bool) error {
	if failure != nil && result.ID == "" {
		return failure
	}
	var err error
	if asJSON {
		err = jsonout.Write(cmd.OutOrStdout(), result)
	} else {
		err = view.Write(cmd.OutOrStdout(), result)
	}
	if failure != nil || err != nil {
		return errors.Join(failure, err)
	}
	if result.StoppedAbove {
		return exitWith{exitAboveBound, errors.New("the container is still stopped above the bound")}
	}
	return nil
}
