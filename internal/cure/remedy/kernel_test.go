package remedy

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate/gather"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// TestMain lets the test binary stand in for the program that children run.
func TestMain(m *testing.M) {
	cgrouptest.Child()
	os.Exit(m.Run())
}

// real is a subtree of this machine, the target and its neighbour at work in it.
type real struct {
	*cgrouptest.Tree
	t                 *testing.T
	target, neighbour string
	pids              map[string]int
}

func newReal(t *testing.T) *real {
	require.CPUs(t, 2)
	r := &real{Tree: cgrouptest.New(t), t: t, pids: map[string]int{}}
	r.target, r.neighbour = r.Make("pod/web"), r.Make("pod/db")
	r.Limit(r.Top+"/pod", 0.6)
	r.Limit(r.target, 0.3)
	r.Limit(r.neighbour, 0.3)
	for _, path := range []string{r.target, r.neighbour} {
		r.pids[path] = r.Work(path, 2)
	}
	return r
}

func (r *real) env() apply.Env {
	return apply.Env{FS: r.Host, StateDir: r.StateDir, BootID: "test", By: "test", Scope: r.Top}
}

func (r *real) facts() (hoststate.Facts, []container.Container) {
	r.t.Helper()
	containers, err := container.List(r.Host, container.Options{})
	if err != nil {
		r.t.Fatal(err)
	}
	held, err := apply.Status(r.env())
	if err != nil {
		r.t.Fatal(err)
	}
	f, err := gather.Host(context.Background(), r.Host, containers, gather.Options{Root: os.DirFS("/"), Held: held, Scope: r.Top})
	if err != nil {
		r.t.Fatal(err)
	}
	return f, containers
}

func (r *real) plan(path string, request Request) (Plan, error) {
	r.t.Helper()
	f, containers := r.facts()
	c, err := container.Resolve(r.Host, containers, path)
	if err != nil {
		r.t.Fatal(err)
	}
	return Make(f, c, request)
}

// On the real kernel, v1 and v2: the target's processes run on its CPUs only,
// the neighbour's on the others, no quota binds. After the restore all is as it was,
// to the byte.
func TestPinOnTheKernel(t *testing.T) {
	require.Alone(t, "it takes CPUs that no other experiment has set apart")
	require.EachCgroup(t, "the cpusets and limits that are written")
	r := newReal(t)
	before, allowed := r.Settings(), cgrouptest.Allowed(t, r.pids[r.target])
	p, err := r.plan(r.target, Request{Kind: Pin})
	if err != nil {
		t.Fatal(err)
	}
	result, err := apply.Apply(context.Background(), r.env(), p.Purpose(), p.Changes)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d writes, warnings %q", len(result.Writes), p.Warnings)
	if got := cgrouptest.Allowed(t, r.pids[r.target]); got != p.CPUs.String() {
		t.Errorf("the target runs on %s, want %s", got, p.CPUs)
	}
	if got := parse(t, cgrouptest.Allowed(t, r.pids[r.neighbour])); !got.Intersection(p.CPUs).IsEmpty() || got.IsEmpty() {
		t.Errorf("the neighbour runs on %s, the target on %s", got, p.CPUs)
	}
	levels, err := cgroup.Levels(r.Host, r.target)
	if err != nil {
		t.Fatal(err)
	}
	if limit, limited, at := cgroup.Effective(levels); limited && cgroup.Below(at, r.Top) {
		t.Errorf("%s still limits it to %g CPUs", at, limit)
	}
	f, _ := r.facts()
	if todo, err := Reconcile(f); err != nil || len(todo) > 0 {
		t.Errorf("right after the pin there is to do: %+v, %v", todo, err)
	}
	r.takeBack(before)
	if got := cgrouptest.Allowed(t, r.pids[r.target]); got != allowed {
		t.Errorf("after the restore the target runs on %s, before on %s", got, allowed)
	}
}

