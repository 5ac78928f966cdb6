package apply

import (
	"fmt"
	"io"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
)

// faulty is a journal file that goes wrong at its n-th write or sync.
type faulty struct {
	journal.Handle
	plan *faultPlan
}

type faultPlan struct {
	kind  string // "refused", "torn", "torn and stuck", "sync", "killed in write"
	at    int
	keep  int // bytes of a torn write that reach the disk
	count int
	hit   bool
}

func (f faulty) next() bool {
	f.plan.count++
	hit := f.plan.count == f.plan.at
	f.plan.hit = f.plan.hit || hit
	return hit
}

func (f faulty) Write(b []byte) (int, error) {
	if f.plan.kind == "sync" || !f.next() {
		return f.Handle.Write(b)
	}
	if f.plan.kind == "refused" {
		return 0, unix.ENOSPC
	}
	n, _ := f.Handle.Write(b[:min(f.plan.keep, len(b))])
	if f.plan.kind == "killed in write" {
		panic(errCrash)
	}
	return n, io.ErrShortWrite
}

func (f faulty) Sync() error {
	if f.plan.kind == "sync" && f.next() {
		return unix.EIO
	}
	return nil
}

func (f faulty) Truncate(size int64) error {
	if f.plan.kind == "torn and stuck" {
		return unix.EIO
	}
	return f.Handle.Truncate(size)
}

// TestJournalFailsAtEveryPoint lets every single write to the journal go wrong, in several ways. Whatever was done by
// then, a restore with a working journal puts everything back.
func TestJournalFailsAtEveryPoint(t *testing.T) {
	for _, kind := range []string{"refused", "torn", "torn and stuck", "sync", "killed in write"} {
		t.Run(kind, func(t *testing.T) {
			bothVersions(t, func(t *testing.T, v cgroup.Version) {
				for n := 1; n < 1000; n += stride() {
					s := newScene(t, v)
					before := s.k.Snapshot()
					plan := &faultPlan{kind: kind, at: n, keep: (n * 37) % 600}
					s.env.wrap = func(h journal.Handle) journal.Handle { return faulty{h, plan} }
					crashed, err := crashes(s.script)
					s.env.wrap = wrapNoSync
					if plan.hit && !crashed && err == nil && kind != "sync" && plan.count == n {
						t.Errorf("point %d: the journal failed and no error says so", n)
					}
					if err := s.everythingBack(before); err != nil {
						t.Fatalf("point %d: %v", n, err)
					}
					if !plan.hit {
						if n < 30 {
							t.Errorf("only %d points", n)
						}
						return
					}
				}
			})
		})
	}
}

// TestUndoneWhenTheJournalFailsOnce: a transaction whose journal refuses one entry is undone at once.
func TestUndoneWhenTheJournalFailsOnce(t *testing.T) {
	bothVersions(t, func(t *testing.T, v cgroup.Version) {
		s := newScene(t, v)
		before := fmt.Sprint(s.k.Snapshot())
		plan := &faultPlan{kind: "torn", at: 6, keep: 20}
		s.env.wrap = func(h journal.Handle) journal.Handle { return faulty{h, plan} }
		purpose, changes := s.pinA()
		r, err := Apply(t.Context(), s.env, purpose, changes)
		if err == nil || r.Verdict != verdictUndone {
			t.Fatalf("verdict %q, error %v", r.Verdict, err)
		}
		if after := fmt.Sprint(s.k.Snapshot()); after != before {
			t.Errorf("not as before:\n%s\n%s", before, after)
		}
	})
}
