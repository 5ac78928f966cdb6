package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/unthrottle/unthrottle/cgroup"
	"github.com/unthrottle/unthrottle/change"
	"github.com/unthrottle/unthrottle/journal"
)

// Selector says which transactions: by id, or by target path; both empty means all.
type Selector struct {
	Target string
	IDs    []string
}

// Why a setting was not put back.
const (
	WhyGone      = "gone: the cgroup no longer exists"
	WhyRecreated = "another cgroup was made under this path since"
	WhyReboot    = "the machine was started again since; cgroup settings and runtime properties did not survive that"
	WhyForeign   = "changed by someone else since"
	WhyUnknown   = "of a kind that this version does not know"
)

// Restore takes back transactions: every setting goes to the fold of its original value with what the remaining
// holders do, but only where its value is still ours. What was left alone stands in Skipped. A transaction is closed
// when nothing is left that a later Restore could do; what the kernel refused stays open and is tried again then.
func Restore(ctx context.Context, env Env, sel Selector) (Result, error) {
	res := newResult()
	j, err := env.open(ctx)
	if err != nil {
		return res, err
	}
	defer j.Close()
	r := &run{world: world{env}, j: j, res: &res}
	ids, err := r.choose(sel)
	if err != nil {
		return res, err
	}
	if len(ids) == 0 {
		res.Verdict = VerdictNothing
		return res, nil
	}
	complete, err := r.release(ctx, ids, "restored")
	switch {
	case err != nil:
		res.Verdict = VerdictNotRestored
	case !complete || len(res.Skipped) > 0:
		res.Verdict = VerdictPartly
	default:
		res.Verdict = VerdictRestored
	}
	return res, err
}

// choose finds the transactions meant. One outside the scope is an error if it was named, and skipped otherwise.
func (r *run) choose(sel Selector) ([]string, error) {
	var ids []string
	for _, id := range sel.IDs {
		if _, ok := r.j.State().Txn(id); !ok {
			return nil, fmt.Errorf("no transaction %q in %s; unthrottle status lists them", id, journal.File(r.StateDir))
		}
	}
	for _, t := range r.j.State().Open() {
		named := slices.Contains(sel.IDs, t.Txn) || sel.Target != "" && string(t.Target) == sel.Target
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
	r.res.Skipped = append(r.res.Skipped, Skip{Path: path, File: file, Why: why})
}

// release takes transactions back and closes those of which nothing is left. complete is false if something is.
func (r *run) release(ctx context.Context, ids []string, reason string) (complete bool, err error) {
	if err := r.j.Append(true, journal.Record{Release: &journal.Release{Txns: ids, Reason: reason, Time: r.now(), By: r.By}}); err != nil {
		return false, err
	}
	back, err := r.wayBack(ctx, ids)
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
		end := journal.Close{Txn: id, Reason: reason, Time: r.now(), By: r.By, Skipped: back.skipped[id]}
		if back.reboot[id] {
			end.Reason = "reboot"
		}
		if err := r.j.Append(true, journal.Record{Close: &end}); err != nil {
			return false, err
		}
	}
	if err := r.j.Compact(); err != nil {
		r.log().Debug("the journal could not be shortened", "error", err)
	}
	return complete, nil
}

// wayBack is what taking back some transactions needs.
type wayBack struct {
	changes []change.Change
	// owners are the transactions that hold what a change changes.
	owners  map[change.Key][]string
	ids     map[change.Key]uint64
	left    map[string]bool
	reboot  map[string]bool
	skipped map[string][]journal.Skipped
}

// wayBack looks at every setting that the transactions hold.
func (r *run) wayBack(ctx context.Context, ids []string) (*wayBack, error) {
	b := &wayBack{owners: map[change.Key][]string{}, ids: map[change.Key]uint64{}, left: map[string]bool{},
		reboot: map[string]bool{}, skipped: map[string][]journal.Skipped{}}
	settings, owners := r.settings(ids)
	going := r.going(ctx, settings)
	for _, s := range settings {
		k := s.Key()
		v := r.look(ctx, s, going)
		if v.err != nil && errors.Is(v.err, context.Canceled) {
			return nil, v.err
		}
		for _, id := range owners[s] {
			if v.why == WhyReboot {
				b.reboot[id] = true
			}
			if v.keepOpen {
				b.left[id] = true
			}
			if v.why != "" {
				b.skipped[id] = append(b.skipped[id], journal.Skipped{Path: s.Path, File: s.File, Why: v.why})
			}
		}
		if v.why != "" {
			r.skip(string(s.Path), s.File, v.why)
		}
		if v.change != nil {
			b.changes = append(b.changes, *v.change)
			b.owners[k] = owners[s]
			b.ids[k] = s.ID
		}
	}
	return b, nil
}

