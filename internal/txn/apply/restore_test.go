package apply

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
)

func (s *scene) apply(purpose txn.Purpose, changes []change.Change) Result {
	s.t.Helper()
	r, err := Apply(context.Background(), s.env, purpose, changes)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *scene) read(c cgroup.Controller, path, file string) string {
	s.t.Helper()
	text, err := s.k.Read(c, path, file)
	s.must(err)
	return text
}

// whys are the reasons in Skipped, by path.
func whys(r Result) map[string]string {
	all := map[string]string{}
	for _, s := range r.Skipped {
		all[s.Path+" "+s.File] = s.Why
	}
	return all
}

func TestPlanIsWhatApplyDoes(t *testing.T) {
	bothVersions(t, func(t *testing.T, v cgroup.Version) {
		s := newScene(t, v)
		before := fmt.Sprint(s.k.Snapshot())
		purpose, changes := s.pinA()
		plan, err := Plan(s.env, purpose, changes)
		s.must(err)
		if after := fmt.Sprint(s.k.Snapshot()); after != before {
			t.Error("planning changed something")
		}
		if _, err := os.Stat(s.env.StateDir); err == nil {
			t.Error("planning made a state directory")
		}
		done := s.apply(purpose, changes)
		if plan.Verdict != verdictPlanned || done.Verdict != verdictUnverified {
			t.Errorf("verdicts %q, %q", plan.Verdict, done.Verdict)
		}
		for i := range plan.Writes {
			if plan.Writes[i].Done || !done.Writes[i].Done {
				t.Errorf("write %d: done %v when planned, %v when applied", i, plan.Writes[i].Done, done.Writes[i].Done)
			}
			plan.Writes[i].Done = true
		}
		if diff := cmp.Diff(plan.Writes, done.Writes); diff != "" {
			t.Error(diff)
		}
	})
}

func TestPlanRestoreIsWhatRestoreDoes(t *testing.T) {
	bothVersions(t, func(t *testing.T, v cgroup.Version) {
		s := newScene(t, v)
		s.apply(s.pinA())
		s.must(s.k.Write(cgroup.CPUSet, "/pods/b", cgroup.FileCPUs, "0-1")) // another program's
		before := fmt.Sprint(s.k.Snapshot())
		kept, err := os.ReadFile(journal.File(s.env.StateDir))
		s.must(err)
		plan, err := PlanRestore(context.Background(), s.env, Selector{})
		s.must(err)
		if after := fmt.Sprint(s.k.Snapshot()); after != before {
			t.Error("planning changed something")
		}
		if now, err := os.ReadFile(journal.File(s.env.StateDir)); err != nil || string(now) != string(kept) {
			t.Errorf("planning wrote to the journal: %v", err)
		}
		done, err := Restore(context.Background(), s.env, Selector{})
		s.must(err)
		if plan.Verdict != verdictPlanned || len(plan.Writes) == 0 {
			t.Errorf("%d writes, %s", len(plan.Writes), plan.Verdict)
		}
		for i := range plan.Writes {
			plan.Writes[i].Done = true
		}
		if diff := cmp.Diff(plan.Writes, done.Writes); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(plan.Skipped, done.Skipped); diff != "" {
			t.Error(diff)
		}
		if again, err := PlanRestore(context.Background(), s.env, Selector{}); err != nil || again.Verdict != VerdictNothing {
			t.Errorf("with nothing in force: %s, %v", again.Verdict, err)
		}
	})
}

