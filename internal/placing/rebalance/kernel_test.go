package rebalance

import (
	"context"
	"os"
	"testing"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate/gather"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	"github.com/unthrottle/unthrottle/placement"
	"github.com/unthrottle/unthrottle/test/lab/require"
	"github.com/unthrottle/unthrottle/topology"
)

// TestMain lets the test binary stand in for the program that children run.
func TestMain(m *testing.M) {
	cgrouptest.Child()
	os.Exit(m.Run())
}

// real is a subtree of this machine with containers at work in it.
type real struct {
	*cgrouptest.Tree
	t     *testing.T
	paths []string
	pids  []int
}

func newReal(t *testing.T, containers ...string) *real {
	r := &real{Tree: cgrouptest.New(t), t: t}
	for _, name := range containers {
		path := r.Make(name)
		r.Limit(path, 0.3)
		r.paths = append(r.paths, path)
		r.pids = append(r.pids, r.Work(path, 0)) // asleep: burners would starve an emulated machine
	}
	return r
}

func (r *real) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *real) env() apply.Env {
	return apply.Env{FS: r.Host, StateDir: r.StateDir, BootID: "test", By: "test", Scope: r.Top, Proc: apply.NewProc("/proc")}
}

func (r *real) facts(context.Context) (hoststate.Facts, error) {
	containers, err := container.List(r.Host, container.Options{})
	if err != nil {
		return hoststate.Facts{}, err
	}
	held, err := apply.Status(r.env())
	if err != nil {
		return hoststate.Facts{}, err
	}
	drift, err := apply.Drift(r.env())
	if err != nil {
		return hoststate.Facts{}, err
	}
	return gather.Host(r.t.Context(), r.Host, containers, gather.Options{Root: os.DirFS("/"), Held: held, Drift: drift, Scope: r.Top})
}

// give applies a remedy to one container and moves it to the CPUs.
func (r *real) give(i int, request remedy.Request, to cpuset.CPUSet) {
	r.t.Helper()
	f, err := r.facts(r.t.Context())
	r.must(err)
	containers, err := container.List(r.Host, container.Options{})
	r.must(err)
	c, err := container.Resolve(r.Host, containers, r.paths[i])
	r.must(err)
	request.CPUs = to.Size()
	plan, err := remedy.Make(f, c, request)
	r.must(err)
	done, err := apply.Apply(r.t.Context(), r.env(), plan.Purpose(), plan.Changes)
	r.must(err)
	f, err = r.facts(r.t.Context())
	r.must(err)
	if h, _, _ := remedy.Placing(f, r.paths[i]); h.Placed().Equals(to) {
		return
	}
	move, err := remedy.MoveTo(f, done.ID, to)
	r.must(err)
	_, err = apply.Replace(r.t.Context(), r.env(), []txn.Part{move.Part()})
	r.must(err)
}

func (r *real) runsOn(i int) cpuset.CPUSet {
	r.t.Helper()
	set, err := topology.ParseList(cgrouptest.Allowed(r.t, r.pids[i]))
	r.must(err)
	return set
}

func (r *real) mover() Env {
	return Env{Apply: r.env(), Facts: r.facts, Wait: func(ctx context.Context, d time.Duration) error { return ctx.Err() }}
}

// restored puts everything back and compares.
func (r *real) restored(before string) {
	r.t.Helper()
	_, err := apply.Restore(r.t.Context(), r.env(), apply.Selector{})
	r.must(err)
	if after := r.Settings(); after != before {
		r.t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// On the real kernel, v1 and v2: a narrowed container moves to another CPU and
// back, and all is as it was in the end.
func TestMoveOnTheKernel(t *testing.T) {
	require.Alone(t, "it moves to a CPU that no other experiment has set apart")
	require.EachCgroup(t, "the cpusets that are written")
	require.CPUs(t, 2)
	r := newReal(t, "web")
	before := r.Settings()
	online := r.runsOn(0).List()
	first, last := cpuset.New(online[0]), cpuset.New(online[len(online)-1])
	r.give(0, remedy.Request{Kind: remedy.Narrow}, first)
	moves := []placement.Move{{Container: r.paths[0], From: first, To: last}, {Container: r.paths[0], From: last, To: first}}
	for _, m := range moves {
		done, err := Run(t.Context(), r.mover(), Options{Moves: []placement.Move{m}})
		r.must(err)
		if got := r.runsOn(0); !got.Equals(m.To) {
			t.Errorf("it runs on %s, want %s", got, m.To)
		}
		t.Logf("%d writes in %v", len(done[0].Result.Writes), done[0].Took)
	}
	r.restored(before)
}

// On a machine with NUMA nodes: one that sits on two nodes, another in its way.
// After the planned moves each is on one node, exclusive, and restore puts all
// back; a container of which a thread chose its CPU is left alone.
func TestRepairOnTheKernel(t *testing.T) {
	require.CPUs(t, 16)
	r := newReal(t, "web", "db", "self")
	before := r.Settings()
	f, err := r.facts(t.Context())
	r.must(err)
	if len(f.Machine.NUMANodes) < 2 {
		t.Fatalf("%d NUMA nodes", len(f.Machine.NUMANodes))
	}
	node0, node1 := f.Machine.NUMANodes[0].CPUs.List(), f.Machine.NUMANodes[1].CPUs.List()
	r.give(0, remedy.Request{Kind: remedy.Pin}, cpuset.New(node0[len(node0)-1], node1[0]))
	r.give(1, remedy.Request{Kind: remedy.Pin}, cpuset.New(node1[1:]...))
	r.give(2, remedy.Request{Kind: remedy.Pin}, cpuset.New(node0[2:4]...))
	var one [128]byte
	one[node0[2]/8] = 1 << (node0[2] % 8)
	setAffinity(t, r.pids[2], one[:])
	f, err = r.facts(t.Context())
	r.must(err)
	stays := Immovable(r.Host, apply.NewProc("/proc"), f.Held)
	if stays[r.paths[2]] == "" || len(stays) != 1 {
		t.Errorf("stays: %v", stays)
	}
	state, err := remedy.State(f, nil, stays)
	r.must(err)
	node, _, err := placement.NewNode(state)
	r.must(err)
	moves := node.Repair(placement.Budget{Moves: 8})
	t.Logf("planned %+v", moves)
	done, err := Run(t.Context(), r.mover(), Options{Moves: moves})
	r.must(err)
	for _, d := range done {
		t.Logf("%s to %s: %d writes in %v, warnings %q", d.Container, d.To, len(d.Result.Writes), d.Took, d.Result.Warnings)
	}
	sets := []cpuset.CPUSet{r.runsOn(0), r.runsOn(1), r.runsOn(2)}
	for i, set := range sets[:2] {
		if n := len(f.Machine.Spans(topology.LevelNUMANode, set)); n != 1 {
			t.Errorf("%d runs on %s: %d nodes", i, set, n)
		}
	}
	if err := overlap(sets); err != nil {
		t.Error(err)
	}
	r.restored(before)
}
