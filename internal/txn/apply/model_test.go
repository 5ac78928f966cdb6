package apply

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
)

// noSync leaves out fsync: a model's crash loses nothing that was written, and the disk is slow.
type noSync struct{ journal.Handle }

func (noSync) Sync() error { return nil }

func wrapNoSync(h journal.Handle) journal.Handle { return noSync{h} }

// stateDir is a directory in memory where there is one: thousands of transactions would wait for the disk.
func stateDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "unthrottle-test-")
	if err != nil {
		return t.TempDir() + "/state"
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir + "/state"
}

// modelProc answers from the model.
type modelProc struct {
	k *cgroupmodel.Kernel
	// ended: the process that judges trials is gone.
	ended bool
}

func (p modelProc) Allowed(tid int) (cpuset.CPUSet, error) {
	if set, ok := p.k.Allowed(tid); ok {
		return set, nil
	}
	return cpuset.CPUSet{}, os.ErrNotExist
}

// self is the process that tests are, as modelProc knows it.
var self = journal.Process{PID: 1000, Started: 1}

func (p modelProc) Self() (journal.Process, error) { return self, nil }

func (p modelProc) Runs(process journal.Process) (bool, error) {
	return process == self && !p.ended, nil
}

func (modelProc) KernelThread(int) (bool, error) { return false, nil }

func (modelProc) AllProcesses() (bool, error) { return true, nil }

func (p modelProc) Threads(pid int) ([]int, error) { return []int{pid}, nil }

// scene is a model of a small host, with the environment to change it.
type scene struct {
	t   testing.TB
	k   *cgroupmodel.Kernel
	fs  cgroup.FS
	v   cgroup.Version
	env Env
}

func (s *scene) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// newScene has pods a, b and c below /pods with 8 CPUs, a burst and quotas, and on v1 /svc, a unit without a cpuset.
func newScene(t testing.TB, v cgroup.Version) *scene {
	config := cgroupmodel.V1("0-7")
	if v == cgroup.V2 {
		config = cgroupmodel.V2("0-7")
	}
	k := cgroupmodel.New(config)
	s := &scene{t: t, k: k, fs: k, v: v, env: Env{FS: k, StateDir: stateDir(t), BootID: "boot-1", By: "test",
		Proc: modelProc{k: k}, LockWait: -1, wrap: wrapNoSync}}
	paths := []string{"/pods", "/pods/a", "/pods/b", "/pods/c"}
	if v == cgroup.V2 {
		s.must(k.Write(cgroup.CPU, "/", "cgroup.subtree_control", "+cpu +cpuset"))
	}
	for i, path := range paths {
		s.must(k.Make(cgroup.CPU, path))
		if v == cgroup.V1 {
			s.must(k.Make(cgroup.CPUSet, path))
		} else if i == 0 {
			s.must(k.Write(cgroup.CPU, path, "cgroup.subtree_control", "+cpu +cpuset"))
		}
		s.must(k.Write(cgroup.CPUSet, path, "cpuset.cpus", "0-7"))
		s.must(k.Write(cgroup.CPUSet, path, "cpuset.mems", "0"))
	}
	s.limit("/pods", "600000 100000 0")
	s.limit("/pods/a", "200000 100000 50000")
	s.limit("/pods/b", "100000 50000 0")
	for i, path := range paths[1:] {
		k.Spawn(path, 10*(i+1), 10*(i+1)+1)
	}
	s.must(k.Make(cgroup.CPU, "/svc"))
	s.limit("/svc", "150000 100000 0")
	k.Spawn("/svc", 50)
	k.Spawn("/svc", 51)
	if v == cgroup.V2 {
		// A slice that has not handed the cpuset controller to its children.
		s.must(k.Make(cgroup.CPU, "/slice"))
		s.must(k.Write(cgroup.CPU, "/slice", "cgroup.subtree_control", "+cpu"))
		s.must(k.Make(cgroup.CPU, "/slice/unit"))
		k.Spawn("/slice/unit", 60)
		s.must(k.Make(cgroup.CPU, "/slice/other"))
		k.Spawn("/slice/other", 61)
	}
	return s
}

// limit sets quota, period and burst in us.
func (s *scene) limit(path, text string) {
	s.t.Helper()
	var quota, period, burst int
	if _, err := fmt.Sscan(text, &quota, &period, &burst); err != nil {
		s.t.Fatal(err)
	}
	if s.v == cgroup.V2 {
		s.must(s.fs.Write(cgroup.CPU, path, "cpu.max", fmt.Sprintf("%d %d", quota, period)))
		s.must(s.fs.Write(cgroup.CPU, path, "cpu.max.burst", fmt.Sprint(burst)))
		return
	}
	s.must(s.fs.Write(cgroup.CPU, path, "cpu.cfs_period_us", fmt.Sprint(period)))
	s.must(s.fs.Write(cgroup.CPU, path, "cpu.cfs_quota_us", fmt.Sprint(quota)))
	s.must(s.fs.Write(cgroup.CPU, path, "cpu.cfs_burst_us", fmt.Sprint(burst)))
}

// unlimited are the changes that lift the limit of a cgroup.
func (s *scene) unlimited(path string) []change.Change {
	burst, quota, off := "cpu.cfs_burst_us", "cpu.cfs_quota_us", "-1"
	if s.v == cgroup.V2 {
		burst, quota, off = "cpu.max.burst", "cpu.max", "max 100000"
	}
	return []change.Change{
		{Kind: change.KindFile, Controller: cgroup.CPU, Path: path, File: quota, To: off},
		{Kind: change.KindFile, Controller: cgroup.CPU, Path: path, File: burst, To: "0"},
	}
}

