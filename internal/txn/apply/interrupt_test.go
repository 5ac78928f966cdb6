package apply

import (
	"fmt"
	"io/fs"
	"maps"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
	"github.com/unthrottle/unthrottle/internal/kernel/irq"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// interrupts are those of a modelled machine; each operation is one of the kernel model's too, so that what kills or
// fails there does so here.
type interrupts struct {
	k       *cgroupmodel.Kernel
	lists   map[string]string
	ids     map[string]uint64
	managed map[string]bool
}

func (f *interrupts) Interrupts() ([]irq.Interrupt, error) { return nil, nil }

func (f *interrupts) Read(file string) (string, error) {
	if err := f.before("read", file, ""); err != nil {
		return "", err
	}
	text, ok := f.lists[file]
	if !ok {
		return "", fmt.Errorf("%s: %w", file, fs.ErrNotExist)
	}
	return text, nil
}

func (f *interrupts) Write(file, list string) error {
	if err := f.before("write", file, list); err != nil {
		return err
	}
	if _, ok := f.lists[file]; !ok {
		return fmt.Errorf("%s: %w", file, fs.ErrNotExist)
	}
	if list == "" {
		panic("an interrupt without a CPU")
	}
	if f.managed[file] {
		return fmt.Errorf("%w: %w", irq.ErrRefused, unix.EIO)
	}
	f.lists[file] = list
	return nil
}

func (f *interrupts) ID(file string) (uint64, error) {
	if _, ok := f.lists[file]; !ok {
		return 0, fmt.Errorf("%s: %w", file, fs.ErrNotExist)
	}
	return f.ids[file], nil
}

func (f *interrupts) before(kind, file, value string) error {
	if f.k.Before == nil {
		return nil
	}
	return f.k.Before(cgroupmodel.Op{Kind: kind, Path: "/proc/irq", File: file, Value: value})
}

func newInterrupts(s *scene) *interrupts {
	f := &interrupts{k: s.k, managed: map[string]bool{irq.File(9): true}, ids: map[string]uint64{},
		lists: map[string]string{irq.Default: "0-7", irq.File(4): "0-7", irq.File(5): "2-3", irq.File(9): "0-7", irq.File(11): "6"}}
	for i, file := range []string{irq.Default, irq.File(4), irq.File(5), irq.File(9), irq.File(11)} {
		f.ids[file] = uint64(1000 + i)
	}
	s.env.IRQ = f
	return f
}

func off(cpus string, files ...string) []change.Change {
	var changes []change.Change
	for _, file := range files {
		changes = append(changes, change.Change{Kind: change.KindIRQ, Op: change.OpRemoveCPUs, File: file, To: cpus,
			Why: "off exclusive CPUs"})
	}
	return changes
}

// offTwice keeps interrupts off 2, then off 6-7 too: one of them has nothing else and gets a list of its own.
func (s *scene) offTwice() (first, second Result, err error) {
	first, err = Apply(s.t.Context(), s.env, txn.Purpose{Target: txn.Target{Path: "/pods/a"}, Remedy: "pin"},
		append(off("2", irq.Default, irq.File(4), irq.File(5), irq.File(9)), without("/pods/b", "2")))
	if err != nil {
		return first, second, err
	}
	own := change.Change{Kind: change.KindIRQ, Op: change.OpSet, File: irq.File(11), From: "6", To: "0-1,3-5"}
	second, err = Apply(s.t.Context(), s.env, txn.Purpose{Target: txn.Target{Path: "/pods/c"}, Remedy: "pin"},
		append(off("6-7", irq.Default, irq.File(4)), own))
	return first, second, err
}

func TestInterruptsOffAndBack(t *testing.T) {
	s := newScene(t, cgroup.V2)
	f := newInterrupts(s)
	before := maps.Clone(f.lists)
	first, second, err := s.offTwice()
	s.must(err)
	if len(first.Skipped) != 1 || first.Skipped[0].File != irq.File(9) || first.Verdict != verdictUnverified {
		t.Errorf("a managed interrupt is noted and no failure: %+v", first)
	}
	want := map[string]string{irq.Default: "0-1,3-5", irq.File(4): "0-1,3-5", irq.File(5): "3", irq.File(9): "0-7", irq.File(11): "0-1,3-5"}
	if !maps.Equal(f.lists, want) {
		t.Errorf("applied: %v", f.lists)
	}
	_, err = Restore(t.Context(), s.env, Selector{IDs: []string{first.ID}})
	s.must(err)
	if f.lists[irq.File(4)] != "0-5" || f.lists[irq.File(5)] != "2-3" || f.lists[irq.File(11)] != "0-1,3-5" {
		t.Errorf("the first restored: %v", f.lists)
	}
	res, err := Restore(t.Context(), s.env, Selector{IDs: []string{second.ID}})
	if err != nil || len(res.Skipped) > 0 || !maps.Equal(f.lists, before) {
		t.Errorf("all restored: %v, %+v, %v", f.lists, res.Skipped, err)
	}
}

// TestInterruptsOfOthers: what another program wrote since, an interrupt that ended, and another one under its number are
// left alone.
func TestInterruptsOfOthers(t *testing.T) {
	s := newScene(t, cgroup.V1)
	f := newInterrupts(s)
	_, _, err := s.offTwice()
	s.must(err)
	f.lists[irq.File(4)] = "1"
	delete(f.lists, irq.File(5))
	f.ids[irq.File(11)]++
	drift, err := Drift(s.env)
	s.must(err)
	for _, d := range drift {
		if d.Gone || d.File != irq.File(4) {
			t.Errorf("drift: %+v", d)
		}
	}
	if len(drift) == 0 {
		t.Error("no report of the list that another program wrote")
	}
	res, err := Restore(t.Context(), s.env, Selector{})
	s.must(err)
	why := map[string]string{}
	for _, skip := range res.Skipped {
		why[skip.File] = skip.Why
	}
	want := map[string]string{irq.File(4): whyForeign, irq.File(5): whyNoInterrupt, irq.File(11): whyForeign}
	if !maps.Equal(why, want) {
		t.Errorf("skipped %v", why)
	}
	if f.lists[irq.File(4)] != "1" || f.lists[irq.File(11)] != "0-1,3-5" || f.lists[irq.Default] != "0-7" {
		t.Errorf("left %v", f.lists)
	}
}

// TestInterruptsKilledAtEveryPoint kills before each operation, and one restore brings all back.
func TestInterruptsKilledAtEveryPoint(t *testing.T) {
	bothVersions(t, func(t *testing.T, v cgroup.Version) {
		for n := 1; ; n++ {
			s := newScene(t, v)
			f := newInterrupts(s)
			before, lists := s.k.Snapshot(), maps.Clone(f.lists)
			s.killAt(n)
			crashed, err := crashes(func() error { _, _, err := s.offTwice(); return err })
			s.must(err)
			s.k.Before = nil
			if err := s.everythingBack(before); err != nil || !maps.Equal(f.lists, lists) {
				t.Fatalf("killed at point %d: %v, %v", n, f.lists, err)
			}
			if !crashed {
				if n < 25 {
					t.Errorf("only %d points were walked", n-1)
				}
				return
			}
		}
	})
}

func TestInterruptsAreOutsideAnyScope(t *testing.T) {
	s := newScene(t, cgroup.V2)
	f := newInterrupts(s)
	s.env.Scope = "/pods"
	before := maps.Clone(f.lists)
	if _, _, err := s.offTwice(); err == nil || !maps.Equal(f.lists, before) {
		t.Errorf("%v: %v", err, f.lists)
	}
	s.env.Scope, s.env.IRQ = "", nil
	if _, _, err := s.offTwice(); err == nil {
		t.Error("no interrupts to be had, and no error")
	}
}