// TestForeignValuesAreLeft: a value that another program wrote since stays, is reported, and the rest is put back.
func TestForeignValuesAreLeft(t *testing.T) {
	bothVersions(t, func(t *testing.T, v cgroup.Version) {
		s := newScene(t, v)
		s.apply(s.pinA())
		s.must(s.k.Write(cgroup.CPUSet, "/pods/b", cgroup.FileCPUs, "0-1"))
		drift, err := Drift(s.env)
		s.must(err)
		if len(drift) != 1 || drift[0].Path != "/pods/b" || drift[0].Want != "0-5" || drift[0].Current != "0-1" || drift[0].Gone {
			t.Errorf("drift %+v", drift)
		}
		r, err := Restore(t.Context(), s.env, Selector{})
		s.must(err)
		if diff := cmp.Diff(map[string]string{"/pods/b cpuset.cpus": whyForeign}, whys(r)); diff != "" || r.Verdict != verdictPartly {
			t.Errorf("verdict %q\n%s", r.Verdict, diff)
		}
		for path, want := range map[string]string{"/pods/a": "0-7", "/pods/b": "0-1", "/pods/c": "0-7"} {
			if got := s.read(cgroup.CPUSet, path, cgroup.FileCPUs); got != want {
				t.Errorf("%s: %q, want %q", path, got, want)
			}
		}
		past, err := History(s.env, 0)
		s.must(err)
		if len(past) != 1 || len(past[0].Skipped) != 1 || past[0].Reason != "restored" {
			t.Errorf("history %+v", past)
		}
	})
}

// TestAForeignValueLikeAnEarlierOneOfOurs: a value of another program that happens to be what we wrote before the setting
// was last held anew is not ours.
func TestAForeignValueLikeAnEarlierOneOfOurs(t *testing.T) {
	histories := map[string]func(*scene){
		"found changed": func(s *scene) {
			s.apply(txn.Purpose{}, []change.Change{cpus("/pods/c", "0-3")})
			s.must(s.k.Write(cgroup.CPUSet, "/pods/c", cgroup.FileCPUs, "0"))
		},
		"held by nothing meanwhile": func(s *scene) {
			s.apply(txn.Purpose{}, []change.Change{cpus("/pods/c", "7")})
			s.must(s.k.Write(cgroup.CPUSet, "/pods/c", cgroup.FileCPUs, "0-3"))
			s.apply(txn.Purpose{}, []change.Change{cpus("/pods/c", "0-3,7")})
			_, err := Restore(s.t.Context(), s.env, Selector{}) // our last write is 0-3
			s.must(err)
			s.must(s.k.Write(cgroup.CPUSet, "/pods/c", cgroup.FileCPUs, "0"))
		},
	}
	for name, history := range histories {
		t.Run(name, func(t *testing.T) {
			bothVersions(t, func(t *testing.T, v cgroup.Version) {
				s := newScene(t, v)
				history(s)
				s.apply(txn.Purpose{}, []change.Change{without("/pods/c", "7")}) // nothing to write: it has no 7
				s.must(s.k.Write(cgroup.CPUSet, "/pods/c", cgroup.FileCPUs, "0-3"))
				_, err := Restore(t.Context(), s.env, Selector{})
				s.must(err)
				if got := s.read(cgroup.CPUSet, "/pods/c", cgroup.FileCPUs); got != "0-3" {
					t.Errorf("another program wrote 0-3 last, it is %q", got)
				}
			})
		})
	}
}

// TestForeignValueBecomesTheOriginal of a transaction that comes after it, and no earlier one takes it back.
func TestForeignValueBecomesTheOriginal(t *testing.T) {
	bothVersions(t, func(t *testing.T, v cgroup.Version) {
		for _, firstBack := range []int{0, 1} {
			s := newScene(t, v)
			ids := []string{s.apply(s.pinA()).ID}
			s.must(s.k.Write(cgroup.CPUSet, "/pods/b", cgroup.FileCPUs, "0-5,7"))
			ids = append(ids, s.apply(s.pinC()).ID)
			if got := s.read(cgroup.CPUSet, "/pods/b", cgroup.FileCPUs); got != "0-3,7" {
				t.Errorf("the second pin left %q", got)
			}
			for _, i := range []int{firstBack, 1 - firstBack} {
				_, err := Restore(t.Context(), s.env, Selector{IDs: ids[i : i+1]})
				s.must(err)
			}
			if got := s.read(cgroup.CPUSet, "/pods/b", cgroup.FileCPUs); got != "0-5,7" {
				t.Errorf("transaction %d undone first: %q", firstBack, got)
			}
		}
	})
}

