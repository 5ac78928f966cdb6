package apply

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
)

// Selector says which transactions: by id, or by target path; both empty means all. The id of a transaction on trial
// stands for what belongs to it, or took its place, as well.
type Selector struct {
	Target string
	IDs    []string
	// Again: the same is set again soon. What systemd keeps of its properties stays meanwhile: Forget ends that.
	Again bool
}

// Why a setting was not put back.
const (
	// WhyNotCleared: kernels before 7.0 take no empty list while processes are inside (validate_change, ENOSPC).
	WhyNotCleared = "this kernel refuses an empty list while processes are inside; it got all that its parent has, " +
		"which is the same"
	whyInUse     = "children have their own CPU or memory-node sets now; the controller stays enabled"
	whyGone      = "gone: the cgroup no longer exists"
	whyRecreated = "another cgroup has this path now"
	whyReboot    = "the machine was restarted; cgroup settings and runtime properties did not survive that"
	whyForeign   = "another program changed it since"
	whyUnknown   = "this version does not know this kind of setting"
	// whyTogether: those that stay in force would leave nothing of the value that they held before.
	whyTogether = "other transactions in force would leave it empty (%v): first run unthrottle restore %s"
	// whyImpossible: others wrote what does not go with the original value.
	whyImpossible = "what other programs set since does not fit the original value (%v): change that, then run unthrottle restore again"
)

// NotRestored says that the kernel refused a part of a rollback. That part stays in force, and its transactions stay
// open. The rest was restored.
type NotRestored struct {
	// Left is what stays in force, and why.
	Left []txn.Skip
}

// maxNamed bounds how many settings an error names.
const maxNamed = 3

// Error names what stays and the way out.
func (e *NotRestored) Error() string {
	var b strings.Builder
	b.WriteString("not everything could be put back")
	for i, s := range e.Left {
		if i == maxNamed {
			fmt.Fprintf(&b, "; and %d more", len(e.Left)-maxNamed)
			break
		}
		fmt.Fprintf(&b, "; cgroup %q: %s stays in force: %s", s.Path, s.File, s.Why)
	}
	b.WriteString("; once the cause is gone, run unthrottle restore")
	return b.String()
}

// Restore rolls back transactions: every setting gets the fold of its original value with what the remaining holders do,
// but only where its value is still ours. Skipped lists the settings that it left alone. It closes a transaction when a
// later Restore has nothing to do for it. A transaction with a refused setting stays open, and the next Restore tries
// again.
//
// Where something was refused, *NotRestored is returned beside the Result.
//
// If lines of the journal were damaged and no restore reported it yet, the verdict is at best verdictPartly, and unless sel
// names transactions by id, *Damaged is returned beside the Result, once.
func Restore(ctx context.Context, env Env, sel Selector) (Result, error) {
	r, err := start(ctx, env)
	if err != nil {
		return newResult(), err
	}
	defer r.j.Close()
	d := r.warnDamaged()
	ids, err := r.selectTransactions(sel)
	if err != nil {
		return *r.res, err
	}
	if d != nil {
		r.skipDamaged(ctx, d)
	}
	complete := true
	if len(ids) > 0 {
		r.again = sel.Again
		complete, err = r.release(ctx, ids, "restored")
	}
	if err == nil && !complete {
		err = &NotRestored{Left: r.left}
	}
	switch {
	case err != nil:
		r.res.Verdict = verdictNotRestored
	case d == nil && len(ids) == 0:
		r.res.Verdict = VerdictNothing
	case len(r.res.Skipped) > 0:
		r.res.Verdict = verdictPartly
	default:
		r.res.Verdict = VerdictRestored
	}
	if d != nil && len(sel.IDs) == 0 {
		r.markDamageReported()
		if err != nil {
			return *r.res, fmt.Errorf("%w; %w", err, d)
		}
		return *r.res, d
	}
	return *r.res, err
}

