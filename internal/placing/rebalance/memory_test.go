package rebalance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"golang.org/x/sys/unix"
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	"github.com/unthrottle/unthrottle/placement"
)

// memory is what processes have, in a model: node to bytes.
type memory struct {
	h     *host
	at    map[int]map[int]uint64
	stuck uint64 // bytes that never move
	seen  []string
	where func(pid int) error // nil: all can be looked at
}

func (m *memory) Where(pid int) (map[int]uint64, error) {
	if m.where != nil {
		if err := m.where(pid); err != nil {
			return nil, err
		}
	}
	if m.at[pid] == nil {
		return nil, errors.New("no such process")
	}
	return m.at[pid], nil
}

// Move moves all but what is stuck, and notes which nodes were allowed then.
func (m *memory) Move(_ context.Context, pid int, nodes []int) error {
	path, _ := m.h.k.At(pid, cgroup.CPUSet)
	mems, err := m.h.k.Read(cgroup.CPUSet, path, cgroup.EffectiveMemsFile(m.h.v))
	m.seen = append(m.seen, mems)
	moved := map[int]uint64{}
	for node, n := range m.at[pid] {
		stays := min(n, m.stuck)
		if node == nodes[0] {
			stays = 0
		}
		moved[node] += stays
		moved[nodes[0]] += n - stays
	}
	m.at[pid] = moved
	return err
}

func (h *host) mems(i int) string {
	h.t.Helper()
	text, err := h.k.Read(cgroup.CPUSet, h.containers[i].Group.Path, cgroup.EffectiveMemsFile(h.v))
	h.must(err)
	return text
}

// A container's memory follows its CPUs to the other node: nodes are wide while
// pages move, narrow when nearly all are there, and restore brings all back.
func TestMemoryFollows(t *testing.T) {
	both(t, func(t *testing.T, v cgroup.Version) {
		h := newHost(t, v, 1)
		before := h.k.Snapshot()
		h.pin("1,2")
		m := &memory{h: h, at: map[int]map[int]uint64{10: {0: 900, 1: 100}}}
		env := h.mover()
		env.Pager = m
		got, err := Follow(t.Context(), env, m, "/a/0")
		h.must(err)
		if !got.Narrowed || got.Remote == nil || *got.Remote != 0 || h.mems(0) != "0" || m.seen[0] != "0-1" {
			t.Errorf("%+v, nodes %s, while moving %v", got, h.mems(0), m.seen)
		}
		_, err = Run(t.Context(), env, Options{Moves: []placement.Move{{Container: "/a/0", From: cpuset.New(1, 2), To: cpuset.New(5, 6)}}})
		h.must(err)
		if h.mems(0) != "1" || m.at[10][1] != 1000 || m.seen[len(m.seen)-1] != "0-1" {
			t.Errorf("nodes %s, memory %v, while moving %v", h.mems(0), m.at[10], m.seen)
		}
		if n := len(h.facts().Held); n != 2 {
			t.Errorf("%d transactions: want the pin and its memory nodes", n)
		}
		r, err := apply.Restore(context.Background(), h.env(), apply.Selector{Target: "/a/0"})
		h.must(err)
		if diff := before.Diff(h.k.Snapshot()); len(diff) > 0 || len(r.Skipped) > 0 {
			t.Errorf("%q, skipped %v", diff, r.Skipped)
		}
	})
}

// Where too much of it stays behind, the nodes stay wide.
func TestMemoryThatStaysKeepsItsNodes(t *testing.T) {
	h := newHost(t, cgroup.V2, 1)
	h.pin("5,6")
	m := &memory{h: h, stuck: 50, at: map[int]map[int]uint64{10: {0: 900, 1: 100}}}
	got, err := Follow(t.Context(), h.mover(), m, "/a/0")
	h.must(err)
	if got.Narrowed || got.Remote == nil || *got.Remote != 0.05 || h.mems(0) != "0-1" {
		t.Errorf("%+v, nodes %s", got, h.mems(0))
	}
	m.stuck = 9
	got, err = Follow(t.Context(), h.mover(), m, "/a/0")
	h.must(err)
	if !got.Narrowed || h.mems(0) != "1" {
		t.Errorf("%+v, nodes %s", got, h.mems(0))
	}
}