func TestGoneRecreatedRebooted(t *testing.T) {
	bothVersions(t, func(t *testing.T, v cgroup.Version) {
		s := newScene(t, v)
		s.apply(s.pinA())
		remove := func(path string, pid int) {
			s.k.Exit(pid)
			for _, c := range []cgroup.Controller{cgroup.CPU, cgroup.CPUSet}[:3-int(v)] {
				s.must(s.k.Remove(c, path))
			}
		}
		remove("/pods/a", 10)
		remove("/pods/b", 20)
		s.must(s.k.Make(cgroup.CPUSet, "/pods/b"))
		s.must(s.k.Write(cgroup.CPUSet, "/pods/b", cgroup.FileCPUs, "0-5"))
		r, err := Restore(t.Context(), s.env, Selector{})
		s.must(err)
		got := whys(r)
		if got["/pods/a cpuset.cpus"] != whyGone || got["/pods/b cpuset.cpus"] != whyRecreated {
			t.Errorf("got %v", got)
		}
		if now := s.read(cgroup.CPUSet, "/pods/b", cgroup.FileCPUs); now != "0-5" {
			t.Errorf("the new cgroup was changed to %q", now)
		}
		if now := s.read(cgroup.CPUSet, "/pods/c", cgroup.FileCPUs); now != "0-7" {
			t.Errorf("/pods/c has %q", now)
		}

		s.apply(s.pinC())
		before := fmt.Sprint(s.k.Snapshot())
		s.env.BootID = "boot-2"
		drift, err := Drift(s.env)
		s.must(err)
		if len(drift) == 0 || slices.ContainsFunc(drift, func(d txn.DriftItem) bool { return !d.Gone }) {
			t.Errorf("after a reboot status takes settings of the earlier boot for those of this one: %+v", drift)
		}
		r, err = Restore(t.Context(), s.env, Selector{})
		s.must(err)
		if len(r.Writes) != 0 || fmt.Sprint(s.k.Snapshot()) != before || len(r.Skipped) == 0 || r.Skipped[0].Why != whyReboot {
			t.Errorf("after a reboot: %+v", r)
		}
		past, err := History(s.env, 1)
		s.must(err)
		if past[0].Reason != "reboot" {
			t.Errorf("history %+v", past)
		}
		if open, _ := Status(s.env); len(open) != 0 {
			t.Errorf("still in force: %v", open)
		}
	})
}

func TestScope(t *testing.T) {
	bothVersions(t, func(t *testing.T, v cgroup.Version) {
		s := newScene(t, v)
		before := fmt.Sprint(s.k.Snapshot())
		purpose, changes := s.pinA()
		s.env.Scope = "/pods/a"
		var out *OutOfScope
		if _, err := Apply(t.Context(), s.env, purpose, changes); !errors.As(err, &out) {
			t.Fatalf("got %v", err)
		}
		if fmt.Sprint(s.k.Snapshot()) != before {
			t.Error("something was written")
		}
		s.env.Scope = "/pods"
		id := s.apply(purpose, changes).ID
		in := fmt.Sprint(s.k.Snapshot())
		s.env.Scope = "/pods/a"
		if _, err := Restore(t.Context(), s.env, Selector{IDs: []string{id}}); !errors.As(err, &out) {
			t.Errorf("restoring by id: %v", err)
		}
		if _, err := Restore(t.Context(), s.env, Selector{Target: "/pods/a"}); !errors.As(err, &out) {
			t.Errorf("restoring by target: %v", err)
		}
		r, err := Restore(t.Context(), s.env, Selector{})
		if err != nil || r.Verdict != VerdictNothing || len(r.Skipped) != 1 {
			t.Errorf("restoring all: %+v, %v", r, err)
		}
		if fmt.Sprint(s.k.Snapshot()) != in {
			t.Error("something was written outside the scope")
		}
	})
}

