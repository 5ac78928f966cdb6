package apply

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
	"github.com/unthrottle/unthrottle/internal/kernel/schedpolicy"
	"github.com/unthrottle/unthrottle/internal/kernel/schedpolicy/schedhost"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// threads are those of a modelled machine; each operation is one of the kernel model's too, so that what kills there
// does so here.
type threads struct {
	k         *cgroupmodel.Kernel
	policies  map[int]schedpolicy.Policy
	started   map[int]uint64
	refused   map[int]bool
	unbounded bool
}

var errNoThread = fmt.Errorf("no such thread: %w", fs.ErrNotExist)

func (f *threads) Read(tid int) (schedpolicy.Policy, error) {
	p, ok := f.policies[tid]
	if !ok {
		return p, errNoThread
	}
	return p, nil
}

func (f *threads) Write(tid int, p schedpolicy.Policy) error {
	if f.k.Before != nil {
		if err := f.k.Before(cgroupmodel.Op{Kind: "write", Path: "/proc", File: schedpolicy.File(tid), Value: p.String()}); err != nil {
			return err
		}
	}
	if _, ok := f.policies[tid]; !ok {
		return errNoThread
	}
	if f.refused[tid] {
		return schedpolicy.ErrRefused
	}
	f.policies[tid] = p
	return nil
}

func (f *threads) ID(tid int) (uint64, error) {
	if _, ok := f.policies[tid]; !ok {
		return 0, errNoThread
	}
	return f.started[tid], nil
}

func (f *threads) Bounded() (bool, error) { return !f.unbounded, nil }

// setCgroupID starts a process of a thread's that inherits its policy.
func (f *threads) setCgroupID(parent, tid int) {
	f.k.Fork(parent, tid)
	f.policies[tid], f.started[tid] = f.policies[parent], 900+uint64(tid)
}

// newThreads gives pod a a thread with a policy of its own choice (11), and its process one whose children do not
// inherit (12).
func newThreads(s *scene) *threads {
	f := &threads{k: s.k, policies: map[int]schedpolicy.Policy{}, started: map[int]uint64{}, refused: map[int]bool{}}
	for _, tid := range []int{10, 11, 20, 21, 30, 31} {
		f.policies[tid], f.started[tid] = schedpolicy.Other, uint64(tid)
	}
	f.policies[11] = schedpolicy.Policy{Class: "batch"}
	s.k.Spawn("/pods/a", 12)
	f.policies[12], f.started[12] = schedpolicy.Policy{Class: "other", ResetOnFork: true}, 12
	s.env.Sched = f
	return f
}

func hurry(path string) change.Change {
	return change.Change{Kind: change.KindSched, Path: path, File: schedpolicy.Rest, To: schedpolicy.Realtime.String(),
		Why: "before others"}
}

func (s *scene) hurried() error {
	_, err := Apply(s.t.Context(), s.env, txn.Purpose{Target: txn.Target{Path: "/pods/a", Name: "a"}, Remedy: "pin"},
		[]change.Change{cpus("/pods/a", "6-7"), without("/pods/b", "6-7"), without("/pods/c", "6-7"), hurry("/pods/a")})
	return err
}

func TestRealtimeAndBack(t *testing.T) {
	bothVersions(t, func(t *testing.T, v cgroup.Version) {
		s := newScene(t, v)
		f := newThreads(s)
		before, policies := s.k.Snapshot(), maps.Clone(f.policies)
		s.must(s.hurried())
		want := maps.Clone(policies)
		want[10], want[12] = schedpolicy.Realtime, schedpolicy.Policy{Class: "rr", Priority: 1, ResetOnFork: true}
		if !maps.Equal(f.policies, want) {
			t.Errorf("applied: %v", f.policies)
		}
		if drift, err := Drift(s.env); err != nil || len(drift) > 0 {
			t.Errorf("drift %+v, %v", drift, err)
		}
		f.setCgroupID(10, 70)
		s.must(s.everythingBack2(before, 70))
		policies[70] = schedpolicy.Other
		if !maps.Equal(f.policies, policies) {
			t.Errorf("restored: %v, want %v", f.policies, policies)
		}
	})
}

// everythingBack2 restores, ends who was born meanwhile, and compares.
func (s *scene) everythingBack2(before cgroupmodel.Snapshot, setCgroupID ...int) error {
	r, err := Restore(s.t.Context(), s.env, Selector{})
	if err != nil || len(r.Skipped) > 0 {
		return fmt.Errorf("skipped %v, %w", r.Skipped, err)
	}
	for _, pid := range setCgroupID {
		s.k.Exit(pid)
	}
	return s.everythingBack(before)
}

