package rebalance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"testing/fstest"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate/gather"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
	"github.com/unthrottle/unthrottle/placement"
	"github.com/unthrottle/unthrottle/topology"
)

// host is a modelled machine of two sockets of four CPUs, containers in /a.
type host struct {
	t          testing.TB
	k          *cgroupmodel.Kernel
	v          cgroup.Version
	root       fstest.MapFS
	containers []container.Container
	state      string
	own        map[int]cpuset.CPUSet // affinity that threads chose
}

func (h *host) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func parse(t testing.TB, list string) cpuset.CPUSet {
	t.Helper()
	set, err := topology.ParseList(list)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// newHost has containers "/a/0" and so on.
func newHost(t testing.TB, v cgroup.Version, containers int) *host {
	t.Helper()
	config := cgroupmodel.V1("0-7")
	if v == cgroup.V2 {
		config = cgroupmodel.V2("0-7")
		config.ClearsPopulated = true
	}
	config.Mems = cpuset.New(0, 1)
	h := &host{t: t, k: cgroupmodel.New(config), v: v, state: dir(t), own: map[int]cpuset.CPUSet{}, root: fstest.MapFS{
		"sys/devices/system/cpu/present": {Data: []byte("0-7\n")},
		"sys/devices/system/cpu/online":  {Data: []byte("0-7\n")},
	}}
	for id := range 8 {
		d := fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/", id)
		h.root[d+"core_cpus_list"] = &fstest.MapFile{Data: fmt.Append(nil, id)}
		socket := []string{"0-3", "4-7"}[id/4]
		h.root[d+"package_cpus_list"] = &fstest.MapFile{Data: []byte(socket)}
		h.root[fmt.Sprintf("sys/devices/system/node/node%d/cpulist", id/4)] = &fstest.MapFile{Data: []byte(socket)}
	}
	if v == cgroup.V2 {
		h.must(h.k.Write(cgroup.CPU, "/", cgroup.FileSubtreeControl, "+cpu +cpuset"))
	}
	h.make("/a")
	if v == cgroup.V2 {
		h.must(h.k.Write(cgroup.CPU, "/a", cgroup.FileSubtreeControl, "+cpu +cpuset"))
	}
	h.make("/slice")
	h.k.Spawn("/slice", 99)
	for i := range containers {
		path := fmt.Sprintf("/a/%d", i)
		h.make(path)
		h.k.Spawn(path, 10+i)
		h.containers = append(h.containers, container.Container{Name: cgroup.Base(path),
			Group: cgroup.Group{Path: path, CPUSetPath: path, CPUAcctPath: path}})
	}
	return h
}

// pin pins the first containers, each to one of the lists.
func (h *host) pin(lists ...string) {
	h.t.Helper()
	for i, list := range lists {
		h.pinAt(i, list)
	}
}

func (h *host) pinAt(i int, list string) {
	h.t.Helper()
	set := parse(h.t, list)
	plan, err := remedy.Make(h.facts(), h.containers[i], remedy.Request{Kind: remedy.Pin, CPUs: set.Size()})
	h.must(err)
	r, err := apply.Apply(context.Background(), h.env(), plan.Purpose(), plan.Changes)
	h.must(err)
	if plan.CPUs.Equals(set) {
		return
	}
	move, err := remedy.MoveTo(h.facts(), r.ID, set)
	h.must(err)
	_, err = apply.Replace(context.Background(), h.env(), []txn.Part{move.Part()})
	h.must(err)
}

// dir is in memory where there is such, since each write of a journal goes to
// the disk.
func dir(t testing.TB) string {
	d, err := os.MkdirTemp("/dev/shm", "unthrottle-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(d) })
	return d
}

func (h *host) make(path string) {
	h.t.Helper()
	h.must(h.k.Make(cgroup.CPU, path))
	if h.v == cgroup.V1 {
		h.must(h.k.Make(cgroup.CPUSet, path))
		h.must(h.k.Write(cgroup.CPUSet, path, cgroup.FileCPUs, "0-7"))
		h.must(h.k.Write(cgroup.CPUSet, path, cgroup.FileMems, "0-1"))
	}
}

func (h *host) env() apply.Env {
	return apply.Env{FS: h.k, StateDir: h.state, BootID: "boot", By: "test", Proc: h}
}

// Allowed, KernelThread, AllProcesses and Threads are apply.Proc.
func (h *host) Allowed(tid int) (cpuset.CPUSet, error) {
	set, ok := h.k.Allowed(tid)
	if !ok {
		return set, os.ErrNotExist
	}
	if own := set.Intersection(h.own[tid]); !own.IsEmpty() {
		return own, nil
	}
	return set, nil
}
func (*host) Self() (journal.Process, error)            { return journal.Process{PID: 1, Started: 1}, nil }
func (*host) Runs(p journal.Process) (bool, error)      { return p.PID == 1, nil }
func (*host) KernelThread(int) (bool, error)            { return false, nil }
func (*host) AllProcesses() (bool, error)               { return true, nil }
func (*host) Threads(pid int) ([]int, error)            { return []int{pid}, nil }
func (*host) wait(context.Context, time.Duration) error { return nil }

func (h *host) facts() hoststate.Facts {
	h.t.Helper()
	held, err := apply.Status(h.env())
	h.must(err)
	drift, err := apply.Drift(h.env())
	h.must(err)
	f, err := gather.From(context.Background(), h.k, h.v == cgroup.V2, h.containers, gather.Options{Root: h.root, Held: held, Drift: drift})
	h.must(err)
	return f
}

func (h *host) held(i int) remedy.Held {
	h.t.Helper()
	held, ok, err := remedy.Placing(h.facts(), h.containers[i].Group.Path)
	if err != nil || !ok {
		h.t.Fatalf("nothing is in force for %d", i)
	}
	return held
}

func (h *host) mover() Env {
	return Env{Apply: h.env(), Wait: h.wait, Facts: func(context.Context) (hoststate.Facts, error) { return h.facts(), nil }}
}

// planned are the moves that repair the host.
func (h *host) planned() []placement.Move {
	h.t.Helper()
	f := h.facts()
	state, err := remedy.State(f, nil, Immovable(h.k, h, f.Held))
	h.must(err)
	node, _, err := placement.NewNode(state)
	h.must(err)
	return node.Repair(placement.Budget{Moves: 10})
}

// at are the CPUs that each container, and everybody else, may use.
func (h *host) at() (sets []cpuset.CPUSet) {
	h.t.Helper()
	for i := range h.containers {
		set, _ := h.k.Allowed(10 + i)
		sets = append(sets, set)
	}
	rest, _ := h.k.Allowed(99)
	return append(sets, rest)
}

// overlap tells of two that may use one CPU, nil if none.
func overlap(sets []cpuset.CPUSet) error {
	for i, a := range sets {
		if a.IsEmpty() {
			return fmt.Errorf("%d has no CPU", i)
		}
		for j, b := range sets[:i] {
			if both := a.Intersection(b); !both.IsEmpty() {
				return fmt.Errorf("%d and %d both have %s", j, i, both)
			}
		}
	}
	return nil
}

var errCrash = errors.New("crash")

// crashes runs fn and tells whether it ended in the panic of a simulated SIGKILL.
func crashes(fn func() error) (crashed bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			if p != errCrash {
				panic(p)
			}
			crashed = true
		}
	}()
	return false, fn()
}
