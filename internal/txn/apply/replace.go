package apply

import (
	"context"
	"fmt"
	"slices"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
)

// Replace makes transactions that take the place of others, all at one moment: until the last write is done the old
// ones are in force, and what happens before that takes the new ones back; from then on the old ones are ended. Values
// go from what they are to what they shall be in one go, sets by way of their union, so that no task is without a CPU
// and none back where it was before the old ones. What the settings were before any of us is kept: restoring puts that
// back.
//
// With parts that exchange CPUs, each may have the other's for the time of the writes between (Result.Took).
//
// Errors are those of Apply, and one if a transaction to be replaced is not in force.
func Replace(ctx context.Context, env Env, parts []txn.Part) (Result, error) {
	r, err := start(ctx, env)
	if err != nil {
		return newResult(), err
	}
	defer r.j.Close()
	r.warnDamaged()
	if err := r.recover(ctx); err != nil {
		return *r.res, err
	}
	p, err := r.prepare(ctx, r.j.State(), parts)
	if err != nil {
		return *r.res, err
	}
	if len(slices.Concat(p.holds...)) == 0 {
		r.res.Verdict = VerdictNothing
		return *r.res, nil
	}
	var begun []journal.Begin
	for i, part := range parts {
		b, err := r.begin(part, p.holds[i], begun)
		if err != nil {
			return *r.res, err
		}
		begun = append(begun, b)
	}
	if err := r.j.Reserve(reserveFor(p)); err != nil {
		return *r.res, err
	}
	for i := range begun {
		if err := r.j.Append(true, journal.Record{Begin: &begun[i]}); err != nil {
			if i > 0 {
				err = r.undo(ctx, begun[:i], err)
			}
			return *r.res, err
		}
		r.res.IDs = append(r.res.IDs, begun[i].Txn)
	}
	r.res.ID = begun[0].Txn
	outcomes := r.outcomes(parts)
	if err := r.execute(ctx, begun, p); err != nil {
		err = r.undo(ctx, begun, err)
		return *r.res, err
	}
	r.res.Verdict = verdictUnverified
	r.inheritOutcomes(begun, outcomes)
	return *r.res, nil
}

// inherited are what the replaced transactions do to settings that the part does not name.
func (w world) inherited(s *journal.State, part txn.Part, named []change.Change) ([]change.Change, error) {
	have := map[change.Key]bool{}
	for _, c := range named {
		have[c.Key()] = true
	}
	var changes []change.Change
	for _, id := range part.Replaces {
		t, ok := s.Txn(id)
		if !ok || !t.Held() {
			return nil, fmt.Errorf("transaction %q is no longer in force: plan again", id)
		}
		for _, h := range t.Holds {
			k := h.Key()
			if have[k] || t.Lost(h.Setting) || w.otherBoot(h.Setting) || !h.Kind.Known() {
				continue
			}
			exists, err := w.stillExists(h.Setting)
			if err != nil {
				return nil, err
			}
			if !exists {
				continue
			}
			have[k] = true
			c := change.Change{Kind: h.Kind, Op: h.Op, Controller: h.Controller, Path: k.Path, File: h.File, Unit: k.Unit,
				To: string(h.To), MembersController: h.MembersController, MembersPath: string(h.MembersPath), Why: h.Why}
			switch h.Kind {
			case change.KindTask:
				c.From = string(h.Original)
			case change.KindSubtree:
				c.File = cgroup.FileSubtreeControl
			}
			changes = append(changes, c)
		}
	}
	return changes, nil
}

// madeBy says whose the transaction of a part is: of who made the one that it replaces, so that an agent which moves or repairs a person's
// change never takes it for its own, and undoes it.
func (r *run) madeBy(part txn.Part) string {
	for _, id := range part.Replaces {
		if t, ok := r.j.State().Txn(id); ok {
			return t.By
		}
	}
	return r.By
}

// stillExists reports whether the object of a setting is still the one that was changed.
func (w world) stillExists(s journal.Setting) (bool, error) {
	kind := w.kind(s.Kind)
	if ended, err := kind.ended(s); ended || err != nil {
		return false, err
	}
	return kind.exists(s)
}

// outcomes are what came of the transactions that parts replace, one for each part at most.
func (r *run) outcomes(parts []txn.Part) []*journal.Outcome {
	all := make([]*journal.Outcome, len(parts))
	for i, part := range parts {
		for _, id := range part.Replaces {
			if t, ok := r.j.State().Txn(id); ok && t.Outcome != nil {
				all[i] = t.Outcome
				break
			}
		}
	}
	return all
}

// inheritOutcomes keeps the verdicts: another place does not change what was found of the remedy.
func (r *run) inheritOutcomes(begun []journal.Begin, outcomes []*journal.Outcome) {
	for i, o := range outcomes {
		if o == nil {
			continue
		}
		mine := *o
		mine.Txn = begun[i].Txn
		if err := r.j.Append(false, journal.Record{Outcome: &mine}); err != nil {
			r.warn("the outcome known so far could not be noted: %v", err)
		}
	}
	if err := r.j.Compact(); err != nil {
		r.log().Debug("the journal could not be shortened", "error", err)
	}
}
