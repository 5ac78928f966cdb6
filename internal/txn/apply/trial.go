package apply

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
)

// trialGrace is how long after the time of its judgement a trial still counts as running. A user may think about a question
// in this time.
const trialGrace = 10 * time.Minute

// NotOnTrial says that a transaction is not on trial any more: another command restored it.
type NotOnTrial struct{ ID string }

// Error names the transaction and the way out.
func (e *NotOnTrial) Error() string {
	return fmt.Sprintf("transaction %s is not on trial any more: another command restored it meanwhile "+
		"('unthrottle status --history' shows it)", e.ID)
}

// Keep ends the trial of a transaction: it is in force from now on, with the transactions that belong to it. It returns
// the ids that are in force; the first is the transaction itself, or what took its place. Error: *NotOnTrial.
func Keep(ctx context.Context, env Env, id string) ([]string, error) {
	j, err := env.open(ctx)
	if err != nil {
		return nil, err
	}
	defer j.Close()
	var ids []string
	for _, t := range j.State().OnTrial(id) {
		ids = append(ids, t.Txn)
	}
	if len(ids) == 0 {
		return nil, &NotOnTrial{ID: id}
	}
	if err := j.Append(true, journal.Record{Kept: &journal.Kept{Trial: id, Time: env.now(), By: env.By}}); err != nil {
		return nil, err
	}
	return ids, nil
}

// trialOf is the trial of a transaction about to begin under the given id; nil: it is not on trial.
func (r *run) trialOf(id string, part txn.Part) *journal.Trial {
	for _, other := range append(slices.Clone(part.Replaces), part.Purpose.BelongsTo) {
		if t, ok := r.j.State().Txn(other); ok && t.Phase == journal.OnTrial {
			return t.Trial
		}
	}
	if part.Purpose.Trial <= 0 {
		return nil
	}
	self, err := r.self()
	trial := &journal.Trial{Of: id, Process: self, Until: r.now().Add(part.Purpose.Trial)}
	if err != nil {
		r.warn("if this process is killed before the judgement, its change stays until %s: %v",
			trial.Until.Add(trialGrace).Format(time.RFC3339), err)
	}
	return trial
}

// self is this process; with an error, or without a /proc, its number alone.
func (e Env) self() (journal.Process, error) {
	if e.Proc == nil {
		return journal.Process{PID: os.Getpid()}, nil
	}
	self, err := e.Proc.Self()
	if err != nil {
		return journal.Process{PID: os.Getpid()}, err
	}
	return self, nil
}

// trial tells what is to be known of the trial of a transaction; nil: it is not on trial.
func (e Env) trial(t *journal.Txn) *txn.Trial {
	if t.Phase != journal.OnTrial {
		return nil
	}
	out := &txn.Trial{Of: t.Trial.Of, PID: t.Trial.PID, Until: t.Trial.Until, State: txn.TrialRunning}
	switch {
	case t.Boot != e.BootID:
		out.State = txn.TrialAbandoned
		return out
	case e.Proc != nil && t.Trial.Started != 0:
		// Where it cannot be told, the time alone decides.
		if runs, err := e.Proc.Runs(t.Trial.Process); err == nil && !runs {
			out.State = txn.TrialAbandoned
			return out
		}
	}
	if e.now().After(t.Trial.Until.Add(trialGrace)) {
		out.State = txn.TrialOverdue
	}
	return out
}

// WouldLeave lists the transactions that this process would leave behind if it ended now: half applied or half restored,
// and those on trial that it judges. It takes no lock.
func WouldLeave(env Env) ([]txn.InForce, error) {
	s, err := journal.Load(env.StateDir)
	if err != nil {
		return nil, err
	}
	self, _ := env.self() // at least its number
	var others []txn.InForce
	for _, t := range s.Open() {
		if t.Phase == journal.OnTrial && t.Trial.PID == self.PID || !t.Held() && t.Boot == env.BootID {
			f := inForce(t)
			f.Trial = env.trial(t)
			others = append(others, f)
		}
	}
	return others, nil
}
