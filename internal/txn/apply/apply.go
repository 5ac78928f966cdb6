package apply

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
)

// undoTime bounds the rollback of a transaction that failed, also when the caller's context has ended.
const undoTime = 30 * time.Second

// Plan says what Apply would write now, in order, and touches nothing. It needs no lock.
func Plan(env Env, purpose txn.Purpose, changes []change.Change) (Result, error) {
	return PlanReplace(env, []txn.Part{{Purpose: purpose, Changes: changes}})
}

// PlanReplace says what Replace would write now, as Plan does for Apply.
func PlanReplace(env Env, parts []txn.Part) (Result, error) {
	res := newResult()
	s, err := journal.Load(env.StateDir)
	if err != nil {
		return res, err
	}
	if d := damagedOf(env.StateDir, s); d != nil {
		res.Warnings = append(res.Warnings, d.Error())
	}
	p, err := world{env}.prepare(context.Background(), s, parts)
	if err != nil {
		return res, err
	}
	for _, c := range p.steps {
		res.Writes = append(res.Writes, writeOf(c))
	}
	res.Verdict = verdictPlanned
	return res, nil
}

// Apply makes the changes as one transaction: checked as a whole before the first write, each write in the journal
// before it is done, in an order that the kernel accepts, read back. If one fails, Apply rolls all back (Verdict
// "undone") and returns the error. It first rolls back a transaction that an earlier writer left unfinished.
//
// Errors before anything was written: *journal.Locked, *journal.Newer, *OutOfScope, *Stale, *cgroup.Error.
func Apply(ctx context.Context, env Env, purpose txn.Purpose, changes []change.Change) (Result, error) {
	return Replace(ctx, env, []txn.Part{{Purpose: purpose, Changes: changes}})
}

// Passing tells of an error of a write that another moment may not have: another writer is at work, or the journal's disk is full. One
// after which something is left in force is none, nor what the kernel refuses, which knows ENOSPC too.
func Passing(err error) bool {
	if errors.As(err, new(*NotRestored)) || errors.As(err, new(*cgroup.Error)) {
		return false
	}
	return errors.As(err, new(*Stale)) || errors.As(err, new(*journal.Locked)) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

// execute does the steps, looks at what came of it, and commits.
func (r *run) execute(ctx context.Context, begun []journal.Begin, p prepared) error {
	r.ids = map[change.Key]uint64{}
	owner := map[change.Key]string{}
	for i, holds := range p.holds {
		for _, h := range holds {
			r.ids[h.Key()] = h.ID
			if owner[h.Key()] == "" {
				owner[h.Key()] = begun[i].Txn
			}
		}
	}
	start := time.Now()
	for _, c := range p.steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.step(ctx, owner[c.Key()], c); err != nil && !r.ignorableStepError(c, err) {
			return err
		}
	}
	r.res.Took = time.Since(start)
	for _, holds := range p.holds {
		if err := r.verify(holds); err != nil {
			return err
		}
	}
	commit := journal.Commit{Txn: begun[0].Txn, Time: r.now(), Replaced: p.replaced}
	for _, b := range begun[1:] {
		commit.Also = append(commit.Also, b.Txn)
	}
	return r.j.Append(true, journal.Record{Commit: &commit})
}

// undo rolls failed transactions back and returns the error that made them fail.
func (r *run) undo(ctx context.Context, begun []journal.Begin, cause error) error {
	r.TellUndoing(ctx, begun[0].Remedy, string(begun[0].Target))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	var ids []string
	for _, b := range begun {
		ids = append(ids, b.Txn)
	}
	complete, err := r.release(ctx, ids, "undone: "+cause.Error())
	switch {
	case err != nil:
		r.res.Verdict = verdictHalf
		return fmt.Errorf("%w; and its rollback failed: %w: run unthrottle restore", cause, err)
	case !complete:
		r.res.Verdict = verdictHalf
		return fmt.Errorf("%w; and the rollback is incomplete: run unthrottle restore", cause)
	}
	r.res.Verdict = verdictUndone
	return cause
}