// PlanRestore says what Restore would write now, in order, and what it would leave alone. It writes nothing, not even the
// journal, and needs no lock.
func PlanRestore(ctx context.Context, env Env, sel Selector) (Result, error) {
	j, err := journal.Peek(env.StateDir)
	if err != nil {
		return newResult(), err
	}
	res := newResult()
	r := &run{world: world{env}, j: j, res: &res}
	if d := damagedOf(env.StateDir, j.State()); d != nil {
		res.Warnings = append(res.Warnings, d.Error())
	}
	ids, err := r.selectTransactions(sel)
	if err != nil {
		return res, err
	}
	if len(ids) == 0 {
		res.Verdict = VerdictNothing
		return res, nil
	}
	j.Suppose(journal.Record{Release: &journal.Release{Txns: ids, Reason: "restored", Time: r.now(), By: r.By}})
	back, err := r.planRollback(ctx, ids)
	if err != nil {
		return res, err
	}
	for _, c := range r.orderBack(back) {
		res.Writes = append(res.Writes, writeOf(c))
	}
	res.Verdict = verdictPlanned
	return res, nil
}

// selectTransactions finds the transactions meant. One outside the scope is an error if it was named, and skipped otherwise.
func (r *run) selectTransactions(sel Selector) ([]string, error) {
	var ids []string
	for _, id := range sel.IDs {
		if _, ok := r.j.State().Txn(id); !ok {
			return nil, fmt.Errorf("no transaction %q in %s; unthrottle status lists them", id, journal.File(r.StateDir))
		}
	}
	for _, t := range r.j.State().Open() {
		named := slices.Contains(sel.IDs, t.Txn) || t.Phase == journal.OnTrial && slices.Contains(sel.IDs, t.Trial.Of) ||
			sel.Target != "" && string(t.Target) == sel.Target
		if !named && (len(sel.IDs) > 0 || sel.Target != "") {
			continue
		}
		if err := r.allInScope(t); err != nil {
			if named {
				return nil, err
			}
			r.skip(string(t.Target), "", err.Error())
			continue
		}
		ids = append(ids, t.Txn)
	}
	return ids, nil
}

// allInScope checks every setting that a transaction holds.
func (r *run) allInScope(t *journal.Txn) error {
	for _, h := range t.Holds {
		if !cgroup.Below(string(h.Path), r.Scope) {
			return &OutOfScope{Path: string(h.Path), Scope: r.Scope}
		}
	}
	return nil
}

func (r *run) skip(path, file, why string) {
	r.res.Skipped = append(r.res.Skipped, txn.Skip{Path: path, File: file, Why: why})
}

// release rolls transactions back and closes those that are restored. complete is false if one stays open.
func (r *run) release(ctx context.Context, ids []string, reason string) (complete bool, err error) {
	if err := r.j.Append(true, journal.Record{Release: &journal.Release{Txns: ids, Reason: reason, Time: r.now(), By: r.By}}); err != nil {
		return false, err
	}
	back, err := r.planRollback(ctx, ids)
	if err != nil {
		return false, err
	}
	r.ids = back.ids
	if err := r.writeBack(ctx, back); err != nil {
		return false, err
	}
	complete = true
	for _, id := range ids {
		if back.left[id] {
			complete = false
			continue
		}
		end := journal.Close{Txn: id, Reason: cmp.Or(r.reasons[id], reason), Time: r.now(), By: r.By,
			Skipped: back.skipped[id]}
		if back.reboot[id] {
			end.Reason = "reboot"
		}
		if err := r.j.Append(true, journal.Record{Close: &end}); err != nil {
			return false, err
		}
	}
	if !r.again {
		if err := r.forget(ctx, back.changes); err != nil {
			r.warn("%v", err)
		}
	}
	if err := r.j.Compact(); err != nil {
		r.log().Debug("the journal could not be shortened", "error", err)
	}
	return complete, nil
}
