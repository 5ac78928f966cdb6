package apply

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// try applies on trial for a minute.
func (s *scene) try(purpose txn.Purpose, changes []change.Change) string {
	s.t.Helper()
	purpose.Trial = time.Minute
	return s.apply(purpose, changes).ID
}

// judgeEnds lets the process that judges trials end.
func (s *scene) judgeEnds(ended bool) { s.env.Proc = modelProc{k: s.k, ended: ended} }

// status is the verdict and the state of the trial of each transaction that is open.
func (s *scene) status() string {
	s.t.Helper()
	open, err := Status(s.env)
	s.must(err)
	var all []string
	for _, f := range open {
		state := "-"
		if f.Trial != nil {
			state = string(f.Trial.State)
		}
		all = append(all, f.Remedy+" "+f.Verdict+" "+state)
	}
	return strings.Join(all, ", ")
}

// A transaction is on trial while the process that judges it runs. Other writers leave it. After its end, the next
// writer rolls it back. What was kept stays.
func TestTrial(t *testing.T) {
	bothVersions(t, func(t *testing.T, v cgroup.Version) {
		for _, kept := range []bool{false, true} {
			s := newScene(t, v)
			before := s.k.Snapshot()
			id := s.try(s.pinA())
			with := s.k.Snapshot()
			if got := s.status(); got != "pin on trial running" {
				t.Errorf("status %q", got)
			}
			r, err := Recover(t.Context(), s.env)
			s.must(err)
			if len(r.Writes) > 0 {
				t.Errorf("rolled back under the one who judges it: %v", r.Writes)
			}
			if drift, err := Drift(s.env); err != nil || len(drift) > 0 {
				t.Errorf("drift %v, %v", drift, err)
			}
			want := before
			if kept {
				ids, err := Keep(t.Context(), s.env, id)
				if err != nil || len(ids) != 1 || ids[0] != id {
					t.Fatalf("kept %v, %v", ids, err)
				}
				want = with
			}
			s.judgeEnds(true)
			if got := s.status(); (got == "pin unverified -") != kept || (got == "pin trial abandoned abandoned") == kept {
				t.Errorf("kept %v: status %q", kept, got)
			}
			r, err = Recover(t.Context(), s.env)
			s.must(err)
			if diff := cmp.Diff(want, s.k.Snapshot()); diff != "" {
				t.Errorf("kept %v:\n%s", kept, diff)
			}
			if said := fmt.Sprint(r.Warnings); strings.Contains(said, "process 1000, which was to judge it, has ended") == kept {
				t.Errorf("kept %v: said %s", kept, said)
			}
			if _, err := Keep(t.Context(), s.env, id); !errors.As(err, new(*NotOnTrial)) {
				t.Errorf("kept too late: %v", err)
			}
		}
	})
}

// An abandoned trial and what was cut off beside it are rolled back together, and the history tells each by its own reason.
func TestReasonsOfOneRecovery(t *testing.T) {
	s := newScene(t, cgroup.V1)
	s.try(s.pinA())
	s.k.Before = func(op cgroupmodel.Op) error {
		if op.Changes() {
			panic(errCrash)
		}
		return nil
	}
	purpose, changes := s.pinC()
	crashed, err := crashes(func() error {
		_, err := Apply(t.Context(), s.env, purpose, changes)
		return err
	})
	if s.k.Before = nil; !crashed || err != nil {
		t.Fatalf("crashed: %v, %v", crashed, err)
	}
	s.judgeEnds(true)
	_, err = Recover(t.Context(), s.env)
	s.must(err)
	past, err := History(s.env, 0)
	s.must(err)
	if len(past) != 2 || past[0].Reason != "interrupted" || past[1].Reason != "trial abandoned" {
		t.Errorf("%+v", past)
	}
}

// Time alone decides where it cannot be told whether the process runs, and of one that hangs. A restart of the machine
// ends every trial.
func TestTrialEndsByTime(t *testing.T) {
	for name, tc := range map[string]struct {
		after  time.Duration
		proc   bool
		reboot bool
		want   txn.TrialState
	}{
		"due":          {time.Minute + trialGrace, true, false, txn.TrialRunning},
		"hangs":        {time.Minute + trialGrace + time.Second, true, false, txn.TrialOverdue},
		"no /proc":     {2 * time.Minute, false, false, txn.TrialRunning},
		"no /proc, on": {time.Hour, false, false, txn.TrialOverdue},
		"restarted":    {0, true, true, txn.TrialAbandoned},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, cgroup.V1)
			now := time.Unix(1_700_000_000, 0)
			s.env.Now = func() time.Time { return now }
			before := s.k.Snapshot()
			if !tc.proc {
				s.env.Proc = nil
			}
			s.try(s.pinA())
			now = now.Add(tc.after)
			if tc.reboot {
				s.env.BootID = "boot-2"
			}
			open, err := Status(s.env)
			s.must(err)
			if got := open[0].Trial.State; got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
			_, err = Recover(t.Context(), s.env)
			s.must(err)
			if back := cmp.Equal(before, s.k.Snapshot()); back != (tc.want != txn.TrialRunning && !tc.reboot) {
				t.Errorf("rolled back: %v", back)
			}
			open, err = Status(s.env)
			if s.must(err); (len(open) == 0) != (tc.want != txn.TrialRunning) {
				t.Errorf("open: %v", open)
			}
		})
	}
}