func TestRefusedBeforeTheFirstWrite(t *testing.T) {
	s := newScene(t, cgroup.V1)
	s.k.SpawnForeign("/svc")
	before := fmt.Sprint(s.k.Snapshot())
	stale := cpus("/pods/a", "6-7")
	stale.From = "0-3"
	exists := change.Change{Kind: change.KindCgroup, Controller: cgroup.CPUSet, Path: "/pods/a"}
	_, alone := s.pinAlone()
	for want, changes := range map[string][]change.Change{
		`was "0-3" when planned and is "0-7" now`: {stale},
		"changed twice":                  {cpus("/pods/a", "0"), cpus("/pods/a", "1")},
		"exists already and is not ours": {exists},
		"would leave nothing":            {without("/pods/a", "0-7")},
		"the cgroup does not exist":      {cpus("/pods/none", "0")},
		"unknown kind":                   {{Kind: "unheard_of", Path: "/pods"}},
		"outside our PID namespace":      alone,
		"systemd does not answer": {
			{Kind: change.KindSystemd, Path: "/pods/a", Unit: "a.scope", File: "AllowedCPUs", To: "0"}},
		"quota 10µs is below": {
			{Kind: change.KindFile, Controller: cgroup.CPU, Path: "/pods/a", File: "cpu.cfs_quota_us", To: "10"}},
		"CPUs can be taken out of a list only": {
			{Kind: change.KindFile, Op: change.OpRemoveCPUs, Controller: cgroup.CPU, Path: "/pods/a", File: "cpu.shares", To: "1"}},
	} {
		r, err := Apply(t.Context(), s.env, txn.Purpose{}, changes)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if r.ID != "" || len(r.Writes) != 0 {
			t.Errorf("%s: %+v", want, r)
		}
	}
	if open, err := Status(s.env); err != nil || len(open) != 0 {
		t.Errorf("in force: %v, %v", open, err)
	}
	if after := fmt.Sprint(s.k.Snapshot()); after != before {
		t.Errorf("not as before: %s", after)
	}
}

// TestLateForks: processes fork while they are being moved, and back.
func TestLateForks(t *testing.T) {
	s := newScene(t, cgroup.V1)
	next := 1000
	s.fork(51, &next, 20)
	s.apply(s.pinAlone())
	for pid := 1001; pid <= next; pid++ {
		if at, _ := s.k.At(pid, cgroup.CPUSet); at != "/svc" {
			t.Errorf("process %d is at %q", pid, at)
		}
	}
	if at, _ := s.k.At(10, cgroup.CPUSet); at != "/pods/a" {
		t.Errorf("a bystander was moved to %q", at)
	}
	s.fork(51, &next, 20)
	r, err := Restore(t.Context(), s.env, Selector{})
	if err != nil || r.Verdict != VerdictRestored {
		t.Fatalf("%+v, %v", r, err)
	}
	for pid := 1001; pid <= next; pid++ {
		if at, _ := s.k.At(pid, cgroup.CPUSet); at != "/" {
			t.Errorf("process %d is at %q", pid, at)
		}
	}
	if cgroup.Exists(s.k, cgroup.CPUSet, "/svc") {
		t.Error("the cgroup made for it is still there")
	}
}

