package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/clock"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/cure/rebalance"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/cure/txn/apply"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report"
	"github.com/unthrottle/unthrottle/placement"
	"github.com/unthrottle/unthrottle/topology"
)

// defaultMoves bounds a run of defrag: what is left is left for the next one.
const defaultMoves = 16

func newDefrag() *cobra.Command {
	var w writeFlags
	var plan, asJSON bool
	var maxMoves int
	var pause time.Duration
	var reserve string
	cmd := &cobra.Command{
		Use:     "defrag",
		GroupID: groupChange,
		Short:   "Move pinned containers so that fewer cross sockets, NUMA nodes and L3s",
		Long: `Move the containers that unthrottle pinned or narrowed so that fewer of them
cross sockets, NUMA nodes and L3 caches: the fewest moved CPUs for the crossings
recovered. One move at a time, checked, with a pause; no thread is ever without a
CPU. 'unthrottle restore' takes everything back as ever.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := notEmpty(cmd, "reserve"); err != nil {
				return err
			}
			if maxMoves <= 0 {
				return fmt.Errorf("--max-moves %d: must be above 0", maxMoves)
			}
			if pause < 0 {
				return fmt.Errorf("--pause %v: must not be below 0", pause)
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
			env, done, err := w.env(cmd, h)
			if err != nil {
				return err
			}
			defer done()
			d := defragmenter{w: &w, h: h, env: env, reserve: kept}
			result, err := d.run(cmd.Context(), plan, maxMoves, pause)
			return showDefrag(cmd, result, err, asJSON)
		},
	}
	w.add(cmd)
	flags := cmd.Flags()
	flags.BoolVarP(&plan, "plan", "n", false, "print the moves and change nothing")
	flags.IntVar(&maxMoves, "max-moves", defaultMoves, "at most `N` moves")
	flags.DurationVar(&pause, "pause", rebalance.DefaultPause, "how long to wait between two moves")
	flags.StringVar(&reserve, "reserve", "", "`CPUS` that are never given away, such as 0-1 (default: the lowest core; one CPU below 4 CPUs)")
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// defragmenter repairs this host.
type defragmenter struct {
	w       *writeFlags
	h       *cgroup.Host
	env     apply.Env
	reserve *cpuset.CPUSet
}

func (d *defragmenter) facts(ctx context.Context) (hoststate.Facts, error) {
	all, err := list(d.h, "")
	if err != nil {
		return hoststate.Facts{}, err
	}
	return d.w.facts(ctx, d.h, d.env, all, nil)
}

// run plans and, unless only a plan is wanted, moves.
func (d *defragmenter) run(ctx context.Context, plan bool, maxMoves int, pause time.Duration) (report.Defrag, error) {
	out := report.Defrag{Moves: []report.DefragMove{}, LeftAlone: []report.LeftAlone{}, Planned: plan}
	if !plan {
		recovered, err := apply.Recover(ctx, d.env)
		if err != nil {
			return out, err
		}
		for _, text := range recovered.Warnings {
			say("%s", text)
		}
	}
	facts, err := d.facts(ctx)
	if err != nil {
		return out, err
	}
	names := map[string]string{}
	for _, held := range facts.Held {
		names[held.Target] = held.Name
	}
	state, err := remedy.State(facts, d.reserve, rebalance.Immovable(d.env.FS, d.env.Proc, facts.Held))
	if err != nil {
		return out, err
	}
	node, _, err := placement.NewNode(state)
	if err != nil {
		return out, err
	}
	out.Before = report.QualityOf(node.Score())
	for _, c := range state.Containers {
		if c.Stays != "" {
			out.LeftAlone = append(out.LeftAlone, report.LeftAlone{Path: text.EscapePath(c.Name), Name: names[c.Name], Why: c.Stays})
		}
	}
	moves := node.Repair(placement.Budget{Moves: maxMoves})
	for _, m := range moves {
		out.Moves = append(out.Moves, report.MoveOf(m, names[m.Container]))
	}
	out.After = report.QualityOf(node.Score())
	if plan || len(moves) == 0 {
		return out, nil
	}
	done, err := rebalance.Run(ctx, rebalance.Env{Apply: d.env, Facts: d.facts, Wait: clock.Sleep, Pager: rebalance.HostPager{}}, rebalance.Options{Moves: moves, Pause: pause})
	for i, m := range done {
		out.Moves[i].Done, out.Moves[i].ID, out.Moves[i].Seconds = true, m.ID, m.Took.Seconds()
		for _, text := range m.Result.Warnings {
			say("%s: %s", names[m.Container], text)
		}
	}
	if now, nowErr := d.facts(ctx); nowErr == nil {
		if state, stateErr := remedy.State(now, d.reserve, nil); stateErr == nil {
			if node, _, nodeErr := placement.NewNode(state); nodeErr == nil {
				out.After = report.QualityOf(node.Score())
			}
		}
	}
	return out, err
}

func showDefrag(cmd *cobra.Command, result report.Defrag, failure error, asJSON bool) error {
	if failure != nil && len(result.Moves) == 0 {
		return failure
	}
	var err error
	if asJSON {
		err = printJSON(cmd.OutOrStdout(), result)
	} else {
		err = report.DefragText(cmd.OutOrStdout(), result)
	}
	return errors.Join(failure, err)
}