// One that left the cgroup is found by its number; one that ended, or whose number is another's by now, needs nothing;
// one that was given another policy since is another program's.
func TestRealtimeThreadsComeAndGo(t *testing.T) {
	s := newScene(t, cgroup.V1)
	f := newThreads(s)
	s.k.Spawn("/pods/a", 13)
	s.k.Spawn("/pods/a", 14)
	s.k.Spawn("/pods/a", 15)
	for _, tid := range []int{13, 14, 15} {
		f.policies[tid], f.started[tid] = schedpolicy.Other, uint64(tid)
	}
	s.must(s.hurried())
	s.must(s.k.Attach(cgroup.CPU, "/pods/b", 12))
	delete(f.policies, 13)
	s.k.Exit(13)
	s.k.Exit(14)
	f.started[14] = 5000 // elsewhere on the host
	f.policies[15] = schedpolicy.Policy{Class: "fifo", Priority: 7}
	drift, err := Drift(s.env)
	s.must(err)
	if len(drift) != 1 || drift[0].File != schedpolicy.File(15) {
		t.Errorf("drift %+v", drift)
	}
	r, err := Restore(t.Context(), s.env, Selector{})
	s.must(err)
	if len(r.Skipped) != 1 || r.Skipped[0].File != schedpolicy.File(15) || r.Skipped[0].Why != whyForeign {
		t.Errorf("skipped %+v", r.Skipped)
	}
	if f.policies[12].Class != "other" || !f.policies[14].Same(schedpolicy.Realtime) || f.policies[15].Priority != 7 ||
		f.policies[10] != schedpolicy.Other {
		t.Errorf("restored: %v", f.policies)
	}
}

func TestRealtimeRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		arrange func(s *scene, f *threads)
		says    string
	}{
		"the program sets policies": {func(s *scene, f *threads) {
			f.policies[11] = schedpolicy.Policy{Class: "fifo", Priority: 3}
		}, `thread 11 has the policy "fifo 3"`},
		"nothing bounds them":       {func(s *scene, f *threads) { f.unbounded = true }, "sched_rt_runtime_us is -1"},
		"the kernel refuses":        {func(s *scene, f *threads) { f.refused[12] = true }, "CAP_SYS_NICE"},
		"nothing to do it with":     {func(s *scene, f *threads) { s.env.Sched = nil }, "cannot be read or set here"},
		"outside our PID namespace": {func(s *scene, f *threads) { s.k.SpawnForeign("/pods/a") }, "PID namespace"},
		"nothing in the way":        {func(s *scene, f *threads) {}, ""},
		"too many threads": {func(s *scene, f *threads) {
			for tid := 100_000; tid < 100_000+maxScheduled; tid++ {
				s.k.Spawn("/pods/a", tid)
				f.policies[tid] = schedpolicy.Other
			}
		}, "more than 2048 threads"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, cgroup.V2)
			f := newThreads(s)
			tc.arrange(s, f)
			before, policies := s.k.Snapshot(), maps.Clone(f.policies)
			err := s.hurried()
			if tc.says == "" {
				s.must(err)
				s.must(s.everythingBack(before))
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%v, want %q in it", err, tc.says)
			}
			if !maps.Equal(f.policies, policies) {
				t.Errorf("left %v", f.policies)
			}
			s.env.Sched = f
			s.must(s.everythingBack(before))
		})
	}
	s := newScene(t, cgroup.V2)
	newThreads(s)
	bad := hurry("/pods/a")
	bad.File = "thread/x"
	if _, err := Apply(t.Context(), s.env, txn.Purpose{}, []change.Change{bad}); err == nil {
		t.Error("a change of no thread's policy")
	}
}

// TestRealtimeKilledAtEveryPoint kills before each write, with processes born at that very moment that inherit what
// their parent has by then; one restore brings all back.
func TestRealtimeKilledAtEveryPoint(t *testing.T) {
	bothVersions(t, func(t *testing.T, v cgroup.Version) {
		for n := 1; ; n++ {
			s := newScene(t, v)
			f := newThreads(s)
			before, policies := s.k.Snapshot(), maps.Clone(f.policies)
			count := 0
			s.k.Before = func(op cgroupmodel.Op) error {
				if !op.Changes() {
					return nil
				}
				if count++; count == n {
					panic(errCrash)
				}
				f.setCgroupID(10, 200+count)
				return nil
			}
			crashed, err := crashes(s.hurried)
			s.must(err)
			s.k.Before = nil
			if crashed {
				f.setCgroupID(10, 500)
			}
			var setCgroupID []int
			for tid := range f.policies {
				if _, old := policies[tid]; !old {
					setCgroupID = append(setCgroupID, tid)
				}
			}
			if err := s.everythingBack2(before, setCgroupID...); err != nil {
				t.Fatalf("killed at point %d: %v", n, err)
			}
			for tid, p := range f.policies {
				want, old := policies[tid]
				if !old {
					want = schedpolicy.Other
				}
				if p != want {
					t.Fatalf("killed at point %d: thread %d has %s", n, tid, p)
				}
			}
			if !crashed {
				if n < 6 {
					t.Errorf("only %d points were walked", n-1)
				}
				return
			}
		}
	})
}

