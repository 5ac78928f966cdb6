package apply

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/internal/widthcap"
)

// widths are the caps of a modelled scheduler; each operation is one of the kernel model's too, so that what kills or
// fails there does so here.
type widths struct {
	k    *cgroupmodel.Kernel
	caps map[uint64]widthcap.Cap
}

func (f *widths) Read(id uint64) (widthcap.Cap, bool, error) {
	if err := f.before("read", ""); err != nil {
		return widthcap.Cap{}, false, err
	}
	c, ok := f.caps[id]
	return c, ok, nil
}

func (f *widths) Write(id uint64, c widthcap.Cap) error {
	if err := f.before("write", c.String()); err != nil {
		return err
	}
	f.caps[id] = c
	return nil
}

func (f *widths) Remove(id uint64) error {
	if err := f.before("write", ""); err != nil {
		return err
	}
	delete(f.caps, id)
	return nil
}

func (f *widths) Counts(id uint64) (widthcap.Counts, bool, error) {
	_, ok := f.caps[id]
	return widthcap.Counts{Widest: 3, Now: 1, Credit: 250 * time.Millisecond, AtCap: 4 * time.Second, Waited: 2 * time.Second}, ok, nil
}

func (f *widths) before(kind, value string) error {
	if f.k.Before == nil {
		return nil
	}
	return f.k.Before(cgroupmodel.Op{Kind: kind, Path: "/sched_ext", File: widthcap.File, Value: value})
}

func newWidths(s *scene) *widths {
	f := &widths{k: s.k, caps: map[uint64]widthcap.Cap{}}
	s.env.Width = f
	return f
}

func capped(path, to string) (txn.Purpose, []change.Change) {
	return txn.Purpose{Target: txn.Target{Path: path}, Remedy: "narrow"},
		[]change.Change{{Kind: change.KindWidth, Path: path, File: widthcap.File, To: to}}
}

// narrowTwice caps a container and its pod.
func (s *scene) narrowTwice() (inner, outer Result, err error) {
	purpose, changes := capped("/pods/a", "2 CPUs, credit 400ms")
	if inner, err = Apply(s.t.Context(), s.env, purpose, changes); err != nil {
		return inner, outer, err
	}
	purpose, changes = capped("/pods", "6 CPUs")
	outer, err = Apply(s.t.Context(), s.env, purpose, changes)
	return inner, outer, err
}

func TestWidthThereAndBack(t *testing.T) {
	bothVersions(t, func(t *testing.T, v cgroup.Version) {
		s := newScene(t, v)
		f := newWidths(s)
		before := s.k.Snapshot()
		inner, _, err := s.narrowTwice()
		s.must(err)
		id, err := s.fs.ID(cgroup.CPU, "/pods/a")
		s.must(err)
		if len(f.caps) != 2 || f.caps[id].String() != "2 CPUs, credit 400ms" {
			t.Errorf("applied: %v", f.caps)
		}
		if diff := before.Diff(s.k.Snapshot()); len(diff) > 0 {
			t.Errorf("the quota is what holds it when the scheduler ends: %v", diff)
		}
		_, err = Restore(t.Context(), s.env, Selector{IDs: []string{inner.ID}})
		s.must(err)
		if _, has := f.caps[id]; has || len(f.caps) != 1 {
			t.Errorf("the first restored: %v", f.caps)
		}
		s.must(s.everythingBack(before))
		if len(f.caps) != 0 {
			t.Errorf("all restored: %v", f.caps)
		}
	})
}

// What the scheduler counts stands beside each cap; nothing is counted of one that is not in force.
func TestCountWidths(t *testing.T) {
	s := newScene(t, cgroup.V2)
	f := newWidths(s)
	_, _, err := s.narrowTwice()
	s.must(err)
	look := func() txn.Narrow {
		inForce, err := Status(s.env)
		s.must(err)
		CountWidths(s.env, inForce)
		if len(inForce) != 2 || inForce[0].Narrow == nil {
			t.Fatalf("%+v", inForce)
		}
		return *inForce[0].Narrow
	}
	if n := look(); n.CapCPUs != 2 || n.MaxCreditSeconds != 0.4 || !*n.InForce || *n.Widest != 3 ||
		*n.CreditSeconds != 0.25 || *n.WaitedSeconds != 2 {
		t.Errorf("%+v", n)
	}
	clear(f.caps)
	if n := look(); *n.InForce || n.Widest != nil || n.WaitedSeconds != nil {
		t.Errorf("%+v", n)
	}
	s.env.Width = nil
	if n := look(); n.InForce != nil || n.Widest != nil {
		t.Errorf("%+v", n)
	}
}

