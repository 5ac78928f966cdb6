package apply

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// TestABurstOfOthersHoldsUpNoOther: a quota that cannot come back beside a burst that another program set meanwhile stays
// in force, with the reason; the other transactions are undone, and new ones can be made.
func TestABurstOfOthersHoldsUpNoOther(t *testing.T) {
	bothVersions(t, func(t *testing.T, v cgroup.Version) {
		s := newScene(t, v)
		before := s.k.Snapshot()
		off := s.unlimited("/pods/a")[:1]
		kept := s.apply(txn.Purpose{Target: txn.Target{Path: "/pods/a"}}, off).ID
		s.apply(txn.Purpose{Target: txn.Target{Path: "/pods/b"}}, []change.Change{cpus("/pods/b", "0-3")})
		quota, burst := cgroup.LimitFiles(v)[0], s.unlimited("/pods/a")[1].File
		s.must(s.k.Write(cgroup.CPU, "/pods/a", burst, "300000"))

		r, err := Restore(t.Context(), s.env, Selector{})
		var not *NotRestored
		if !errors.As(err, &not) || len(not.Left) != 1 || not.Left[0].Path != "/pods/a" || r.Verdict != verdictNotRestored {
			t.Fatalf("%q, %v", r.Verdict, err)
		}
		if why := whys(r)["/pods/a "+quota]; !strings.Contains(why, "burst 300ms is above the quota 200ms") ||
			!strings.Contains(why, "run unthrottle restore") {
			t.Errorf("skipped %v", r.Skipped)
		}
		if got := s.read(cgroup.CPUSet, "/pods/b", cgroup.FileCPUs); got != "0-7" {
			t.Errorf("/pods/b was not put back: %q", got)
		}
		open, err := Status(s.env)
		s.must(err)
		if len(open) != 1 || open[0].ID != kept {
			t.Errorf("in force: %+v", open)
		}
		s.apply(txn.Purpose{Target: txn.Target{Path: "/pods/c"}}, []change.Change{cpus("/pods/c", "0-3")})
		if again, err := Recover(t.Context(), s.env); err != nil || again.Verdict != verdictNotRestored {
			t.Errorf("recovered: %q, %v", again.Verdict, err)
		}
		s.must(s.k.Write(cgroup.CPU, "/pods/a", burst, "50000"))
		s.must(s.everythingBack(before))
	})
}

// TestTheThirdKeepsTheSecond: what one change took out can be all that an earlier one left, once the one between is gone.
// The value then stays, the change in the way is named, and without it everything comes back.
func TestTheThirdKeepsTheSecond(t *testing.T) {
	bothVersions(t, func(t *testing.T, v cgroup.Version) {
		s := newScene(t, v)
		before := s.k.Snapshot()
		var ids []string
		for _, c := range []change.Change{cpus("/pods/b", "7"), cpus("/pods/b", "6-7"), without("/pods/b", "7")} {
			ids = append(ids, s.apply(txn.Purpose{Target: txn.Target{Path: "/pods/a"}}, []change.Change{c}).ID)
		}
		restore := func(id string) (Result, error) { return Restore(t.Context(), s.env, Selector{IDs: []string{id}}) }
		r, err := restore(ids[1])
		var not *NotRestored
		if !errors.As(err, &not) || !strings.Contains(err.Error(), "first run unthrottle restore "+ids[2]+";") ||
			r.Verdict != verdictNotRestored {
			t.Errorf("%+v, %v", r, err)
		}
		if got := s.read(cgroup.CPUSet, "/pods/b", cgroup.FileCPUs); got != "6" {
			t.Errorf("/pods/b has %q", got)
		}
		for _, i := range []int{2, 1} {
			_, err := restore(ids[i])
			s.must(err)
			if got := s.read(cgroup.CPUSet, "/pods/b", cgroup.FileCPUs); got != "7" {
				t.Errorf("after %d: /pods/b has %q", i, got)
			}
		}
		s.must(s.everythingBack(before))
	})
}

// TestAFailingFallbackHoldsUpNoOther: what a kernel that cannot clear a list refuses instead stays in force, and the
// steps behind it are done.
func TestAFailingFallbackHoldsUpNoOther(t *testing.T) {
	s := newScene(t, cgroup.V2)
	s.k.Exit(10)
	s.must(s.k.Write(cgroup.CPUSet, "/pods/a", cgroup.FileCPUs, ""))
	s.k.Spawn("/pods/a", 12)
	s.apply(txn.Purpose{}, []change.Change{without("/pods/a", "6-7"), without("/pods/b", "6-7")})
	s.k.Before = func(op cgroupmodel.Op) error {
		if op.Changes() && op.Path == "/pods/a" && op.Value == "0-7" {
			return &cgroup.Error{Op: op.Kind, Path: op.Path, File: op.File, Value: op.Value, Errno: unix.EINVAL}
		}
		return nil
	}
	r, err := Restore(t.Context(), s.env, Selector{})
	var not *NotRestored
	if !errors.As(err, &not) || len(not.Left) != 1 || not.Left[0].Path != "/pods/a" {
		t.Errorf("%+v, %v", r, err)
	}
	if got := s.read(cgroup.CPUSet, "/pods/b", cgroup.FileCPUs); got != "0-7" {
		t.Errorf("the step behind it was not done: /pods/b has %q", got)
	}
	s.k.Before = nil
	r, err = Restore(t.Context(), s.env, Selector{})
	s.must(err)
	if got := s.read(cgroup.CPUSet, "/pods/a", cgroup.FileCPUs); got != "0-7" || whys(r)["/pods/a "+cgroup.FileCPUs] != WhyNotCleared {
		t.Errorf("/pods/a has %q, skipped %v", got, r.Skipped)
	}
}

func TestNotRestoredSaysWhatStays(t *testing.T) {
	var left []txn.Skip
	for i := range 5 {
		left = append(left, txn.Skip{Path: fmt.Sprintf("/p\xff%d", i), File: "cpu.max", Why: "refused"})
	}
	text := (&NotRestored{Left: left}).Error()
	for _, part := range []string{`cgroup "/p\xff0": cpu.max stays in force: refused`, "and 2 more", "run unthrottle restore"} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in %q", part, text)
		}
	}
	if strings.Contains(text, "\xff") || strings.Contains(text, `p\xff3`) {
		t.Errorf("not bounded or not escaped: %q", text)
	}
}
