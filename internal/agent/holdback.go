package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/fix"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// alone is a transaction that was taken back for a block: what puts it in force again, also by the agent after this one.
type alone struct {
	Purpose txn.Purpose     `json:"purpose"`
	Changes []change.Change `json:"changes"`
	Outcome *txn.Outcome    `json:"outcome"`
}

// holdback leaves a container alone for a block where its turn has come, one in twenty, and takes back for good what no longer
// brings half of what it won by.
func (a *agent) holdback(ctx context.Context, s *spreading, f finding) {
	log := a.Log.With("container", text.Sanitize(s.Name, 128), "cgroup", boundedPath(s.Cgroup), "transaction", s.Transaction)
	if s.Alone != nil { // an agent before this one ended in the middle of a block
		if err := a.putBack(ctx, s); err != nil {
			log.Error("what was taken back for a block is not in force again", "error", err)
			a.endSpread(s, spreadEnded)
			return
		}
		log.Info("what was taken back for a block is in force again")
	}
	s.Next = time.Now().Add(s.Gap)
	due := s.Kept.Plan.Holdback(s.Kept.Blocks)
	s.Kept.Blocks++
	if !due {
		a.keepSpread(s)
		return
	}
	var pair *float64
	var err error
	const longest = 10 * time.Minute
	a.spreadFigures.block(0)
	a.meanwhile(ctx, "a block without a remedy of "+boundedPath(s.Cgroup), longest, func() { pair, err = a.heldBack(ctx, s, f) })
	switch {
	case ctx.Err() != nil:
		return
	case stale(err):
		s.Next = time.Now().Add(staleRetry)
		return
	case err != nil:
		log.Warn("a block without its remedy could not be measured", "why", err)
		if s.Alone != nil {
			return // the next round tries again to put it in force
		}
	case pair != nil:
		*s.Kept = s.Kept.Add(*pair)
	}
	if s.Kept.Still() {
		log.Debug("a block without its remedy", "came", s.Kept.Words())
		a.keepSpread(s)
		return
	}
	log.Info("no longer brings half of what was measured: taken back", "came", s.Kept.Words())
	if _, err := apply.Restore(ctx, a.Env, apply.Selector{IDs: []string{s.Transaction}}); err != nil {
		log.Error("it could not be taken back", "error", err)
		return
	}
	now := time.Now()
	a.spreadEnds.add(f.observation.Container, spreadUseless, "taken back, as it no longer brings half of what was measured: "+
		s.Kept.Words(), now)
	a.chooser.hadTrial(s.Cgroup, hadTrial{now, s.UsedCPUs})
	a.endSpread(s, spreadUseless)
}

// keepSpread keeps the state of a trial.
func (a *agent) keepSpread(s *spreading) {
	if err := s.write(a.Env.StateDir); err != nil {
		a.Log.Error("the state of a trial cannot be kept", "error", err)
	}
}

// heldBack measures the container with its remedy and, for a block, without it.
func (a *agent) heldBack(ctx context.Context, s *spreading, f finding) (*float64, error) {
	env, o, err := a.fixOf(f, nil)
	if err != nil {
		return nil, err
	}
	off := func(ctx context.Context) error {
		held, err := apply.Status(a.Env)
		if err != nil {
			return err
		}
		h := byTarget(held)[s.Cgroup]
		if h == nil || h.ID != s.Transaction {
			return errors.New("it is not in force any more")
		}
		s.Alone = &alone{Changes: h.Changes, Outcome: h.Outcome, Purpose: txn.Purpose{Target: txn.Target{Path: h.Target, Name: h.Name},
			Remedy: h.Remedy, Parameters: h.Parameters, Expected: h.Expected}}
		if err := s.write(a.Env.StateDir); err != nil { // before anything is taken back
			s.Alone = nil
			return err
		}
		_, err = apply.Restore(ctx, a.Env, apply.Selector{IDs: []string{s.Transaction}, Again: true})
		return err
	}
	return fix.Holdback(ctx, env, o, off, func(ctx context.Context) error { return a.putBack(ctx, s) })
}

// putBack puts in force again what was taken back for a block.
func (a *agent) putBack(ctx context.Context, s *spreading) error {
	done, err := apply.Apply(ctx, a.Env, s.Alone.Purpose, s.Alone.Changes)
	if err != nil {
		return err
	}
	if done.ID == "" {
		return fmt.Errorf("another program has set what %s sets: see unthrottle status", s.Alone.Purpose.Remedy)
	}
	if s.Alone.Outcome != nil {
		if err := apply.Record(a.Env, done.ID, *s.Alone.Outcome); err != nil {
			a.Log.Warn("the outcome of a remedy could not be recorded anew", "error", err)
		}
	}
	s.Transaction, s.Alone = done.ID, nil
	return s.write(a.Env.StateDir)
}
