package rebalance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	"github.com/unthrottle/unthrottle/placement"
)

// maxOverlap is how long two exclusive sets may overlap, where they must.
const maxOverlap = 100 * time.Millisecond

// DefaultPause is how long to wait between two moves: the kernel moves threads
// when they next run, and caches fill again.
const DefaultPause = time.Second

// Env is what moving touches; tests put a model of the kernel behind it.
type Env struct {
	Apply apply.Env
	// Facts looks at the host.
	Facts func(ctx context.Context) (hoststate.Facts, error)
	// Wait waits between moves.
	Wait func(ctx context.Context, d time.Duration) error
	// Pager moves the memory of containers that asked for it after their CPUs;
	// nil: it is left where it is.
	Pager Pager
}

// Options of a run.
type Options struct {
	Moves []placement.Move
	// Pause between moves; 0: DefaultPause.
	Pause time.Duration
	// Began and Done, if not nil, are told of each move.
	Began func(placement.Move)
	Done  func(Moved)
}

// Moved is a move and what came of it.
type Moved struct {
	placement.Move
	// ID is the transaction that is in force for the container now.
	ID string
	// Took is the time of the writes; of an overlap its upper bound.
	Took time.Duration
	// Result has the writes.
	Result apply.Result
}

// Run carries out moves in their order. It returns those done, also with an
// error: the moves after it are not done, and what was done is in force.
func Run(ctx context.Context, env Env, o Options) ([]Moved, error) {
	pause := o.Pause
	if pause == 0 {
		pause = DefaultPause
	}
	r := &runner{env: env}
	for i := 0; i < len(o.Moves); {
		if i > 0 {
			if err := env.Wait(ctx, pause); err != nil {
				return r.done, err
			}
		}
		n := together(o.Moves[i:])
		for _, m := range o.Moves[i : i+n] {
			if o.Began != nil {
				o.Began(m)
			}
		}
		before := len(r.done)
		err := r.step(ctx, o.Moves[i:i+n])
		for _, d := range r.done[before:] {
			if o.Done != nil {
				o.Done(d)
			}
		}
		if err != nil {
			return r.done, fmt.Errorf("moving %.200q to %s: %w", o.Moves[i].Container, o.Moves[i].To, err)
		}
		i += n
	}
	return r.done, nil
}

// together is how many of the first moves have to happen at one moment: those
// that overlap until the next one is done.
func together(moves []placement.Move) int {
	n := 1
	for n < len(moves) && moves[n-1].Overlaps {
		n++
	}
	return n
}

type runner struct {
	env  Env
	done []Moved
	// perWrite is the longest that a write of this run took on the mean of its
	// transaction.
	perWrite time.Duration
}

// moving is a container that is to move: what is in force for it, and whether its memory follows.
type moving struct {
	remedy.Held
	follows bool
}

// step does the moves that belong to one moment.
func (r *runner) step(ctx context.Context, moves []placement.Move) error {
	facts, err := r.env.Facts(ctx)
	if err != nil {
		return err
	}
	held, err := r.asPlanned(facts, moves)
	if err != nil {
		return err
	}
	for i, m := range moves {
		if !held[i].follows {
			continue
		}
		// What it allocates from now on may be where it will run.
		if err := widen(ctx, r.env, facts, m.Container, m.To); err != nil {
			return err
		}
		if facts, err = r.env.Facts(ctx); err != nil {
			return err
		}
	}
	if err := r.write(ctx, facts, moves, held); err != nil {
		return err
	}
	for i, m := range moves {
		if err := r.verify(held[i].CPUSet, m.To); err != nil {
			return err
		}
		if held[i].follows {
			if _, err := Follow(ctx, r.env, r.env.Pager, m.Container); err != nil {
				return fmt.Errorf("its CPUs are moved, its memory is not: %w", err)
			}
		}
	}
	return nil
}