// settings lists what the transactions hold, each once, in the order it was first held.
func (r *run) settings(ids []string) ([]journal.Setting, map[journal.Setting][]string) {
	owners := map[journal.Setting][]string{}
	var all []journal.Setting
	for _, t := range r.j.State().Open() {
		if !slices.Contains(ids, t.Txn) {
			continue
		}
		for _, h := range t.Holds {
			if len(owners[h.Setting]) == 0 {
				all = append(all, h.Setting)
			}
			owners[h.Setting] = append(owners[h.Setting], t.Txn)
		}
	}
	return all, owners
}

// going lists the cgroups of ours that nobody holds any more: they will be removed, so their settings need no care.
func (r *run) going(ctx context.Context, settings []journal.Setting) []tree {
	var gone []tree
	for _, s := range settings {
		if s.Kind != change.KindCgroup {
			continue
		}
		if v := r.look(ctx, s, nil); v.change != nil {
			gone = append(gone, tree{s.Controller, string(s.Path)})
		}
	}
	return gone
}

// view is what one setting needs.
type view struct {
	change   *change.Change
	why      string
	keepOpen bool
	err      error
}

// look decides for one setting: write it back, leave it, or nothing to do.
func (r *run) look(ctx context.Context, s journal.Setting, going []tree) view {
	k := s.Key()
	switch {
	case !s.Kind.Known():
		return view{why: WhyUnknown, keepOpen: true}
	case s.Boot != r.BootID:
		return view{why: WhyReboot}
	case s.Kind != change.KindTask && r.within(k, going):
		return view{}
	}
	if why, err := r.identity(s); err != nil {
		return view{why: err.Error(), keepOpen: true, err: err}
	} else if why != "" {
		return view{why: why}
	}
	held, original, base, lost, ok := r.holders(s)
	if lost {
		return view{why: WhyForeign}
	}
	if !ok {
		return view{}
	}
	if s.Kind == change.KindTask {
		return r.lookTask(s, held, original)
	}
	current, err := r.read(ctx, k)
	if err != nil {
		if errors.Is(err, cgroup.ErrNoCgroup) {
			return view{why: WhyGone}
		}
		return view{why: err.Error(), keepOpen: true, err: err}
	}
	want, err := change.Fold(k.File, original, base, folds(held))
	if err != nil {
		return view{why: err.Error(), keepOpen: true, err: err}
	}
	if change.Same(k.File, current, want) {
		return view{}
	}
	last, wrote := r.j.State().Last(s)
	if !wrote {
		return view{}
	}
	if !last.Ours(k.File, current) {
		return view{why: WhyForeign}
	}
	c := change.Change{Kind: s.Kind, Op: change.OpSet, Controller: s.Controller, Path: k.Path, File: k.File, Unit: k.Unit,
		From: current, To: want}
	if s.Kind == change.KindSubtree {
		c.File = cgroup.FileSubtreeControl
	}
	return view{change: &c}
}

func (r *run) holders(s journal.Setting) (held []journal.Held, original, base string, lost, ok bool) {
	held, original, base, ok = r.j.State().Holders(s)
	return held, original, base, false, ok
}

// lookTask moves everything in the cgroup back to where it came from, once nobody else holds the move.
func (r *run) lookTask(s journal.Setting, held []journal.Held, original string) view {
	if len(held) > 0 {
		return view{}
	}
	if _, wrote := r.j.State().Last(s); !wrote {
		return view{}
	}
	for !cgroup.Exists(r.FS, s.Controller, original) && original != "/" {
		original = cgroup.Parent(original)
	}
	return view{change: &change.Change{Kind: change.KindTask, Op: change.OpSet, Controller: s.Controller, Path: string(s.Path),
		From: string(s.Path), To: original}}
}

// identity tells whether the cgroup is still the one that was changed; a reason if not.
func (r *run) identity(s journal.Setting) (why string, err error) {
	if s.Kind == change.KindSystemd {
		return "", nil
	}
	id, err := r.FS.ID(s.Controller, string(s.Path))
	if errors.Is(err, cgroup.ErrNoCgroup) {
		if s.Kind == change.KindCgroup || s.Kind == change.KindTask {
			return "", nil
		}
		return WhyGone, nil
	}
	if err != nil {
		return "", err
	}
	known := s.ID
	if s.Kind == change.KindCgroup {
		if last, ok := r.j.State().Last(s); ok && last.Done != nil {
			known = last.Done.ID
		}
	}
	if known != 0 && known != id {
		return WhyRecreated, nil
	}
	return "", nil
}

// writeBack does the steps of the way back. A step that fails leaves its transactions open and the others go on.
func (r *run) writeBack(ctx context.Context, b *wayBack) error {
	steps, err := change.Order(r.orderState(b.changes), b.changes)
	if err != nil {
		return err
	}
	for _, c := range steps {
		k := c.Key()
		txn := ""
		if len(b.owners[k]) > 0 {
			txn = b.owners[k][0]
		}
		err := r.step(ctx, txn, c)
		if errors.As(err, new(journalFailed)) {
			return err
		}
		if err != nil {
			r.skip(c.Path, c.File, err.Error())
			for _, id := range b.owners[k] {
				b.left[id] = true
			}
		}
	}
	return nil
}