// TestMadeCgroupStaysWhileNeeded: a second transaction works inside what the first one made or enabled. Taking back
// the first leaves that, taking back the second ends it, in either order.
func TestMadeCgroupStaysWhileNeeded(t *testing.T) {
	bothVersions(t, func(t *testing.T, v cgroup.Version) {
		for _, order := range [][]int{{0, 1}, {1, 0}} {
			s := newScene(t, v)
			before := s.k.Snapshot()
			ids := []string{s.apply(s.pinAlone()).ID, s.apply(s.inner()).ID}
			in := func() bool {
				if v == cgroup.V1 {
					at, _ := s.k.At(50, cgroup.CPUSet)
					return at == "/svc"
				}
				return slices.Contains(strings.Fields(s.read(cgroup.CPUSet, "/slice", cgroup.FileSubtreeControl)), "cpuset")
			}
			_, err := Restore(t.Context(), s.env, Selector{IDs: ids[order[0]:][:1]})
			s.must(err)
			if !in() {
				t.Errorf("taking back %d ended what %d needs", order[0], order[1])
			}
			if v == cgroup.V2 && order[0] == 0 && s.read(cgroup.CPUSet, "/slice/other", cgroup.FileCPUs) != "4-5" {
				t.Error("the second one's CPUs are lost")
			}
			s.must(s.everythingBack(before))
		}
	})
}

func TestKernelThreadsAreRefused(t *testing.T) {
	s := newScene(t, cgroup.V1)
	before := s.k.Snapshot()
	s.env.Proc = kernelThreads{modelProc{k: s.k}}
	purpose, changes := s.pinAlone()
	if _, err := Apply(t.Context(), s.env, purpose, changes); err == nil || !strings.Contains(err.Error(), "kernel thread") {
		t.Errorf("got %v", err)
	}
	s.must(s.everythingBack(before))
}

// TestSplitProcessesAreRefused: a process with a thread in another cgroup could not be put back as it was.
func TestSplitProcessesAreRefused(t *testing.T) {
	s := newScene(t, cgroup.V1)
	before := fmt.Sprint(s.k.Snapshot())
	s.env.Proc = splitProcess{modelProc{k: s.k}}
	purpose, changes := s.pinAlone()
	if _, err := Apply(t.Context(), s.env, purpose, changes); err == nil || !strings.Contains(err.Error(), "thread 777 of process 51") {
		t.Errorf("got %v", err)
	}
	if fmt.Sprint(s.k.Snapshot()) != before {
		t.Error("something was written")
	}
}

type splitProcess struct{ modelProc }

func (splitProcess) Threads(pid int) ([]int, error) {
	if pid == 51 {
		return []int{51, 777}, nil
	}
	return []int{pid}, nil
}

type kernelThreads struct{ modelProc }

func (kernelThreads) KernelThread(pid int) (bool, error) { return pid == 51, nil }

// TestKernelsThatCannotClear: before 7.0 a v2 list with processes inside cannot be emptied. What was inherited comes
// back as the list of all that the parent has, and that is said.
func TestKernelsThatCannotClear(t *testing.T) {
	s := newScene(t, cgroup.V2)
	s.k.Exit(30)
	s.must(s.k.Write(cgroup.CPUSet, "/pods/c", cgroup.FileCPUs, ""))
	s.k.Spawn("/pods/c", 31)
	s.apply(s.pinA())
	if got := s.read(cgroup.CPUSet, "/pods/c", cgroup.FileCPUs); got != "0-5" {
		t.Fatalf("/pods/c has %q", got)
	}
	r, err := Restore(t.Context(), s.env, Selector{})
	s.must(err)
	if diff := cmp.Diff(map[string]string{"/pods/c cpuset.cpus": WhyNotCleared}, whys(r)); diff != "" {
		t.Error(diff)
	}
	if got := s.read(cgroup.CPUSet, "/pods/c", cgroup.FileCPUs); got != "0-7" {
		t.Errorf("/pods/c has %q", got)
	}
	if open, err := Status(s.env); err != nil || len(open) != 0 {
		t.Errorf("in force: %v, %v", open, err)
	}
}

