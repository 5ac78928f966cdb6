package apply

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/systemd/unitprop"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
	"github.com/unthrottle/unthrottle/topology"
)

// maxChanges bounds one transaction.
const maxChanges = 10_000

// Stale says that a value is not what it was when the change was planned.
type Stale struct {
	Key                  change.Key
	Planned, Found, Want string
}

// Error names the way out.
func (e *Stale) Error() string {
	return fmt.Sprintf("%s: was %q when planned and is %q now: plan again", e.Key, e.Planned, e.Found)
}

// OutOfScope says that a change would touch something outside Env.Scope.
type OutOfScope struct{ Path, Scope string }

// Error names path and scope.
func (e *OutOfScope) Error() string {
	return fmt.Sprintf("cgroup %q is outside the scope %q: nothing was written; widen --scope or choose another target",
		e.Path, e.Scope)
}

// prepared are transactions that are ready to be journalled and written.
type prepared struct {
	// holds are those of each part.
	holds [][]journal.Hold
	steps []change.Change
	// replaced are the transactions whose place they take.
	replaced []string
}

// prepare reads the present, checks everything that can be checked before the first write, and orders the steps.
func (w world) prepare(ctx context.Context, s *journal.State, parts []txn.Part) (prepared, error) {
	var p prepared
	for _, part := range parts {
		p.replaced = append(p.replaced, part.Replaces...)
	}
	merged := newMerge()
	for _, part := range parts {
		holds, err := w.preparePart(ctx, s, part, p.replaced, merged)
		if err != nil {
			return p, err
		}
		p.holds = append(p.holds, append(holds, w.sharedDependencies(s, holds)...))
	}
	resolved, err := merged.changes()
	if err != nil {
		return p, err
	}
	p.steps, err = change.Order(w.orderState(resolved), resolved)
	return p, err
}

// preparePart resolves the changes of one part, and what it inherits.
func (w world) preparePart(ctx context.Context, s *journal.State, part txn.Part, replaced []string, merged *merge) ([]journal.Hold, error) {
	if len(part.Changes) > maxChanges {
		return nil, fmt.Errorf("%d changes in one transaction; at most %d", len(part.Changes), maxChanges)
	}
	changes, err := policy{inCgroup{w}}.withThreads(w.withFiles(part.Changes))
	if err != nil {
		return nil, err
	}
	if len(changes) > maxChanges {
		return nil, fmt.Errorf("%d changes in one transaction; at most %d", len(changes), maxChanges)
	}
	if changes, err = w.normalise(changes); err != nil {
		return nil, err
	}
	own := len(changes)
	inherited, err := w.inherited(s, part, changes)
	if err != nil {
		return nil, err
	}
	changes = append(changes, inherited...)
	for _, c := range changes {
		if err := w.inScope(c); err != nil {
			return nil, err
		}
	}
	newTrees, err := w.newTrees(ctx, changes)
	if err != nil {
		return nil, err
	}
	var holds []journal.Hold
	for i, c := range changes {
		if i < own {
			if err := w.kind(c.Kind).possible(ctx, c); err != nil {
				return nil, err
			}
		}
		h, now, err := w.hold(ctx, s, c, newTrees, replaced)
		if c.Kind == change.KindSched && errors.Is(err, fs.ErrNotExist) {
			continue // the thread ended meanwhile
		}
		if err != nil {
			return nil, err
		}
		h.Rebase = h.Rebase && !merged.has(c.Key())
		holds = append(holds, h)
		if i < own || w.kind(c.Kind).traits().valued {
			merged.add(now)
		}
	}
	return holds, nil
}

// sharedDependencies are the cgroups and controllers, created or enabled by earlier transactions, that this transaction
// also needs, and the processes moved into a cgroup that it sets. They are reference-counted: only the rollback of the
// last user removes them.
func (w world) sharedDependencies(s *journal.State, holds []journal.Hold) []journal.Hold {
	var more []journal.Hold
	have := map[journal.Setting]bool{}
	for _, h := range holds {
		have[h.Setting] = true
	}
	for _, t := range s.Open() {
		for _, h := range t.Holds {
			base, ok := w.kind(h.Kind).inside(h.Key())
			moved := h.Kind == change.KindTask && slices.ContainsFunc(holds, func(own journal.Hold) bool {
				return own.Kind == change.KindFile && own.Op == change.OpSet && own.Path == h.Path && own.Controller == h.Controller
			})
			if !ok && !moved || have[h.Setting] || t.Lost(h.Setting) || h.Boot != w.BootID || !cgroup.Below(string(h.Path), w.Scope) {
				continue
			}
			if moved || slices.ContainsFunc(holds, func(own journal.Hold) bool { return w.within(own.Key(), []tree{base}) }) {
				have[h.Setting] = true
				h.Rebase, h.Why = false, "this transaction needs it too"
				more = append(more, h)
			}
		}
	}
	return more
}

