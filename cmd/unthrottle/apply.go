package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/apply"
	"github.com/unthrottle/unthrottle/fix"
	"github.com/unthrottle/unthrottle/policy"
	"github.com/unthrottle/unthrottle/remedy"
	"github.com/unthrottle/unthrottle/report"
	"github.com/unthrottle/unthrottle/topology"
)

// remedyFlags are the settings of a remedy.
type remedyFlags struct {
	kind, reserve   string
	cpus            int
	factor, to      float64
	burst, period   time.Duration
	weightFromLimit bool
}

func (f *remedyFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.kind, "remedy", "", "pin, burst, weight or raise")
	flags.IntVar(&f.cpus, "cpus", 0, "pin: how many exclusive CPUs (default: the limit, rounded up)")
	flags.StringVar(&f.reserve, "reserve", "", "pin: `CPUS` that are never given away, such as 0-1 (default: the lowest core; one CPU below 4 CPUs)")
	flags.DurationVar(&f.burst, "burst", 0, "burst: CPU time that may be saved up, such as 50ms (default: as much as the quota)")
	flags.DurationVar(&f.period, "period", 0, "burst: another period, the limit staying the same")
	flags.Float64Var(&f.factor, "factor", 0, "raise: times the limit (default 2)")
	flags.Float64Var(&f.to, "to", 0, "raise: the new limit in CPUs")
	flags.BoolVar(&f.weightFromLimit, "weight-from-limit", false, "weight: set the weight to that of the limit")
	_ = cmd.RegisterFlagCompletionFunc("remedy", cobra.FixedCompletions([]string{"pin", "burst", "weight", "raise"}, cobra.ShellCompDirectiveNoFileComp))
}

// request checks the flags; "" as remedy is the caller's to judge.
func (f *remedyFlags) request() (remedy.Request, error) {
	r := remedy.Request{Kind: remedy.Kind(f.kind), CPUs: f.cpus, Burst: f.burst, Period: f.period,
		Factor: f.factor, To: f.to, WeightFromLimit: f.weightFromLimit}
	known := []string{}
	for _, k := range remedy.Kinds() {
		known = append(known, string(k))
		if k == r.Kind {
			known = nil
			break
		}
	}
	switch {
	case known != nil && f.kind != "":
		return r, fmt.Errorf("--remedy %s: choose %s", f.kind, strings.Join(known, ", "))
	case f.cpus < 0:
		return r, fmt.Errorf("--cpus %d: give a positive number of CPUs", f.cpus)
	case f.factor < 0 || f.to < 0:
		return r, errors.New("--factor and --to must be positive")
	case f.burst < 0 || f.period < 0:
		return r, errors.New("--burst and --period must be positive")
	}
	if f.reserve != "" {
		set, err := topology.ParseList(f.reserve)
		if err != nil {
			return r, fmt.Errorf("--reserve %s: %w", f.reserve, err)
		}
		r.Reserve = &set
	}
	return r, nil
}

func newApply() *cobra.Command {
	var w writeFlags
	var rf remedyFlags
	var dryRun, asJSON bool
	var window time.Duration
	cmd := &cobra.Command{
		Use:     "apply TARGET --remedy pin|burst|weight|raise",
		GroupID: groupChange,
		Short:   "Apply one remedy to one container",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if rf.kind == "" {
				return errors.New("--remedy is missing: choose pin, burst, weight or raise ('unthrottle fix' chooses itself)")
			}
			request, err := rf.request()
			if err != nil {
				return err
			}
			if !dryRun {
				o := fix.Options{Wish: policy.Wish{Request: request}, Window: window, Settle: settle, Plain: true}
				result, err := runFix(cmd, &w, args[0], "apply", o, nil)
				return show(cmd, result.Result, err, asJSON, false)
			}
			h, err := openCgroups()
			if err != nil {
				return err
			}
			target, all, err := resolve(h, args[0])
			if err != nil {
				return err
			}
			env, done, err := w.env(cmd.Context(), h, "apply")
			if err != nil {
				return err
			}
			defer done()
			facts, err := w.facts(cmd.Context(), h, env, all, nil)
			if err != nil {
				return err
			}
			plan, err := remedy.Make(facts, target, request)
			if err != nil {
				return err
			}
			result, err := apply.Plan(env, plan.Txn(), plan.Changes)
			result.Skipped = append(result.Skipped, plan.Skipped...)
			result.Warnings = append(result.Warnings, plan.Warnings...)
			return show(cmd, result, err, asJSON, true)
		},
	}
	w.add(cmd)
	w.addLift(cmd)
	rf.add(cmd)
	cmd.Flags().BoolVarP(&dryRun, "dry-run", "n", false, "print the exact writes and change nothing")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().DurationVar(&window, "window", time.Second, "how long to look, before and after, for the record of the effect")
	return cmd
}

// settle is how long to wait after applying before looking again: the periods
// under way then have ended.
const settle = 500 * time.Millisecond

// show prints a result, also that of a failure: what was written by then is
// the first thing one wants to know.
func show(cmd *cobra.Command, result apply.Result, failure error, asJSON, planned bool) error {
	if failure != nil && len(result.Writes) == 0 {
		return failure
	}
	var err error
	switch {
	case asJSON:
		err = printJSON(cmd.OutOrStdout(), result)
	case planned:
		err = report.Plan(cmd.OutOrStdout(), result)
	default:
		err = report.Done(cmd.OutOrStdout(), result)
	}
	return errors.Join(failure, err)
}