func cpus(path, to string) change.Change {
	return change.Change{Kind: change.KindFile, Controller: cgroup.CPUSet, Path: path, File: cgroup.FileCPUs, To: to}
}

func without(path, list string) change.Change {
	c := cpus(path, list)
	c.Op = change.OpRemoveCPUs
	return c
}

// pinA, pinC and pinAlone overlap: they shrink the same siblings and lift the same ancestor's quota.
func (s *scene) pinA() (txn.Purpose, []change.Change) {
	changes := []change.Change{cpus("/pods/a", "6-7"), without("/pods/b", "6-7"), without("/pods/c", "6-7")}
	changes = append(changes, s.unlimited("/pods/a")...)
	return txn.Purpose{Target: txn.Target{Path: "/pods/a", Name: "a"}, Remedy: "pin"}, append(changes, s.unlimited("/pods")...)
}

func (s *scene) pinC() (txn.Purpose, []change.Change) {
	changes := []change.Change{cpus("/pods/c", "4-5"), without("/pods/b", "4-5")}
	return txn.Purpose{Target: txn.Target{Path: "/pods/c", Name: "c"}, Remedy: "pin"}, append(changes, s.unlimited("/pods")...)
}

// pinAlone needs a cpuset to be made (v1), or the controller to be enabled (v2).
func (s *scene) pinAlone() (txn.Purpose, []change.Change) {
	others := []change.Change{without("/pods", "2-3"), without("/pods/a", "2-3"), without("/pods/b", "2-3"),
		without("/pods/c", "2-3")}
	if s.v == cgroup.V2 {
		changes := append(others, change.Change{Kind: change.KindSubtree, Controller: cgroup.CPUSet, Path: "/slice", To: "+cpuset"},
			cpus("/slice/unit", "2-3"))
		return txn.Purpose{Target: txn.Target{Path: "/slice/unit"}, Remedy: "pin"}, append(changes, s.unlimited("/slice/unit")...)
	}
	mems := cpus("/svc", "0")
	mems.File = cgroup.FileMems
	changes := append(others, change.Change{Kind: change.KindCgroup, Controller: cgroup.CPUSet, Path: "/svc"},
		cpus("/svc", "2-3"), mems, change.Change{Kind: change.KindTask, Controller: cgroup.CPUSet, From: "/", To: "/svc",
			MembersController: cgroup.CPU, MembersPath: "/svc"})
	return txn.Purpose{Target: txn.Target{Path: "/svc"}, Remedy: "pin"}, append(changes, s.unlimited("/svc")...)
}

// inner works inside what pinAlone made or enabled.
func (s *scene) inner() (txn.Purpose, []change.Change) {
	if s.v == cgroup.V2 {
		return txn.Purpose{Target: txn.Target{Path: "/slice/other"}}, []change.Change{cpus("/slice/other", "4-5")}
	}
	return txn.Purpose{Target: txn.Target{Path: "/svc"}}, []change.Change{{Kind: change.KindTask, Controller: cgroup.CPUSet, From: "/",
		To: "/svc", MembersController: cgroup.CPU, MembersPath: "/svc"}}
}

// script is several overlapping transactions, applied and undone crosswise; it ends in force.
func (s *scene) script() error {
	ctx := context.Background()
	var ids []string
	apply := func(purpose txn.Purpose, changes []change.Change) error {
		r, err := Apply(ctx, s.env, purpose, changes)
		ids = append(ids, r.ID)
		return err
	}
	restore := func(id string) error {
		_, err := Restore(ctx, s.env, Selector{IDs: []string{id}})
		if errors.As(err, new(*NotRestored)) {
			return nil // what the kernel refused once is undone by the next writer
		}
		return err
	}
	if err := apply(s.pinA()); err != nil {
		return err
	}
	if err := apply(s.pinC()); err != nil {
		return err
	}
	if err := restore(ids[0]); err != nil {
		return err
	}
	if err := apply(s.pinAlone()); err != nil {
		return err
	}
	if err := apply(s.inner()); err != nil {
		return err
	}
	if err := restore(ids[2]); err != nil {
		return err
	}
	return apply(s.pinA())
}

// everythingBack restores all and compares with the settings before.
func (s *scene) everythingBack(before cgroupmodel.Snapshot) error {
	r, err := Restore(context.Background(), s.env, Selector{})
	if err != nil {
		return err
	}
	if len(r.Skipped) > 0 {
		return fmt.Errorf("skipped %v", r.Skipped)
	}
	if diff := cmp.Diff(before, s.k.Snapshot()); diff != "" {
		return fmt.Errorf("not as before:\n%s", diff)
	}
	open, err := Status(s.env)
	if err != nil {
		return err
	}
	if len(open) != 0 {
		return fmt.Errorf("still in force: %+v", open)
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

// fork makes a process fork before each of the next n operations that change something.
func (s *scene) fork(parent int, next *int, n int) {
	s.k.Before = func(op cgroupmodel.Op) error {
		if op.Changes() && n > 0 {
			n--
			*next++
			s.k.Fork(parent, *next)
		}
		return nil
	}
}

// openFiles counts our file handles.
func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