// The scheduler ended, another program changed a cap, or a container was started again: each is told, and restore writes
// only what is ours.
func TestWidthOfOthers(t *testing.T) {
	s := newScene(t, cgroup.V2)
	f := newWidths(s)
	_, _, err := s.narrowTwice()
	s.must(err)
	caps := maps.Clone(f.caps)
	clear(f.caps)
	drift, err := Drift(s.env)
	s.must(err)
	if len(drift) != 2 || drift[0].Current != "" || drift[0].Want != "2 CPUs, credit 400ms" || drift[0].Gone {
		t.Errorf("no scheduler, and the drift is %+v", drift)
	}
	maps.Copy(f.caps, caps)
	id, err := s.fs.ID(cgroup.CPU, "/pods/a")
	s.must(err)
	f.caps[id] = widthcap.Cap{CPUs: 3}
	res, err := Restore(t.Context(), s.env, Selector{})
	s.must(err)
	if len(res.Skipped) != 1 || res.Skipped[0].Why != whyForeign || len(f.caps) != 1 || f.caps[id].CPUs != 3 {
		t.Errorf("another program's cap: %+v, %v", res.Skipped, f.caps)
	}
	// After the scheduler's end there is nothing to restore, and nothing to report.
	clear(f.caps)
	_, _, err = s.narrowTwice()
	s.must(err)
	clear(f.caps)
	if res, err = Restore(t.Context(), s.env, Selector{}); err != nil || len(res.Skipped) > 0 || len(res.Writes) > 0 {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestWidthKilledAtEveryPoint(t *testing.T) {
	for n := 1; ; n++ {
		s := newScene(t, cgroup.V2)
		f := newWidths(s)
		before := s.k.Snapshot()
		s.killAt(n)
		crashed, err := crashes(func() error { _, _, err := s.narrowTwice(); return err })
		s.must(err)
		s.k.Before = nil
		if err := s.everythingBack(before); err != nil || len(f.caps) > 0 {
			t.Fatalf("killed at point %d: %v, %v", n, f.caps, err)
		}
		if !crashed {
			if n < 8 {
				t.Errorf("only %d points were walked", n-1)
			}
			return
		}
	}
}

// A refusal writes nothing.
func TestWidthRefused(t *testing.T) {
	s := newScene(t, cgroup.V2)
	f := newWidths(s)
	for to, want := range map[string]string{"": "is no cap", "0 CPUs": "a cap of 0 CPUs",
		"9999 CPUs": "a cap of 9999 CPUs", "2": "is no cap"} {
		purpose, changes := capped("/pods/a", to)
		if _, err := Apply(t.Context(), s.env, purpose, changes); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", to, err)
		}
	}
	s.env.Scope = "/pods/b"
	purpose, changes := capped("/pods/a", "2 CPUs")
	if _, err := Apply(t.Context(), s.env, purpose, changes); err == nil {
		t.Error("outside the scope, and no error")
	}
	purpose, changes = capped("/pods/b/gone", "2 CPUs")
	if _, err := Apply(t.Context(), s.env, purpose, changes); err == nil {
		t.Error("no such cgroup, and no error")
	}
	s.env.Scope, s.env.Width = "", nil
	purpose, changes = capped("/pods/a", "2 CPUs")
	if _, err := Apply(t.Context(), s.env, purpose, changes); err == nil || !strings.Contains(err.Error(), "cannot be capped here") {
		t.Errorf("%v", err)
	}
	if len(f.caps) > 0 {
		t.Errorf("%v", f.caps)
	}
}
