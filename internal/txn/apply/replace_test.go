package apply

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// alone is the path of the target of pinAlone.
func (s *scene) alone() string {
	if s.v == cgroup.V2 {
		return "/slice/unit"
	}
	return "/svc"
}

// moves pins three and moves them: to free CPUs, two of them each to the other's at one moment, and one that lives in a
// cpuset made for it to fewer.
func (s *scene) moves() error {
	ctx := context.Background()
	at := map[string]string{}
	for _, pin := range []struct {
		name string
		make func() (txn.Purpose, []change.Change)
	}{{"a", s.pinA}, {"c", s.pinC}, {"alone", s.pinAlone}} {
		purpose, changes := pin.make()
		r, err := Apply(ctx, s.env, purpose, changes)
		if err != nil {
			return err
		}
		at[pin.name] = r.ID
	}
	part := func(name, path string, changes ...change.Change) txn.Part {
		return txn.Part{Purpose: txn.Purpose{Target: txn.Target{Path: path}, Remedy: "pin"}, Changes: changes, Replaces: []string{at[name]}}
	}
	r, err := Replace(ctx, s.env, []txn.Part{
		part("a", "/pods/a", cpus("/pods/a", "1,6"), without("/pods/b", "1,6"), without("/pods/c", "1,6"))})
	if err != nil {
		return err
	}
	at["a"] = r.ID
	r, err = Replace(ctx, s.env, []txn.Part{
		part("a", "/pods/a", cpus("/pods/a", "4-5"), without("/pods/b", "4-5"), without("/pods/c", "4-5")),
		part("c", "/pods/c", cpus("/pods/c", "1,6"), without("/pods/b", "1,6")),
	})
	if err != nil {
		return err
	}
	at["a"], at["c"] = r.IDs[0], r.IDs[1]
	_, err = Replace(ctx, s.env, []txn.Part{part("alone", s.alone(), cpus(s.alone(), "3"), without("/pods", "3"),
		without("/pods/a", "3"), without("/pods/b", "3"), without("/pods/c", "3"))})
	return err
}

// where tells which CPUs a, b, c and the one alone may use.
func (s *scene) where() string {
	var all []string
	pids := []int{10, 20, 30, 50}
	if s.v == cgroup.V2 {
		pids[3] = 60
	}
	for _, pid := range pids {
		set, _ := s.k.Allowed(pid)
		all = append(all, set.String())
	}
	return strings.Join(all, " ")
}

func TestReplace(t *testing.T) {
	bothVersions(t, func(t *testing.T, v cgroup.Version) {
		s := newScene(t, v)
		before := s.k.Snapshot()
		s.must(s.moves())
		if got, want := s.where(), "4-5 0,2,7 1,6 3"; got != want {
			t.Errorf("they may use %s, want %s", got, want)
		}
		open, err := Status(s.env)
		s.must(err)
		past, err := History(s.env, 0)
		s.must(err)
		if len(open) != 3 || len(past) != 4 || !strings.HasPrefix(past[0].Reason, "replaced by ") {
			t.Errorf("%d in force, past %+v", len(open), past)
		}
		drift, err := Drift(s.env)
		s.must(err)
		if len(drift) > 0 {
			t.Errorf("drift %+v", drift)
		}
		s.must(s.everythingBack(before))
	})
}

// TestReplaceKilledAtEveryPoint: what is in force after the way back of what was interrupted is one of the states that
// were wanted, with disjoint sets, and restore brings back all.
func TestReplaceKilledAtEveryPoint(t *testing.T) {
	bothVersions(t, func(t *testing.T, v cgroup.Version) {
		wanted := map[string]bool{}
		points := 0
		for n := 1; ; n += stride() {
			s := newScene(t, v)
			before := s.k.Snapshot()
			s.killAt(n)
			crashed, err := crashes(s.moves)
			s.must(err)
			s.k.Before = nil
			if _, err := Recover(context.Background(), s.env); err != nil {
				t.Fatalf("point %d: %v", n, err)
			}
			wanted[s.where()] = true
			if err := s.everythingBack(before); err != nil {
				t.Fatalf("killed at point %d: %v", n, err)
			}
			if !crashed {
				break
			}
			points = n
		}
		// As it was; a pinned; c; the one alone; a moved; exchanged; the last moved.
		if t.Logf("%d points, %d states", points, len(wanted)); len(wanted) != 7 && !testing.Short() || points < 100 {
			t.Errorf("states after recovery: %q", fmt.Sprint(wanted))
		}
	})
}