// TestKernelsThatCannotClearBesideAnother: what another transaction keeps from the parent meanwhile is inherited too, so that it is there
// once that one is restored.
func TestKernelsThatCannotClearBesideAnother(t *testing.T) {
	s := newScene(t, cgroup.V2)
	s.k.Exit(30)
	s.must(s.k.Write(cgroup.CPUSet, "/pods/c", cgroup.FileCPUs, ""))
	s.k.Spawn("/pods/c", 31)
	first := s.apply(txn.Purpose{}, []change.Change{{Kind: change.KindFile, Op: change.OpRemoveCPUs, Controller: cgroup.CPUSet,
		Path: "/pods", File: cgroup.FileCPUs, From: s.read(cgroup.CPUSet, "/pods", cgroup.FileCPUs), To: "7"}})
	second := s.apply(txn.Purpose{}, []change.Change{cpus("/pods/c", "3")})
	for _, done := range []Result{second, first} {
		_, err := Restore(t.Context(), s.env, Selector{IDs: []string{done.ID}})
		s.must(err)
	}
	_, inForce, err := cgroup.CPUs(s.k, "/pods/c")
	s.must(err)
	if inForce.String() != "0-7" {
		t.Errorf("/pods/c may run on %s", inForce)
	}
}

// TestNotInForce: v2 takes CPUs that the parent lacks. All of them: undone. Some: a warning.
func TestNotInForce(t *testing.T) {
	s := newScene(t, cgroup.V2)
	s.must(s.k.Write(cgroup.CPUSet, "/pods", cgroup.FileCPUs, "0-3"))
	before := s.k.Snapshot()
	var not *NotInForce
	r, err := Apply(t.Context(), s.env, txn.Purpose{}, []change.Change{cpus("/pods/a", "6-7")})
	if !errors.As(err, &not) || r.Verdict != verdictUndone {
		t.Errorf("got %v, %q", err, r.Verdict)
	}
	s.must(s.everythingBack(before))
	r = s.apply(txn.Purpose{}, []change.Change{cpus("/pods/a", "3-4")})
	if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "only 3 are in force") {
		t.Errorf("warnings %q", r.Warnings)
	}
}

func TestOneWriterAtATime(t *testing.T) {
	s := newScene(t, cgroup.V1)
	j, err := journal.Open(t.Context(), s.env.StateDir, journal.Options{})
	s.must(err)
	purpose, changes := s.pinA()
	var locked *journal.Locked
	if _, err := Apply(t.Context(), s.env, purpose, changes); !errors.As(err, &locked) || locked.PID != os.Getpid() ||
		!strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Errorf("got %v", err)
	}
	if _, err := Status(s.env); err != nil {
		t.Errorf("reading needs no lock, but: %v", err)
	}
	s.must(j.Close())
	s.apply(purpose, changes)
}

func TestRecordAndHistory(t *testing.T) {
	s := newScene(t, cgroup.V1)
	purpose, changes := s.pinA()
	low, high, got := 0.0, 0.1, 0.3
	purpose.Expected = &txn.Expected{StoppedPerSecondLow: &low, StoppedPerSecondHigh: &high, P99MsLow: &low}
	purpose.Parameters = map[string]string{"cpus": "6-7"}
	id := s.apply(purpose, changes).ID
	s.must(Record(s.env, id, txn.Outcome{Verdict: "worse", After: &txn.Figures{StoppedPerSecondLow: &got, StoppedPerSecondHigh: &got}}))
	open, err := Status(s.env)
	s.must(err)
	if len(open) != 1 || open[0].Verdict != "worse" || open[0].Parameters["cpus"] != "6-7" || len(open[0].Changes) != len(changes) {
		t.Fatalf("got %+v", open)
	}
	_, err = Restore(t.Context(), s.env, Selector{Target: "/pods/a"})
	s.must(err)
	past, err := History(s.env, 10)
	s.must(err)
	want := []txn.Deviation{{Figure: "stopped_per_second", Low: 0, High: 0.1, Got: 0.3, Miss: got - high}}
	if diff := cmp.Diff(want, txn.Deviations(past[0].Expected, past[0].Outcome)); diff != "" {
		t.Error(diff)
	}
	if err := Record(s.env, "none", txn.Outcome{}); err == nil {
		t.Error("an outcome of no transaction was taken")
	}
}
