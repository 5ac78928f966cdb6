package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/fleet/engine"
	"github.com/unthrottle/unthrottle/fleet/report"
	"github.com/unthrottle/unthrottle/internal/demand/packing"
	"github.com/unthrottle/unthrottle/internal/text"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/jsonout"
)

// usual is a plan without flags: any number of moves, and a risk of 0.1 %.
var usual = packing.Options{Risk: 0.001, Moves: -1}

func newPlan() *cobra.Command {
	var o shared
	var risk, reserve string
	var moves int
	var secondaries []string
	cmd := &cobra.Command{
		Use:   "plan DIR|s3://BUCKET/PREFIX",
		Short: "Which container on which host, so that few hosts are used",
		Long: `Read what 'unthrottle export' and agents wrote below DIR, and place the containers
that run now on few hosts of their cluster: by the demand that a host's containers
have together, at each time of the day, and by memory. A host is short of CPUs for
about the risk at most, by an approximation. With --moves the plan keeps to that many moves, those first
that empty a host for least.

The risk holds if the time to come is like that of the rows; --reserve is for what is not.

It moves nothing. Rules of affinity are not in the rows.`,
		Args: oneFolder("plan"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			share, err := parseShare("risk", risk, 50)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("moves") && moves < 0 {
				return errors.New("--moves: give 0 or more, or leave it out for any number")
			}
			secondary, err := matching(secondaries)
			if err != nil {
				return err
			}
			var kept float64
			if cmd.Flags().Changed("reserve") {
				if kept, err = parseShare("reserve", reserve, 90); err != nil {
					return err
				}
			}
			may := report.PlanOptions{Options: packing.Options{Risk: share, Reserve: kept, Moves: moves}, Secondary: secondary,
				Clock: time.Now}
			return makePlan(cmd.Context(), args[0], o, may, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	o.add(flags)
	flags.IntVar(&moves, "moves", usual.Moves, "move at most `N` containers (default: any number)")
	flags.StringArrayVar(&secondaries, "secondary", nil,
		"plan the services that match `PATTERN` as if they yielded to all others, such as 'batch/*'; may be given again")
	flags.StringVar(&risk, "risk", fmt.Sprintf("%g%%", 100*usual.Risk),
		"a host's containers may want more CPUs than it has for this `SHARE` of the time")
	flags.StringVar(&reserve, "reserve", "",
		"leave this `SHARE` of each host's CPUs and memory alone, such as 10%, for what grows and for hosts that fail")
	flags.Lookup("moves").DefValue = "0" // the text says what it is
	return cmd
}

// matching tells which services match one of some patterns: the whole name, or its first parts. "batch" and "batch/*"
// match "batch/report/app".
func matching(patterns []string) (func(service string) bool, error) {
	for _, p := range patterns {
		if _, err := path.Match(p, ""); err != nil || p == "" {
			return nil, fmt.Errorf("--secondary %s: it is no pattern of a service's name, such as 'batch/*'", text.Quoted(p))
		}
	}
	return func(service string) bool {
		for _, p := range patterns {
			parts := strings.SplitN(service, "/", strings.Count(p, "/")+2)
			if ok, _ := path.Match(p, strings.Join(parts[:min(len(parts), strings.Count(p, "/")+1)], "/")); ok {
				return true
			}
		}
		return false
	}, nil
}

// makePlan makes and writes a plan.
func makePlan(ctx context.Context, from string, o shared, may report.PlanOptions, out io.Writer) error {
	var d view.Plan
	err := ask(ctx, from, &o, func(e engine.Engine, rows report.Options) (err error) {
		d, err = report.MakePlan(ctx, e, rows, may)
		return err
	})
	if err != nil {
		return err
	}
	if o.json {
		return jsonout.Write(out, "fleet_plan", d)
	}
	return view.WritePlan(out, d, o.style())
}