// TestReplaceRefusedAtEveryPoint: one write fails, and what was in force before is again.
func TestReplaceRefusedAtEveryPoint(t *testing.T) {
	bothVersions(t, func(t *testing.T, v cgroup.Version) {
		for n := 1; ; n++ {
			s := newScene(t, v)
			before := s.k.Snapshot()
			refused, err := s.refusing(n, s.moves)
			if refused != "" && err == nil {
				t.Fatalf("point %d (%s): no error", n, refused)
			}
			if bad := s.k.Check(); len(bad) > 0 {
				t.Fatalf("point %d: %v", n, bad)
			}
			if backErr := s.everythingBack(before); backErr != nil {
				t.Fatalf("point %d (%s, error %v): %v", n, refused, err, backErr)
			}
			if refused == "" {
				s.must(err)
				return
			}
		}
	})
}

// A replaced setting that a stranger wrote meanwhile is taken over: what the stranger wrote is what restore puts back.
func TestReplaceAfterDrift(t *testing.T) {
	bothVersions(t, func(t *testing.T, v cgroup.Version) {
		s := newScene(t, v)
		id := s.apply(s.pinA()).ID
		s.must(s.k.Write(cgroup.CPUSet, "/pods/a", "cpuset.cpus", "0-3"))
		_, err := Replace(t.Context(), s.env, []txn.Part{{Purpose: txn.Purpose{Target: txn.Target{Path: "/pods/a"}, Remedy: "pin"},
			Changes: []change.Change{cpus("/pods/a", "6-7")}, Replaces: []string{id}}})
		s.must(err)
		if got := s.read(cgroup.CPUSet, "/pods/a", "cpuset.cpus"); got != "6-7" {
			t.Errorf("it has %s", got)
		}
		_, err = Restore(t.Context(), s.env, Selector{})
		s.must(err)
		if got := s.read(cgroup.CPUSet, "/pods/a", "cpuset.cpus"); got != "0-3" {
			t.Errorf("restored to %s", got)
		}
		if got := s.read(cgroup.CPUSet, "/pods/b", "cpuset.cpus"); got != "0-7" {
			t.Errorf("b has %s", got)
		}
	})
}

func TestReplaceKeepsTheOutcome(t *testing.T) {
	s := newScene(t, cgroup.V1)
	id := s.apply(s.pinA()).ID
	s.must(Record(s.env, id, txn.Outcome{Verdict: "better", Note: "p99"}))
	r, err := Replace(t.Context(), s.env,
		[]txn.Part{{Purpose: txn.Purpose{Target: txn.Target{Path: "/pods/a"}}, Changes: []change.Change{cpus("/pods/a", "5-6")},
			Replaces: []string{id}}})
	s.must(err)
	open, err := Status(s.env)
	s.must(err)
	if len(open) != 1 || open[0].ID != r.ID || open[0].Verdict != "better" {
		t.Errorf("%+v", open)
	}
	if _, err := Replace(t.Context(), s.env, []txn.Part{{Replaces: []string{id}}}); err == nil ||
		!strings.Contains(err.Error(), "plan again") {
		t.Errorf("replaced twice: %v", err)
	}
}

// What a person made stays the person's, also where the agent moves it, or sets it again: the agent undoes its own changes.
func TestReplaceKeepsWhoMadeIt(t *testing.T) {
	s := newScene(t, cgroup.V1)
	s.env.By = "user"
	id := s.apply(s.pinA()).ID
	s.env.By = "agent"
	for _, set := range []string{"5-6", "1,6"} {
		r, err := Replace(t.Context(), s.env, []txn.Part{{Purpose: txn.Purpose{Target: txn.Target{Path: "/pods/a"}},
			Changes: []change.Change{cpus("/pods/a", set)}, Replaces: []string{id}}})
		s.must(err)
		id = r.ID
	}
	open, err := Status(s.env)
	s.must(err)
	if len(open) != 1 || open[0].By != "user" {
		t.Errorf("%+v", open)
	}
}
