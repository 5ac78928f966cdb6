package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/clock"
	"github.com/unthrottle/unthrottle/internal/placing/rebalance"
	view "github.com/unthrottle/unthrottle/internal/ui/report/defrag"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/jsonout"
	"github.com/unthrottle/unthrottle/topology"
)

// defaultMoves bounds one run of defrag; the next run goes on.
const defaultMoves = 16

func newDefrag() *cobra.Command {
	var w writeFlags
	var dryRun bool
	var out output
	var maxMoves int
	var pause time.Duration
	var reserve string
	cmd := &cobra.Command{
		Use:     "defrag",
		GroupID: groupChange,
		Short:   "Move pinned containers so that fewer cross sockets, NUMA nodes and L3s",
		Long: `Move the containers that unthrottle pinned or narrowed so that fewer of them
cross sockets, NUMA nodes and L3 caches: the fewest moved CPUs for the crossings
recovered. One move at a time, checked, with a pause; no thread is ever without
a CPU. 'unthrottle restore' puts everything back.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := rejectEmptyFlags(cmd, "reserve"); err != nil {
				return err
			}
			if maxMoves <= 0 {
				return fmt.Errorf("--max-moves %d: must be above 0", maxMoves)
			}
			if pause <= 0 { // 0 would be the default
				return fmt.Errorf("--pause %v: must be above 0", pause)
			}
			var kept *cpuset.CPUSet
			if reserve != "" {
				set, err := topology.ParseList(reserve)
				if err != nil {
					return fmt.Errorf("--reserve %s: %w", reserve, err)
				}
				kept = &set
			}
			h, err := openCgroups()
			if err != nil {
				return err
			}
			if _, err := existingPrefix(h, "scope", w.scope); err != nil {
				return err
			}
			env, done, err := w.env(cmd, h)
			if err != nil {
				return err
			}
			defer done()
			moving := rebalance.Env{Apply: env, Facts: w.hostFacts(h, env), Wait: clock.Sleep, Pager: rebalance.HostPager{}}
			result, err := rebalance.Defragment(cmd.Context(), moving, rebalance.DefragmentOptions{
				Plan: dryRun, Reserve: kept, MaxMoves: maxMoves, Pause: pause, Say: func(text string) { say("%s", text) },
			})
			if err := showDefrag(cmd, view.New(result), err, out); err != nil {
				return err
			}
			if len(result.Steps) > 0 {
				if dryRun {
					sayNext(out, forReal(cmd, args))
				} else {
					sayNext(out, w.next().Status())
				}
			}
			return nil
		},
	}
	w.add(cmd)
	shareSwitch(cmd, &dryRun, "dry-run", "")
	shareCount(cmd, &maxMoves, "max-moves", defaultMoves, "; the next call goes on")
	timeVar(cmd, &pause, "pause", rebalance.DefaultPause, "how long to wait between two moves")
	shareString(cmd, &reserve, "reserve", "", " (default: the lowest core; one CPU below 4 CPUs)")
	out.add(cmd)
	return cmd
}

func showDefrag(cmd *cobra.Command, result view.Repair, failure error, out output) error {
	if failure != nil && len(result.Moves) == 0 {
		return failure
	}
	var err error
	if out.json() {
		err = jsonout.Write(cmd.OutOrStdout(), "defrag", result)
	} else {
		err = view.Write(cmd.OutOrStdout(), result, outStyle())
	}
	return errors.Join(failure, err)
}
