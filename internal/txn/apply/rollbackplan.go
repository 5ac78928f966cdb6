package apply

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
)

// rollbackPlan is what the rollback of some transactions needs.
type rollbackPlan struct {
	changes []change.Change
	// owners are the transactions that hold what a change changes.
	owners  map[change.Key][]string
	ids     map[change.Key]uint64
	left    map[string]bool
	reboot  map[string]bool
	skipped map[string][]journal.Skipped
}

// planRollback looks at every setting that the transactions hold.
func (r *run) planRollback(ctx context.Context, ids []string) (*rollbackPlan, error) {
	b := &rollbackPlan{owners: map[change.Key][]string{}, ids: map[change.Key]uint64{}, left: map[string]bool{},
		reboot: map[string]bool{}, skipped: map[string][]journal.Skipped{}}
	settings, owners := r.settings(ids)
	removedCgroups := r.removedCgroups(ctx, settings)
	for _, s := range settings {
		k := s.Key()
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		v := r.planRestore(ctx, s, removedCgroups)
		for _, id := range owners[s] {
			if v.why == whyReboot {
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

// removedCgroups lists the trees that vanish with the rollback, so that the settings inside need no write: cgroups that we
// created, and the files below a cgroup for whose children we enabled a controller.
func (r *run) removedCgroups(ctx context.Context, settings []journal.Setting) []tree {
	var gone []tree
	for _, s := range settings {
		base, ok := r.kind(s.Kind).inside(s.Key())
		if !ok || s.Boot != r.BootID {
			continue
		}
		v := r.planRestore(ctx, s, nil)
		if v.change == nil && (v.why != "" || r.settingExists(ctx, s)) {
			continue
		}
		gone = append(gone, base)
	}
	return gone
}

// settingExists tells whether a cgroup exists, or a controller is enabled.
func (r *run) settingExists(ctx context.Context, s journal.Setting) bool {
	current, err := r.read(ctx, s.Key())
	return err != nil || current != "" && !strings.HasPrefix(current, "-")
}

// settingAction is what one setting needs: a change, or a reason why not, or nothing because its value is right.
type settingAction struct {
	change *change.Change
	why    string
	// keepOpen: a later restore may succeed.
	keepOpen bool
}

func leaveAlone(why string) settingAction { return settingAction{why: why} }

func retryLater(err error) settingAction { return settingAction{why: err.Error(), keepOpen: true} }

// planRestore decides for one setting.
func (r *run) planRestore(ctx context.Context, s journal.Setting, removedCgroups []tree) settingAction {
	k, kind := s.Key(), r.kind(s.Kind)
	switch {
	case !s.Kind.Known():
		return settingAction{why: whyUnknown, keepOpen: true}
	case r.otherBoot(s):
		return leaveAlone(whyReboot)
	case s.Kind != change.KindTask && r.within(k, removedCgroups):
		return settingAction{}
	}
	if ended, err := kind.ended(s); err != nil {
		return retryLater(err)
	} else if ended {
		return settingAction{}
	}
	last, wrote := r.j.State().Last(s)
	made := uint64(0)
	if last.Done != nil {
		made = last.Done.ID
	}
	why, err := kind.identity(s, made)
	switch {
	case err != nil:
		return retryLater(err)
	case why != "":
		return leaveAlone(why)
	}
	held, original, base, ok := r.j.State().Holders(s)
	if !ok {
		// All holders lost it to another program.
		return leaveAlone(whyForeign)
	}
	named := kind.traits().valued && (s.Kind != change.KindFile || s.ID != 0)
	switch {
	case wrote:
	case !r.damaged():
		return settingAction{}
	case !named:
		return r.unknownOwner(ctx, s, original)
	}
	if s.Kind == change.KindTask {
		return r.planMoveBack(s, held, original, removedCgroups)
	}
	current, err := r.read(ctx, k)
	switch {
	case errors.Is(err, cgroup.ErrNoCgroup), errors.Is(err, fs.ErrNotExist):
		return leaveAlone(whyGone)
	case err != nil:
		return retryLater(err)
	}
	want, err := change.Fold(k.File, original, base, folds(held))
	switch {
	case err != nil:
		return retryLater(fmt.Errorf(whyTogether, err, strings.Join(blockingTransactions(k.File, original, base, held), " and ")))
	case change.Same(k.File, current, want):
		return settingAction{}
	case s.Kind == change.KindFile && valueless(original, held) && r.inCreatedCgroup(s):
		// Another transaction still needs the cgroup that we created: the setting ends with it.
		return settingAction{}
	case wrote && last.Ours(k.File, current):
	case !named || !r.damaged() || !r.isFoldOfHolders(s, current, original, base, held):
		return leaveAlone(whyForeign)
	}
	c := change.Change{Kind: s.Kind, Op: change.OpSet, Controller: s.Controller, Path: k.Path, File: k.File, Unit: k.Unit,
		From: current, To: want}
	if s.Kind == change.KindSubtree {
		c.File = cgroup.FileSubtreeControl
	}
	if used, err := kind.usedByOthers(r.j.State(), s); err != nil {
		return retryLater(err)
	} else if used {
		return leaveAlone(whyInUse)
	}
	return settingAction{change: &c}
}

// valueless reports whether the holders of a setting in a cgroup that we created give it no value. There was none before,
// so that CPUs removed from it leave none: an empty cpuset, which the kernel refuses above another.
func valueless(original string, held []journal.Held) bool {
	return len(held) == 0 || original == "" && !slices.ContainsFunc(held, func(by journal.Held) bool {
		return by.Hold.Op == change.OpSet || by.Hold.Op == ""
	})
}

// blockingTransactions names the transactions, newest first, without which the others leave something of a value.
func blockingTransactions(file, original, base string, held []journal.Held) []string {
	var ids []string
	for i, h := range slices.Backward(held) {
		ids = append(ids, h.Txn.Txn)
		if _, err := change.Fold(file, original, base, folds(held[:i])); err == nil {
			break
		}
	}
	return ids
}

// unknownOwner is for what a damaged journal has no write of, and whose value does not tell whose it is: it is left.
func (r *run) unknownOwner(ctx context.Context, s journal.Setting, original string) settingAction {
	current, err := r.read(ctx, s.Key())
	switch {
	case err != nil:
		return retryLater(err)
	case s.Kind == change.KindTask && !cgroup.Exists(r.FS, s.Controller, string(s.Path)),
		s.Kind != change.KindTask && current == original:
		return settingAction{}
	}
	return leaveAlone(whyNotSure)
}

// inCreatedCgroup tells whether a setting lies in a cgroup that a transaction not yet closed made: there was no value before.
func (r *run) inCreatedCgroup(s journal.Setting) bool {
	for _, t := range r.j.State().Open() {
		for _, h := range t.Holds {
			if h.Kind == change.KindCgroup && r.within(s.Key(), []tree{{controller: h.Controller, path: string(h.Path)}}) {
				return true
			}
		}
	}
	return false
}

// planMoveBack moves all processes of the cgroup back, once no other transaction holds the move. If their former cgroup is
// gone, or goes with this rollback, its nearest remaining ancestor takes them.
func (r *run) planMoveBack(s journal.Setting, held []journal.Held, original string, removedCgroups []tree) settingAction {
	if len(held) > 0 || !cgroup.Exists(r.FS, s.Controller, string(s.Path)) {
		return settingAction{}
	}
	goes := func(path string) bool {
		return slices.ContainsFunc(removedCgroups, func(t tree) bool {
			return !t.belowOnly && r.sameTree(t.controller, s.Controller) && cgroup.Below(path, t.path)
		})
	}
	for original != "/" && (goes(original) || !cgroup.Exists(r.FS, s.Controller, original)) {
		original = cgroup.Parent(original)
	}
	return settingAction{change: &change.Change{Kind: change.KindTask, Op: change.OpSet, Controller: s.Controller, Path: string(s.Path),
		From: string(s.Path), To: original}}
}