// Memory that could not be looked at may be anywhere: the nodes stay wide, and
// why is told. That a process ended is no reason.
func TestMemoryNotSeenKeepsItsNodes(t *testing.T) {
	denied := fmt.Errorf("process 11: %w", fs.ErrPermission)
	for _, tc := range []struct {
		name  string
		where func(h *host, pid int) error
		want  error
	}{
		{"denied", func(*host, int) error { return denied }, denied},
		{"no such file, and the process is there", func(*host, int) error { return fs.ErrNotExist }, fs.ErrNotExist},
		{"ended while it was read", func(*host, int) error { return unix.ESRCH }, nil},
		{"ended before", func(h *host, pid int) error { h.k.Exit(pid); return fs.ErrNotExist }, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			both(t, func(t *testing.T, v cgroup.Version) {
				h := newHost(t, v, 1)
				h.k.Spawn("/a/0", 11)
				h.pin("5,6")
				m := &memory{h: h, at: map[int]map[int]uint64{10: {0: 1000}, 11: {0: 1000}}}
				m.where = func(pid int) error {
					if pid != 11 {
						return nil
					}
					return tc.where(h, pid)
				}
				got, err := Follow(t.Context(), h.mover(), m, "/a/0")
				h.must(err)
				want := map[bool]string{true: "1", false: "0-1"}[tc.want == nil]
				if got.Narrowed != (tc.want == nil) || (got.Remote != nil) != got.Narrowed ||
					!errors.Is(got.Unseen, tc.want) || h.mems(0) != want {
					t.Errorf("%+v, nodes %s, want %s and %v", got, h.mems(0), want, tc.want)
				}
			})
		})
	}
}

// Where none of it could be looked at, that is not 0 on other nodes: cpuset.mems
// is left as it was, for one process that is there as for a container without
// any memory.
func TestMemoryOfNothingSeen(t *testing.T) {
	for name, where := range map[string]func(h *host, pid int) error{
		"denied":    func(*host, int) error { return fs.ErrPermission },
		"none left": func(h *host, pid int) error { h.k.Exit(pid); return unix.ESRCH },
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, v cgroup.Version) {
				h := newHost(t, v, 1)
				h.pin("5,6")
				before := h.mems(0)
				m := &memory{h: h, at: map[int]map[int]uint64{10: {0: 1000}}}
				m.where = func(pid int) error { return where(h, pid) }
				got, err := Follow(t.Context(), h.mover(), m, "/a/0")
				h.must(err)
				if got.Narrowed || got.Remote != nil || h.mems(0) != before {
					t.Errorf("%+v, nodes %s, before %s", got, h.mems(0), before)
				}
			})
		})
	}
}

// Killed anywhere: the container has memory nodes, and restore brings all back.
func TestMemoryKilledAtEveryPoint(t *testing.T) {
	both(t, func(t *testing.T, v cgroup.Version) {
		points := 0
		for n := 1; ; n++ {
			h := newHost(t, v, 1)
			before := h.k.Snapshot()
			h.pin("1,2")
			m := &memory{h: h, at: map[int]map[int]uint64{10: {0: 1000}}}
			env := h.mover()
			env.Pager = m
			count := 0
			h.k.Before = func(op cgroupmodel.Op) error {
				if !op.Changes() {
					return nil
				}
				if count++; count == n {
					panic(errCrash)
				}
				return nil
			}
			crashed, err := crashes(func() error {
				if _, err := Follow(t.Context(), env, m, "/a/0"); err != nil {
					return err
				}
				_, err := Run(t.Context(), env,
					Options{Moves: []placement.Move{{Container: "/a/0", From: cpuset.New(1, 2), To: cpuset.New(5, 6)}}})
				return err
			})
			h.must(err)
			h.k.Before = nil
			if bad := h.k.Check(); len(bad) > 0 || h.mems(0) == "" {
				t.Fatalf("point %d: %v, nodes %q", n, bad, h.mems(0))
			}
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
		if points < 5 {
			t.Errorf("only %d points", points)
		}
	})
}

func TestFollowRefuses(t *testing.T) {
	h := newHost(t, cgroup.V1, 1)
	if _, err := Follow(t.Context(), h.mover(), &memory{h: h}, "/a/0"); err == nil {
		t.Error("nothing is in force, and no error")
	}
}