// What belongs to a transaction on trial, and what takes its place, shares its trial: it is kept, undone and rolled back
// with it.
func TestTrialIsShared(t *testing.T) {
	bothVersions(t, func(t *testing.T, v cgroup.Version) {
		for _, end := range []string{"kept", "undone", "abandoned"} {
			s := newScene(t, v)
			before := s.k.Snapshot()
			id := s.try(s.pinA())
			purpose, changes := s.pinC()
			purpose.BelongsTo = id
			s.apply(purpose, changes)
			moved, _ := s.pinA()
			done, err := Replace(t.Context(), s.env, []txn.Part{{Purpose: moved, Replaces: []string{id},
				Changes: []change.Change{cpus("/pods/a", "2-3")}}})
			s.must(err)
			with := s.k.Snapshot()
			if got := s.status(); got != "pin on trial running, pin on trial running" {
				t.Errorf("status %q", got)
			}
			switch end {
			case "kept":
				ids, err := Keep(t.Context(), s.env, id)
				if err != nil || len(ids) != 2 || ids[1] != done.ID {
					t.Errorf("kept %v, %v", ids, err)
				}
				before = with
			case "undone":
				_, err = Restore(t.Context(), s.env, Selector{IDs: []string{id}})
			case "abandoned":
				s.judgeEnds(true)
				_, err = Recover(t.Context(), s.env)
			}
			s.must(err)
			if diff := cmp.Diff(before, s.k.Snapshot()); diff != "" {
				t.Errorf("%s:\n%s", end, diff)
			}
		}
	})
}

// deadly is a journal whose process is killed at its n-th use: before it, or in the middle of a line.
type deadly struct {
	journal.Handle
	left *int
}

func (d deadly) Write(p []byte) (int, error) {
	if *d.left--; *d.left == 0 {
		_, _ = d.Handle.Write(p[:len(p)/2])
		panic(errCrash)
	}
	return d.Handle.Write(p)
}

func (d deadly) Sync() error {
	if *d.left--; *d.left == 0 {
		panic(errCrash)
	}
	return nil
}

// TestTrialKilledAtEveryPoint kills a process that tries one remedy, undoes it, tries another and keeps it: before each
// operation on the cgroups and within each use of the journal, between write and verdict too. The next writer leaves
// what was there before, or what was kept.
func TestTrialKilledAtEveryPoint(t *testing.T) {
	bothVersions(t, func(t *testing.T, v cgroup.Version) {
		outcomes := map[string]int{}
		for n := 1; ; n += stride() {
			s := newScene(t, v)
			s.apply(s.pinC()) // in force all along
			before := s.k.Snapshot()
			var with cgroupmodel.Snapshot
			left := n
			s.env.wrap = func(h journal.Handle) journal.Handle { return deadly{noSync{h}, &left} }
			s.k.Before = func(cgroupmodel.Op) error {
				if left--; left == 0 {
					panic(errCrash)
				}
				return nil
			}
			crashed, err := crashes(func() error {
				ctx := context.Background()
				id := s.try(s.pinAlone())
				if _, err := Restore(ctx, s.env, Selector{IDs: []string{id}}); err != nil {
					return err
				}
				id = s.try(s.pinA())
				err := Record(s.env, id, txn.Outcome{Verdict: "better"})
				if err == nil {
					_, err = Keep(ctx, s.env, id)
				}
				return err
			})
			s.must(err)
			s.env.wrap, s.k.Before = wrapNoSync, nil
			s.judgeEnds(true)
			all, err := journal.Load(s.env.StateDir)
			s.must(err)
			kept := false
			for _, open := range all.Open() {
				if kept = kept || open.Trial != nil && open.Phase == journal.InForce; kept {
					with = s.k.Snapshot()
				}
			}
			if _, err := Recover(t.Context(), s.env); err != nil {
				t.Fatalf("killed at point %d: %v", n, err)
			}
			want := before
			if outcomes[fmt.Sprint("kept ", kept)]++; kept {
				want = with
			}
			if diff := cmp.Diff(want, s.k.Snapshot()); diff != "" {
				t.Fatalf("killed at point %d, kept %v:\n%s", n, kept, diff)
			}
			if open, err := Status(s.env); err != nil || len(open) != 1 && !kept {
				t.Fatalf("killed at point %d: %v, %v", n, open, err)
			}
			if !crashed {
				if !kept {
					t.Error("not kept in the end")
				}
				break
			}
		}
		t.Logf("%v", outcomes)
		if outcomes["kept false"] < 30/stride() {
			t.Errorf("%v: too few points", outcomes)
		}
	})
}

// This process runs; a child that was killed does not, whether or not it was waited for.
func TestProcRuns(t *testing.T) {
	require.Root(t)
	p := NewProc("/proc").(procFS)
	own, err := p.Self()
	if err != nil || own.Started == 0 || own.Namespace == 0 {
		t.Fatalf("%+v, %v", own, err)
	}
	if runs, err := p.Runs(own); err != nil || !runs {
		t.Errorf("this process runs: %v, %v", runs, err)
	}
	later := own
	later.Started++
	if runs, err := p.Runs(later); err != nil || runs {
		t.Errorf("another with its number runs: %v, %v", runs, err)
	}
	elsewhere := own
	elsewhere.Namespace++
	if _, err := p.Runs(elsewhere); err == nil {
		t.Error("told of another PID namespace")
	}
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	child := own
	child.PID = cmd.Process.Pid
	if child.Started, err = p.started(child.PID); err != nil {
		t.Fatal(err)
	}
	if runs, err := p.Runs(child); err != nil || !runs {
		t.Errorf("the child runs: %v, %v", runs, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if runs, err := p.Runs(child); err != nil || !runs {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if runs, err := p.Runs(child); err != nil || runs {
		t.Errorf("killed and not waited for: %v, %v", runs, err)
	}
	_ = cmd.Wait()
	if runs, err := p.Runs(child); err != nil || runs {
		t.Errorf("killed and waited for: %v, %v", runs, err)
	}
}
