package rebalance

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	"github.com/unthrottle/unthrottle/placement"
)

func both(t *testing.T, test func(t *testing.T, v cgroup.Version)) {
	for _, v := range []cgroup.Version{cgroup.V1, cgroup.V2} {
		t.Run(v.String(), func(t *testing.T) { test(t, v) })
	}
}

// sockets counts the sockets that a set touches.
func sockets(set cpuset.CPUSet) int {
	n := 0
	for _, s := range []cpuset.CPUSet{cpuset.New(0, 1, 2, 3), cpuset.New(4, 5, 6, 7)} {
		if !s.Intersection(set).IsEmpty() {
			n++
		}
	}
	return n
}

// One container crosses L3s, another is in its way. After the run no container
// crosses, all CPUs are exclusive, and restore sets what was before the pins.
func TestRunRepairs(t *testing.T) {
	both(t, func(t *testing.T, v cgroup.Version) {
		h := newHost(t, v, 3)
		before := h.k.Snapshot()
		h.pin("3,4", "5", "1")
		moves := h.planned()
		if len(moves) == 0 {
			t.Fatal("nothing is planned")
		}
		h.k.Before = func(op cgroupmodel.Op) error {
			if bad := h.k.Check(); op.Changes() && len(bad) > 0 {
				t.Fatalf("before %v: %v", op, bad)
			}
			return nil
		}
		var told int
		done, err := Run(t.Context(), h.mover(), Options{Moves: moves, Done: func(Moved) { told++ }})
		h.must(err)
		if len(done) != len(moves) || told != len(moves) || done[0].ID == "" {
			t.Errorf("%d of %d moves done, told of %d", len(done), len(moves), told)
		}
		for i, set := range h.at()[:3] {
			if sockets(set) != 1 {
				t.Errorf("%d is on %s", i, set)
			}
		}
		h.must(overlap(h.at()))
		if again := h.planned(); len(again) > 0 {
			t.Errorf("still to do: %+v", again)
		}
		_, err = apply.Restore(context.Background(), h.env(), apply.Selector{})
		h.must(err)
		if diff := before.Diff(h.k.Snapshot()); len(diff) > 0 {
			t.Error(diff)
		}
	})
}

// swap changes the places of 0 and 1 with one free CPU, in steps, or in one
// moment.
func swaps(v cgroup.Version) map[string][]placement.Move {
	set := func(ids ...int) cpuset.CPUSet { return cpuset.New(ids...) }
	return map[string][]placement.Move{
		"by way of a free CPU": {
			{Container: "/a/0", From: set(1, 2), To: set(2, 7), Step: true},
			{Container: "/a/1", From: set(5, 6), To: set(1, 6), Step: true},
			{Container: "/a/0", From: set(2, 7), To: set(2, 5), Step: true},
			{Container: "/a/1", From: set(1, 6), To: set(1, 7), Step: true},
			{Container: "/a/0", From: set(2, 5), To: set(5, 6), Step: true},
			{Container: "/a/1", From: set(1, 7), To: set(1, 2)},
		},
		"at one moment": {
			{Container: "/a/0", From: set(1, 2), To: set(5, 6), Overlaps: true},
			{Container: "/a/1", From: set(5, 6), To: set(1, 2)},
		},
	}
}

// Killed before any operation: the next run undoes the interrupted change, sets stay
// disjoint, and restore undoes everything.
func TestKilledAtEveryPoint(t *testing.T) {
	both(t, func(t *testing.T, v cgroup.Version) {
		for name, moves := range swaps(v) {
			t.Run(name, func(t *testing.T) {
				points, states := 0, map[string]bool{}
				for n := 1; ; n++ {
					h := newHost(t, v, 2)
					before := h.k.Snapshot()
					h.pin("1,2", "5,6")
					count := 0
					h.k.Before = func(op cgroupmodel.Op) error {
						if !op.Changes() {
							return nil
						}
						if count++; count == n {
							panic(errCrash)
						}
						if bad := h.k.Check(); len(bad) > 0 {
							t.Fatalf("before %v: %v", op, bad)
						}
						if len(moves) > 2 {
							if err := overlap(h.at()[:2]); err != nil {
								t.Fatalf("before %v: %v", op, err)
							}
						}
						return nil
					}
					crashed, err := crashes(func() error { _, err := Run(t.Context(), h.mover(), Options{Moves: moves}); return err })
					h.must(err)
					h.k.Before = nil
					_, err = apply.Recover(context.Background(), h.env())
					h.must(err)
					if err := overlap(h.at()); err != nil {
						t.Fatalf("killed at point %d and recovered: %v", n, err)
					}
					states[h.at()[0].String()+" "+h.at()[1].String()] = true
					r, err := apply.Restore(context.Background(), h.env(), apply.Selector{})
					h.must(err)
					if diff := before.Diff(h.k.Snapshot()); len(diff) > 0 || len(r.Skipped) > 0 {
						t.Fatalf("killed at point %d: %q, skipped %v", n, diff, r.Skipped)
					}
					if !crashed {
						break
					}
					points++
				}
				if want := map[bool]int{true: 7, false: 2}[len(moves) > 2]; len(states) != want || points < 4 {
					t.Errorf("%d points, states %v: want %d", points, states, want)
				}
			})
		}
	})
}