// inScope refuses what lies outside Env.Scope. The cgroup that processes leave need not be inside, they themselves
// must: those of the target.
func (w world) inScope(c change.Change) error {
	for _, path := range w.kind(c.Kind).touched(c) {
		if !cgroup.Below(path, w.Scope) {
			return &OutOfScope{Path: path, Scope: w.Scope}
		}
	}
	return nil
}

// ours tells whether a held setting still has a value that we left.
func (w world) ours(s *journal.State, k journal.Setting, current string, held []journal.Held, original, base string) bool {
	if k.Kind == change.KindTask {
		return true
	}
	if last, wrote := s.Last(k); wrote {
		return last.Ours(k.File, current)
	}
	// Held without a write: the value was there already.
	value, err := change.Fold(k.File, original, base, folds(held))
	return err == nil && change.Same(k.File, value, current)
}

// hold resolves one change against the present and the journal: the hold to write down, and what it makes of the value
// as it is now. The transactions replaced count no more.
func (w world) hold(ctx context.Context, s *journal.State, c change.Change, newTrees []tree,
	replaced []string) (journal.Hold, resolution, error) {
	fail := func(err error) (journal.Hold, resolution, error) { return journal.Hold{}, resolution{}, err }
	k := c.Key()
	h := journal.Hold{Op: c.Op, To: journal.Path(c.To), Why: c.Why, MembersController: c.MembersController,
		MembersPath: journal.Path(c.MembersPath)}
	current := ""
	id, err := w.id(k)
	isNew := w.within(k, newTrees)
	if err != nil && !(isNew && errors.Is(err, cgroup.ErrNoCgroup)) {
		return fail(err)
	}
	if !isNew {
		if current, err = w.read(ctx, k); err != nil {
			return fail(err)
		}
	}
	h.Setting = w.inJournal(k, id)
	if c.Kind == change.KindTask {
		current = c.From
	}
	held, original, base, ok := s.Holders(h.Setting)
	if ok && !w.ours(s, h.Setting, current, held, original, base) {
		held, ok, h.Rebase = nil, false, true
	}
	if !ok {
		original = current
		if base, err = w.base(s, k, current); err != nil {
			return fail(err)
		}
	}
	if c.Kind == change.KindCgroup && !ok && current != "" {
		return fail(fmt.Errorf("%s exists already and is not ours", k))
	}
	h.Original, h.Base = journal.Path(original), base
	if c.Op == change.OpSet && w.kind(c.Kind).traits().stale && c.From != "" && !change.Same(c.File, c.From, current) {
		return fail(&Stale{Key: k, Planned: c.From, Found: current, Want: c.To})
	}
	held = slices.DeleteFunc(held, func(by journal.Held) bool { return slices.Contains(replaced, by.Txn.Txn) })
	return h, resolution{change: c, current: current, original: original, base: base, held: folds(held)}, nil
}

func folds(held []journal.Held) []change.Hold {
	holds := make([]change.Hold, 0, len(held)+1)
	for _, h := range held {
		holds = append(holds, change.Hold{Op: h.Hold.Op, To: string(h.Hold.To)})
	}
	return holds
}

// base is what an empty CPU list stands for on v2: the CPUs in force, and those that we removed from an ancestor (they
// come back with that transaction's rollback). Elsewhere there is none.
func (w world) base(s *journal.State, k change.Key, current string) (string, error) {
	c := k.Controller
	if k.Kind == change.KindSystemd {
		c = cgroup.CPUSet
	}
	if current != "" || k.Kind == change.KindIRQ || !change.IsList(k.File) || w.version(c) != cgroup.V2 {
		return "", nil
	}
	inForce := cgroup.CPUs
	if k.File == cgroup.FileMems || k.File == unitprop.AllowedMemoryNodes {
		inForce = cgroup.Mems
	}
	path := k.Path
	for !cgroup.Exists(w.FS, c, path) && path != "/" {
		path = cgroup.Parent(path)
	}
	_, set, err := inForce(w.FS, path)
	if err != nil {
		return "", err
	}
	for _, t := range s.Open() {
		for _, h := range t.Holds {
			if h.Op != change.OpRemoveCPUs || h.File != k.File || h.Boot != w.BootID || !cgroup.Below(k.Path, string(h.Path)) {
				continue
			}
			if out, err := topology.ParseList(string(h.To)); err == nil {
				set = set.Union(out)
			}
		}
	}
	return set.String(), nil
}