// asPlanned gives what is in force for each container, where the host is as the moves were planned for.
func (r *runner) asPlanned(facts hoststate.Facts, moves []placement.Move) ([]moving, error) {
	stays := Immovable(r.env.Apply.FS, r.env.Apply.Proc, facts.Held)
	all := make([]moving, len(moves))
	for i, m := range moves {
		h, ok, err := remedy.Placing(facts, m.Container)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, errors.New("nothing of ours is in force for it any more: plan again")
		}
		if at := h.Placed(); !at.Equals(m.From) {
			return nil, fmt.Errorf("it is on %s and not on %s as planned: plan again", at, m.From)
		}
		if why := stays[m.Container]; why != "" {
			return nil, fmt.Errorf("it is left alone: %s", why)
		}
		if all[i].Held = h; r.env.Pager != nil {
			if all[i].follows, err = remedy.FollowsMemory(facts, m.Container); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// write moves the containers in one transaction and notes what was done.
func (r *runner) write(ctx context.Context, facts hoststate.Facts, moves []placement.Move, held []moving) error {
	var parts []txn.Part
	writes := 0
	for i, m := range moves {
		var with []string
		for j := range held {
			if j != i {
				with = append(with, held[j].ID)
			}
		}
		plan, err := remedy.MoveTo(facts, held[i].ID, m.To, with...)
		if err != nil {
			return err
		}
		parts = append(parts, plan.Part())
		writes += len(plan.Changes)
	}
	if len(moves) > 1 {
		if err := r.mayOverlap(facts, held, writes); err != nil {
			return err
		}
	}
	res, err := apply.Replace(ctx, r.env.Apply, parts)
	if err != nil {
		return err
	}
	if n := len(res.Writes); n > 0 {
		r.perWrite = max(r.perWrite, res.Took/time.Duration(n))
	}
	if len(moves) > 1 && res.Took > maxOverlap {
		res.Warnings = append(res.Warnings, fmt.Sprintf("exclusive sets overlapped for up to %v", res.Took.Round(time.Millisecond)))
	}
	for i, m := range moves {
		done := Moved{Move: m, Took: res.Took}
		if i == 0 {
			done.Result = res
		}
		if i < len(res.IDs) {
			done.ID = res.IDs[i]
		}
		r.done = append(r.done, done)
	}
	return nil
}

// mayOverlap refuses an exchange that could take too long, or that the kernel
// forbids: exclusive cpusets of v1 and partitions of v2 may not overlap.
func (r *runner) mayOverlap(facts hoststate.Facts, held []moving, writes int) error {
	for _, h := range held {
		s := facts.Sets[h.CPUSet]
		if s.Exclusive || s.InPartition() || !s.ExclusiveCPUs.IsEmpty() {
			return errors.New("no free CPU is left to step aside to, and exclusive cpusets must not overlap")
		}
	}
	if could := time.Duration(2*writes) * r.perWrite; could > maxOverlap {
		return fmt.Errorf("no free CPU is left to step aside to, and an overlap could last %v, more than %v: the journal's disk is slow",
			could.Round(time.Millisecond), maxOverlap)
	}
	return nil
}

// verify checks that the CPUs are in force, and that every thread runs inside
// what its cpuset has.
func (r *runner) verify(set string, to cpuset.CPUSet) error {
	_, has, err := cgroup.CPUs(r.env.Apply.FS, set)
	switch {
	case errors.Is(err, cgroup.ErrNoCgroup):
		return nil // it ended
	case err != nil:
		return err
	case !to.IsSubsetOf(has):
		return fmt.Errorf("of %s only %s are in force: nothing more is moved", to, has.Intersection(to))
	}
	outside := 0
	err = cgroup.Walk(r.env.Apply.FS, cgroup.CPUSet, set, func(path string) error {
		tids, err := r.env.Apply.FS.Threads(cgroup.CPUSet, path)
		if err != nil {
			return gone(err)
		}
		for _, tid := range tids {
			allowed, err := r.env.Apply.Proc.Allowed(tid)
			if err == nil && !allowed.IsSubsetOf(has) {
				outside++
			}
		}
		return nil
	})
	if err == nil && outside > 0 {
		err = fmt.Errorf("%d of its threads may still run outside %s: nothing more is moved", outside, has)
	}
	return err
}
