package apply

import (
	"context"
	"fmt"
	"testing"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
)

// killAt makes the n-th operation from now on the last: the process is gone before it happens. Every operation before
// that must have left every task with a CPU.
func (s *scene) killAt(n int) {
	count := 0
	s.k.Before = func(op cgroupmodel.Op) error {
		if count++; count == n {
			panic(errCrash)
		}
		if op.Changes() {
			if bad := s.k.Check(); len(bad) > 0 {
				s.t.Fatalf("before %v: %v", op, bad)
			}
		}
		return nil
	}
}

// stride is the distance from one point that a test walks to the next: under -short every seventh is enough, of which
// each fifth falls on a multiple of five.
func stride() int {
	if testing.Short() {
		return 7
	}
	return 1
}

func bothVersions(t *testing.T, fn func(t *testing.T, v cgroup.Version)) {
	for _, v := range []cgroup.Version{cgroup.V1, cgroup.V2} {
		t.Run(v.String(), func(t *testing.T) { fn(t, v) })
	}
}

// TestKilledAtEveryPoint kills several overlapping transactions, applied and undone, before each single operation
// on the cgroup trees. For some of these points the restore that follows is killed as well, at a point that differs
// each time, and a second restore has to do.
func TestKilledAtEveryPoint(t *testing.T) {
	bothVersions(t, func(t *testing.T, v cgroup.Version) {
		points := 0
		for n := 1; ; n += stride() {
			s := newScene(t, v)
			before := s.k.Snapshot()
			s.killAt(n)
			crashed, err := crashes(s.script)
			if err != nil {
				t.Fatalf("point %d: %v", n, err)
			}
			if n%5 == 0 {
				s.killAt(1 + (n*7)%101)
				if _, err := crashes(func() error { return s.everythingBack(before) }); err != nil {
					t.Fatalf("point %d, restore not killed: %v", n, err)
				}
			}
			s.k.Before = nil
			if err := s.everythingBack(before); err != nil {
				t.Fatalf("killed at point %d: %v", n, err)
			}
			if !crashed {
				break
			}
			points = n
		}
		t.Logf("%d points", points)
		if points < 100 {
			t.Errorf("only %d points were walked", points)
		}
	})
}

// TestRestoreKilledAtEveryPoint does the same to restore.
func TestRestoreKilledAtEveryPoint(t *testing.T) {
	bothVersions(t, func(t *testing.T, v cgroup.Version) {
		for n := 1; ; n += stride() {
			s := newScene(t, v)
			before := s.k.Snapshot()
			s.must(s.script())
			s.killAt(n)
			crashed, err := crashes(func() error { return s.everythingBack(before) })
			if err != nil {
				t.Fatalf("point %d: %v", n, err)
			}
			s.k.Before = nil
			if err := s.everythingBack(before); err != nil {
				t.Fatalf("restore killed at point %d: %v", n, err)
			}
			if !crashed {
				t.Logf("%d points", n-1)
				return
			}
		}
	})
}

// refusing does something of which the kernel refuses the n-th write, and says which one that was; "": there were fewer.
func (s *scene) refusing(n int, do func() error) (refused string, err error) {
	count := 0
	s.k.Before = func(op cgroupmodel.Op) error {
		if !op.Changes() {
			return nil
		}
		if count++; count == n {
			refused = op.String()
			return &cgroup.Error{Op: op.Kind, Path: op.Path, File: op.File, Value: op.Value, Errno: errCrash}
		}
		return nil
	}
	err = do()
	s.k.Before = nil
	return refused, err
}

// TestKernelRefusesAtEveryPoint lets each single write fail once: the transaction is undone by itself, or, where
// that failed, restore does it.
func TestKernelRefusesAtEveryPoint(t *testing.T) {
	bothVersions(t, func(t *testing.T, v cgroup.Version) {
		for n := 1; ; n++ {
			s := newScene(t, v)
			before := s.k.Snapshot()
			refused, err := s.refusing(n, s.script)
			if refused == "" {
				s.must(err)
				t.Logf("%d points", n-1)
				return
			}
			if backErr := s.everythingBack(before); backErr != nil {
				t.Fatalf("point %d (%s, error %v): %v", n, refused, err, backErr)
			}
		}
	})
}

// TestFailedApplyLeavesNothing: without any restore, a transaction whose write is refused leaves no trace.
func TestFailedApplyLeavesNothing(t *testing.T) {
	bothVersions(t, func(t *testing.T, v cgroup.Version) {
		for n := 1; ; n++ {
			s := newScene(t, v)
			before := fmt.Sprint(s.k.Snapshot())
			purpose, changes := s.pinAlone()
			var r Result
			refused, err := s.refusing(n, func() (err error) {
				r, err = Apply(context.Background(), s.env, purpose, changes)
				return err
			})
			if err == nil {
				return
			}
			if refused == "" {
				t.Fatal(err)
			}
			if r.Verdict != verdictUndone {
				t.Errorf("write %d refused: verdict %q, error %v", n, r.Verdict, err)
			}
			if after := fmt.Sprint(s.k.Snapshot()); after != before {
				t.Errorf("write %d refused: %v\nbefore %s\nafter  %s", n, err, before, after)
			}
		}
	})
}