// A move takes the threads' policies over; restored afterwards they are what they were.
func TestRealtimeIsInherited(t *testing.T) {
	s := newScene(t, cgroup.V2)
	f := newThreads(s)
	before, policies := s.k.Snapshot(), maps.Clone(f.policies)
	s.must(s.hurried())
	held, err := Status(s.env)
	s.must(err)
	f.setCgroupID(10, 70)
	delete(f.policies, 12)
	s.k.Exit(12)
	_, err = Replace(t.Context(), s.env,
		[]txn.Part{{Purpose: txn.Purpose{Target: txn.Target{Path: "/pods/a"}, Remedy: "pin"}, Replaces: []string{held[0].ID},
			Changes: []change.Change{cpus("/pods/a", "4-5"), without("/pods/b", "4-5"), without("/pods/c", "4-5")}}})
	s.must(err)
	if !f.policies[10].Same(schedpolicy.Realtime) || !f.policies[70].Same(schedpolicy.Realtime) {
		t.Errorf("moved: %v", f.policies)
	}
	s.k.Spawn("/pods/a", 12)
	f.policies[12] = policies[12]
	s.must(s.everythingBack2(before, 70))
	delete(f.policies, 70)
	if !maps.Equal(f.policies, policies) {
		t.Errorf("restored: %v", f.policies)
	}
}

// On this kernel, where it has groups of real-time threads: a new group has no runtime, which is said beforehand, and
// is what the kernel says too. Nothing gets a real-time policy.
func TestNoRuntimeOnTheRealKernel(t *testing.T) {
	require.EachCgroup(t, "the files that are written")
	r := newReal(t, cgroup.V1)
	path := r.path("/pods/a")
	if text, err := r.h.Read(cgroup.CPU, path, cgroup.FileRTRuntime); err != nil {
		t.Skipf("this kernel has no groups of real-time threads: %q, %v", text, err)
	}
	r.env.Sched = schedhost.New("/proc")
	before := r.snapshot()
	_, err := Apply(t.Context(), r.env, txn.Purpose{}, []change.Change{hurry(path)})
	if no := new(NotRealtime); !errors.As(err, &no) || !strings.Contains(err.Error(), "cpu.rt_runtime_us is 0") {
		t.Errorf("%v", err)
	}
	tids, err := r.h.Threads(cgroup.CPU, path)
	if err != nil || len(tids) == 0 {
		t.Fatalf("%v, %v", tids, err)
	}
	if err := r.env.Sched.Write(tids[0], schedpolicy.Realtime); !errors.Is(err, schedpolicy.ErrRefused) {
		t.Errorf("the kernel says %v", err)
	}
	for _, tid := range tids {
		if p, err := r.env.Sched.Read(tid); err != nil || p != schedpolicy.Other {
			t.Errorf("thread %d has %s, %v", tid, p, err)
		}
	}
	for file, value := range r.snapshot() {
		if before[file] != value {
			t.Errorf("%s is %q", file, value)
		}
	}
}

// Real-time priority is given in the lab's guest only: elsewhere a mistake would cost the machine. Children of our own
// sleep with it, fork with it, and lose it.
func TestRealtimeOnTheRealKernel(t *testing.T) {
	if !require.InLab() {
		t.Skip("needs v2: real-time priority is given in the lab's guest only; runs in the lab")
	}
	r := newReal(t, cgroup.V2)
	path := r.path("/pods/a")
	r.env.Sched = schedhost.New("/proc")
	policies := func() map[string]int {
		all := map[string]int{}
		tids, err := r.h.Threads(cgroup.CPU, path)
		r.must(err)
		for _, tid := range tids {
			if p, err := r.env.Sched.Read(tid); err == nil {
				all[p.String()]++
			}
		}
		return all
	}
	n := policies()["other"]
	if n < 2 {
		t.Fatalf("of %v at least a few threads are ordinary", policies())
	}
	_, err := Apply(t.Context(), r.env, txn.Purpose{Target: txn.Target{Path: path}}, []change.Change{hurry(path)})
	r.must(err)
	if got := policies(); got["rr 1"] < n || got["other"] > 0 {
		t.Errorf("applied: %v, of %d", got, n)
	}
	// One that comes later and was given it as a child of theirs would have it.
	cmd, _ := startChild(t, childSleeper)
	r.must(r.h.Attach(cgroup.CPU, path, cmd.Process.Pid))
	r.must(r.env.Sched.Write(cmd.Process.Pid, schedpolicy.Realtime))
	res, err := Restore(t.Context(), r.env, Selector{})
	if err != nil || len(res.Skipped) > 0 {
		t.Errorf("%v, %v", res.Skipped, err)
	}
	if got := policies(); got["rr 1"] > 0 || got["other"] < n {
		t.Errorf("restored: %v, of %d", got, n)
	}
}