// begin makes the first record of a transaction, with an id that neither the journal nor a begun one has.
func (r *run) begin(part txn.Part, holds []journal.Hold, begun []journal.Begin) (journal.Begin, error) {
	purpose := part.Purpose
	id, err := newID(r.now(), r.chanceOf(), func(id string) bool {
		_, taken := r.j.State().Txn(id)
		return taken || slices.ContainsFunc(begun, func(b journal.Begin) bool { return b.Txn == id })
	})
	if err != nil {
		return journal.Begin{}, err
	}
	b := journal.Begin{Txn: id, Time: r.now(), By: r.madeBy(part), PID: os.Getpid(), Boot: r.BootID,
		Target: journal.Path(purpose.Target.Path), Name: purpose.Target.Name, Remedy: purpose.Remedy, Parameters: purpose.Parameters,
		Trial: r.trialOf(id, part), Holds: holds}
	if purpose.Expected != nil {
		if b.Expected, err = json.Marshal(purpose.Expected); err != nil {
			return journal.Begin{}, err
		}
	}
	return b, nil
}

// maxDraws bounds the ids drawn for one transaction. With a million ids of the same second in the journal, of 2^24,
// all are taken once in 10^39 cases: only a source of chance that repeats itself gets there.
const maxDraws = 32

// newID names a transaction: its time, for people, and chance, drawn again while the id is taken, for uniqueness.
func newID(now time.Time, chance io.Reader, taken func(id string) bool) (string, error) {
	var salt [3]byte
	for range maxDraws {
		if _, err := io.ReadFull(chance, salt[:]); err != nil {
			return "", fmt.Errorf("drawing an id for the transaction: %w", err)
		}
		id := now.UTC().Format("20060102-150405") + "-" + hex.EncodeToString(salt[:])
		if !taken(id) {
			return id, nil
		}
	}
	return "", fmt.Errorf("drawing an id for the transaction: %d of %d drawn are in the journal already: the random numbers "+
		"of this host repeat; try again in a second", maxDraws, maxDraws)
}

// reserveFor is the room in the journal that the transaction and its rollback need. With it a full disk shows before the
// first write.
func reserveFor(p prepared) int64 {
	const perStep, perTxn = 1500, 32 << 10
	room := int64(perTxn)
	for _, h := range slices.Concat(p.holds...) {
		room += 1000 + 4*int64(len(h.Path)+len(h.To)+len(h.Original)+len(h.Why))
	}
	for _, c := range p.steps {
		room += 3 * (perStep + 4*int64(len(c.Path)+len(c.From)+len(c.To)))
	}
	return room
}

// Recover rolls back what a writer that died left half applied, half restored or on trial. Commands that plan call it
// before they read the host, because Apply would call it too, and the plan would then be stale.
func Recover(ctx context.Context, env Env) (Result, error) {
	r, err := start(ctx, env)
	if err != nil {
		return newResult(), err
	}
	defer r.j.Close()
	d := r.warnDamaged()
	err = r.recover(ctx)
	r.res.Verdict = VerdictRestored
	switch {
	case err != nil || len(r.left) > 0:
		r.res.Verdict = verdictNotRestored
	case len(r.res.Writes) == 0:
		r.res.Verdict = VerdictNothing
	case d != nil:
		r.res.Verdict = verdictPartly
	}
	return *r.res, err
}

// recover finishes what is unfinished and inside the scope.
func (r *run) recover(ctx context.Context) error {
	var ids []string
	reason := "trial abandoned"
	r.reasons = map[string]string{}
	for _, t := range r.j.State().Open() {
		trial := r.trial(t)
		if t.Held() && !trial.Lost() {
			continue
		}
		if err := r.allInScope(t); err != nil {
			r.warn("transaction %s was interrupted and is left as it is: %v", t.Txn, err)
			continue
		}
		if !trial.Lost() {
			reason = "interrupted"
			r.reasons[t.Txn] = reason
		} else {
			r.reasons[t.Txn] = "trial abandoned"
			r.warn("%s of %.200q was on trial, and %s", t.Remedy, string(t.Target), trial.Why())
		}
		ids = append(ids, t.Txn)
	}
	if len(ids) == 0 {
		return nil
	}
	r.warn("%d interrupted transactions were rolled back first; their writes are listed too", len(ids))
	complete, err := r.release(ctx, ids, reason)
	if err == nil && !complete {
		// What is left stands in Skipped and stays open; it need not concern what is asked for now.
		r.warn("the rollback of an interrupted transaction is incomplete; unthrottle status shows it")
	}
	return err
}