// What changed since the plan was made ends the run, and says so.
func TestRunStops(t *testing.T) {
	move := placement.Move{Container: "/a/0", From: cpuset.New(1, 2), To: cpuset.New(5, 6)}
	for name, tc := range map[string]struct {
		change func(h *host)
		move   func(*placement.Move)
		says   string
	}{
		"restored": {change: func(h *host) {
			_, err := apply.Restore(context.Background(), h.env(), apply.Selector{})
			h.must(err)
		}, says: "nothing of ours"},
		"elsewhere":          {move: func(m *placement.Move) { m.From = cpuset.New(2, 3) }, says: "not on 2-3 as planned"},
		"reserved":           {move: func(m *placement.Move) { m.To = cpuset.New(0, 1) }, says: "the reserve"},
		"another's":          {change: func(h *host) { h.pinAt(1, "5") }, says: "the pin of /a/1"},
		"threads of its own": {change: func(h *host) { h.own[10] = cpuset.New(1) }, says: "chose CPUs for themselves"},
		"exclusive by others": {change: func(h *host) {
			h.k.Pin(cgroup.CPUSet, "/slice", cgroup.FileExclusive, "5")
			h.k.Pin(cgroup.CPUSet, "/slice", "cpuset.cpus.exclusive.effective", "5")
		}, says: "cpuset.cpus.exclusive of /slice"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, cgroup.V2, 2)
			h.pin("1,2")
			m := move
			if tc.change != nil {
				tc.change(h)
			}
			if tc.move != nil {
				tc.move(&m)
			}
			at := h.at()[0].String()
			done, err := Run(t.Context(), h.mover(), Options{Moves: []placement.Move{m}})
			if err == nil || !strings.Contains(err.Error(), tc.says) || len(done) > 0 {
				t.Errorf("%d done, error %v, want %q", len(done), err, tc.says)
			}
			if now := h.at()[0].String(); now != at {
				t.Errorf("it is on %s, was on %s", now, at)
			}
		})
	}
}

// An exchange is refused where the kernel forbids overlap, and where writes are
// too slow.
func TestOverlapIsRefused(t *testing.T) {
	h := newHost(t, cgroup.V1, 2)
	h.pin("1,2", "5,6")
	moves := swaps(cgroup.V1)["at one moment"]
	h.must(h.k.Write(cgroup.CPUSet, "/a/0", cgroup.FileExclusiveV1, "0"))
	f := h.facts()
	s := f.Sets["/a/0"]
	s.Exclusive = true
	f.Sets["/a/0"] = s
	r := &runner{env: h.mover()}
	both := []moving{{Held: h.held(0)}, {Held: h.held(1)}}
	if err := r.mayOverlap(f, both, 4); err == nil || !strings.Contains(err.Error(), "must not overlap") {
		t.Error(err)
	}
	r.perWrite = 20 * time.Millisecond
	if err := r.mayOverlap(h.facts(), both, 4); err == nil || !strings.Contains(err.Error(), "slow") {
		t.Error(err)
	}
	if n := together(moves); n != 2 {
		t.Errorf("%d moves at one moment", n)
	}
}

// Who must not be moved is not planned to be.
func TestStays(t *testing.T) {
	h := newHost(t, cgroup.V1, 2)
	h.pin("3,4", "5")
	h.own[10] = cpuset.New(3)
	if moves := h.planned(); len(moves) > 0 {
		t.Errorf("planned %+v", moves)
	}
	if why := Immovable(h.k, h, h.facts().Held)["/a/0"]; why != "1 of its 1 threads chose CPUs for themselves" {
		t.Errorf("why: %q", why)
	}
	if why := Immovable(h.k, nil, h.facts().Held)["/a/0"]; !strings.Contains(why, "no /proc") {
		t.Errorf("why: %q", why)
	}
}