func TestOthersOnTheKernel(t *testing.T) {
	require.Alone(t, "it takes CPUs that no other experiment has set apart")
	require.EachCgroup(t, "the cpusets and limits that are written")
	r := newReal(t)
	before := r.Settings()
	for _, request := range []Request{{Kind: Narrow}, {Kind: Narrow, CPUs: 2}, {Kind: Burst},
		{Kind: Burst, Period: 50_000_000}, {Kind: Weight, WeightFromLimit: true},
		{Kind: Raise}, {Kind: Raise, To: 1.5}} {
		p, err := r.plan(r.target, request)
		if err != nil {
			t.Fatalf("%+v: %v", request, err)
		}
		if _, err := apply.Apply(context.Background(), r.env(), p.Purpose(), p.Changes); err != nil {
			t.Fatalf("%+v: %v", request, err)
		}
		levels, err := cgroup.Levels(r.Host, r.target)
		if err != nil {
			t.Fatal(err)
		}
		limit, limited, _ := cgroup.Effective(levels)
		switch request.Kind {
		case Narrow:
			want := max(1, request.CPUs)
			if got := parse(t, cgrouptest.Allowed(t, r.pids[r.target])); got.Size() != want {
				t.Errorf("narrow: it may run on %s, want %d CPUs", got, want)
			}
			if l := levels[0].Limit; l.Period != shortPeriod || !limited || limit != 0.3 {
				t.Errorf("narrow: %+v", l)
			}
		case Burst:
			if levels[0].Limit.Burst != levels[0].Limit.Quota || levels[1].Limit.Burst == 0 || !limited || limit != 0.3 {
				t.Errorf("burst: %+v", levels[:2])
			}
		case Raise:
			if want := max(0.6, request.To); !limited || limit != want {
				t.Errorf("raise: limit %g, want %g", limit, want)
			}
		case Weight:
			if limited {
				t.Errorf("weight: still limited to %g", limit)
			}
		}
		r.takeBack(before)
	}
}

// A container that only the cpu hierarchy knows (v1) gets a cpuset and loses it.
func TestPinMakesACpusetOnTheKernel(t *testing.T) {
	require.Alone(t, "it takes CPUs that no other experiment has set apart")
	require.EachCgroup(t, "the cpusets and limits that are written")
	r := newReal(t)
	if v, _ := r.Host.Version(cgroup.CPUSet); v == cgroup.V2 || r.Host.SameHierarchy(cgroup.CPU, cgroup.CPUSet) {
		t.Skip("cpu and cpuset share a hierarchy here")
	}
	before := r.Settings()
	unit := cgroup.Join(r.Top, "unit")
	if err := r.Host.Make(cgroup.CPU, unit); err != nil {
		t.Fatal(err)
	}
	r.Limit(unit, 0.3)
	pid := r.pids[r.neighbour]
	if err := r.Host.Attach(cgroup.CPU, unit, pid); err != nil {
		t.Fatal(err)
	}
	if err := r.Host.Attach(cgroup.CPUSet, r.Top, pid); err != nil {
		t.Fatal(err)
	}
	p, err := r.plan(unit, Request{Kind: Pin})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := apply.Apply(context.Background(), r.env(), p.Purpose(), p.Changes); err != nil {
		t.Fatal(err)
	}
	if got := cgrouptest.Allowed(t, pid); got != p.CPUs.String() {
		t.Errorf("it runs on %s, want %s", got, p.CPUs)
	}
	if _, err := apply.Restore(context.Background(), r.env(), apply.Selector{}); err != nil {
		t.Fatal(err)
	}
	if cgroup.Exists(r.Host, cgroup.CPUSet, p.Parameters[paramSet]) {
		t.Errorf("%s is still there", p.Parameters[paramSet])
	}
	if pids, err := r.Host.Procs(cgroup.CPUSet, r.Top); err != nil || len(pids) != 1 || pids[0] != pid {
		t.Errorf("in the cpuset it came from: %v, %v, want %d", pids, err, pid)
	}
	if err := r.Host.Attach(cgroup.CPU, r.neighbour, pid); err != nil {
		t.Fatal(err)
	}
	if err := r.Host.Remove(cgroup.CPU, unit); err != nil {
		t.Fatal(err)
	}
	r.same(before)
}

func (r *real) takeBack(before string) {
	r.t.Helper()
	result, err := apply.Restore(context.Background(), r.env(), apply.Selector{})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, skip := range result.Skipped {
		// Kernels before 7.0 do not let a list be empty again (Settings knows).
		if !r.InheritsEmpty() || skip.Why != apply.WhyNotCleared {
			r.t.Errorf("skipped: %+v", skip)
		}
	}
	r.same(before)
}

func (r *real) same(before string) {
	r.t.Helper()
	now := r.Settings()
	if now == before {
		return
	}
	was := strings.Split(before, "\n")
	for i, line := range strings.Split(now, "\n") {
		if i >= len(was) || was[i] != line {
			r.t.Errorf("not as it was: %s", line)
		}
	}
}
