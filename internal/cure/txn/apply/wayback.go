package apply

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/internal/cure/txn"
	"github.com/unthrottle/unthrottle/internal/cure/txn/change"
	"github.com/unthrottle/unthrottle/internal/cure/txn/journal"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

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
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		v := r.look(ctx, s, going)
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
		if v.keepOpen {
			r.left = append(r.left, txn.Skip{Path: string(s.Path), File: s.File, Why: v.why})
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

// going lists what of ours nobody holds any more and is or will be removed, so that the settings inside need no care:
// cgroups that we made, and the files below a cgroup for whose children we enabled a controller.
func (r *run) going(ctx context.Context, settings []journal.Setting) []tree {
	var gone []tree
	for _, s := range settings {
		base, ok := r.kind(s.Kind).inside(s.Key())
		if !ok || s.Boot != r.BootID {
			continue
		}
		v := r.look(ctx, s, nil)
		if v.change == nil && (v.why != "" || r.stands(ctx, s)) {
			continue
		}
		gone = append(gone, base)
	}
	return gone
}

// stands tells whether a cgroup exists, or a controller is enabled.
func (r *run) stands(ctx context.Context, s journal.Setting) bool {
	current, err := r.read(ctx, s.Key())
	return err != nil || current != "" && !strings.HasPrefix(current, "-")
}

// view is what one setting needs: a change, or a reason why not, or nothing because its value is right.
type view struct {
	change *change.Change
	why    string
	// keepOpen: a later restore may succeed.
	keepOpen bool
}

func leave(why string) view { return view{why: why} }

func later(err error) view { return view{why: err.Error(), keepOpen: true} }

// look decides for one setting.
func (r *run) look(ctx context.Context, s journal.Setting, going []tree) view {
	k, kind := s.Key(), r.kind(s.Kind)
	switch {
	case !s.Kind.Known():
		return view{why: WhyUnknown, keepOpen: true}
	case s.Boot != r.BootID:
		return leave(WhyReboot)
	case s.Kind != change.KindTask && r.within(k, going):
		return view{}
	}
	if ended, err := kind.ended(s); err != nil {
		return later(err)
	} else if ended {
		return view{}
	}
	last, wrote := r.j.State().Last(s)
	made := uint64(0)
	if last.Done != nil {
		made = last.Done.ID
	}
	why, err := kind.identity(s, made)
	switch {
	case err != nil:
		return later(err)
	case why != "":
		return leave(why)
	}
	held, original, base, ok := r.j.State().Holders(s)
	if !ok {
		// Held only by transactions that lost it to somebody else.
		return leave(WhyForeign)
	}
	named := kind.traits().valued && (s.Kind != change.KindFile || s.ID != 0)
	switch {
	case wrote:
	case !r.damaged():
		return view{}
	case !named:
		return r.notSure(ctx, s, original)
	}
	if s.Kind == change.KindTask {
		return r.lookTask(s, held, original, going)
	}
	current, err := r.read(ctx, k)
	switch {
	case errors.Is(err, cgroup.ErrNoCgroup), errors.Is(err, fs.ErrNotExist):
		return leave(WhyGone)
	case err != nil:
		return later(err)
	}
	want, err := change.Fold(k.File, original, base, folds(held))
	switch {
	case err != nil:
		return later(fmt.Errorf(whyTogether, err, strings.Join(inTheWay(k.File, original, base, held), " and ")))
	case change.Same(k.File, current, want):
		return view{}
	case len(held) == 0 && s.Kind == change.KindFile && r.inMade(s):
		// Somebody else still needs the cgroup that we made: the setting ends with it.
		return view{}
	case wrote && last.Ours(k.File, current):
	case !named || !r.damaged() || !r.asHeld(s, current, original, base, held):
		return leave(WhyForeign)
	}
	c := change.Change{Kind: s.Kind, Op: change.OpSet, Controller: s.Controller, Path: k.Path, File: k.File, Unit: k.Unit,
		From: current, To: want}
	if s.Kind == change.KindSubtree {
		c.File = cgroup.FileSubtreeControl
	}
	if used, err := kind.usedByOthers(r.j.State(), s); err != nil {
		return later(err)
	} else if used {
		return leave(WhyInUse)
	}
	return view{change: &c}
}

// inTheWay names the transactions, newest first, without which the others leave something of a value.
func inTheWay(file, original, base string, held []journal.Held) []string {
	var ids []string
	for i, h := range slices.Backward(held) {
		ids = append(ids, h.Txn.Txn)
		if _, err := change.Fold(file, original, base, folds(held[:i])); err == nil {
			break
		}
	}
	return ids
}

// notSure is for what a damaged journal has no write of, and whose value does not tell whose it is: it is left.
func (r *run) notSure(ctx context.Context, s journal.Setting, original string) view {
	current, err := r.read(ctx, s.Key())
	switch {
	case err != nil:
		return later(err)
	case s.Kind == change.KindTask && !cgroup.Exists(r.FS, s.Controller, string(s.Path)),
		s.Kind != change.KindTask && current == original:
		return view{}
	}
	return leave(WhyNotSure)
}

// inMade tells whether a setting lies in a cgroup that a transaction not yet closed made: there was no value before.
func (r *run) inMade(s journal.Setting) bool {
	for _, t := range r.j.State().Open() {
		for _, h := range t.Holds {
			if h.Kind == change.KindCgroup && r.within(s.Key(), []tree{{controller: h.Controller, path: string(h.Path)}}) {
				return true
			}
		}
	}
	return false
}

// lookTask moves everything in the cgroup back to where it came from, once nobody else holds the move. Where that
// cgroup is gone, or goes now because it was ours too, its nearest ancestor takes them, as the kernel would have had it.
func (r *run) lookTask(s journal.Setting, held []journal.Held, original string, going []tree) view {
	if len(held) > 0 || !cgroup.Exists(r.FS, s.Controller, string(s.Path)) {
		return view{}
	}
	goes := func(path string) bool {
		return slices.ContainsFunc(going, func(t tree) bool {
			return !t.belowOnly && r.sameTree(t.controller, s.Controller) && cgroup.Below(path, t.path)
		})
	}
	for original != "/" && (goes(original) || !cgroup.Exists(r.FS, s.Controller, original)) {
		original = cgroup.Parent(original)
	}
	return view{change: &change.Change{Kind: change.KindTask, Op: change.OpSet, Controller: s.Controller, Path: string(s.Path),
		From: string(s.Path), To: original}}
}
