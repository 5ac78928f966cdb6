package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
func (a *agent) holdback(ctx context.Context, s *spreading, f finding, held []txn.InForce) {
	log := a.Log.With("container", text.Sanitize(s.Name, 128), "cgroup", boundedPath(s.Cgroup), "transaction", s.Transaction)
	if s.Alone != nil { // an agent before this one ended in the middle of a block
		err := a.putBack(ctx, s)
		switch {
		case err != nil && (stale(err) || !apply.Passing(err)): // it does not fit what is there any more
			log.Error("what was taken back for a block is not in force again", "error", err)
			a.endSpread(s, spreadEnded)
			return
		case err != nil:
			log.Debug("what was taken back for a block is not in force again yet", "error", err)
			s.Next = time.Now().Add(staleRetry)
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
	a.meanwhile(ctx, "a block without a remedy of "+boundedPath(s.Cgroup), longest, func() { pair, err = a.heldBack(ctx, s, f, held) })
	switch {
	case ctx.Err() != nil:
		return
	case apply.Passing(err) && s.Alone == nil:
		s.Kept.Blocks-- // the same block again: another number is mostly not one that is left alone
		s.Next = time.Now().Add(staleRetry)
		return
	case err != nil:
		log.Warn("a block without its remedy could not be measured", "why", err)
		if s.Alone != nil { // soon it is tried again to put it in force
			s.Next = time.Now().Add(staleRetry)
			return
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
func (a *agent) heldBack(ctx context.Context, s *spreading, f finding, others []txn.InForce) (*float64, error) {
	env, o, err := a.fixOf(f, others)
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
	return fix.Holdback(ctx, env, o, s.Measure, off, func(ctx context.Context) error { return a.putBack(ctx, s) })
}

// putBack puts in force again what was taken back for a block, unless it is: an agent that was killed may not have taken it back yet, or
// have put it in force already.
func (a *agent) putBack(ctx context.Context, s *spreading) error {
	held, err := apply.Status(a.Env)
	if err != nil {
		return err
	}
	if h := byTarget(held)[s.Cgroup]; h != nil && !h.Unfinished && h.Remedy == s.Alone.Purpose.Remedy && slices.EqualFunc(h.Changes,
		s.Alone.Changes, func(a, b change.Change) bool { return a.Key() == b.Key() && a.To == b.To }) {
		return a.isBack(s, h.ID, h.Outcome == nil)
	}
	done, err := apply.Apply(ctx, a.Env, s.Alone.Purpose, s.Alone.Changes)
	if err != nil {
		return err
	}
	if done.ID == "" {
		return fmt.Errorf("another program has set what %s sets: see unthrottle status", s.Alone.Purpose.Remedy)
	}
	return a.isBack(s, done.ID, true)
}

// isBack notes that what was taken back for a block is in force again in a transaction, which may lack its outcome.
func (a *agent) isBack(s *spreading, transaction string, lacks bool) error {
	if s.Alone.Outcome != nil && lacks {
		if err := apply.Record(a.Env, transaction, *s.Alone.Outcome); err != nil {
			a.Log.Warn("the outcome of a remedy could not be recorded anew", "error", err)
		}
	}
	s.Transaction, s.Alone = transaction, nil
	return s.write(a.Env.StateDir)
}
