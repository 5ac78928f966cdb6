package cgroup_test

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
)

// must is for the steps that set a case up.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// write is one setting of a case, in the order given.
type write struct {
	c                 cgroup.Controller
	path, file, value string
}

func prepare(t *testing.T, k *cgroupmodel.Kernel, writes ...write) {
	t.Helper()
	for _, w := range writes {
		if w.file == "" {
			must(t, k.Make(w.c, w.path))
			continue
		}
		must(t, k.Write(w.c, w.path, w.file, w.value))
	}
}

func v1Tree(t *testing.T) *cgroupmodel.Kernel {
	k := cgroupmodel.New(cgroupmodel.V1("0-7"))
	prepare(t, k,
		write{cgroup.CPU, "/a", "", ""}, write{cgroup.CPU, "/a", "cpu.cfs_quota_us", "50000"},
		write{cgroup.CPU, "/a/b", "", ""}, write{cgroup.CPU, "/a/b", "cpu.cfs_quota_us", "20000"},
		write{cgroup.CPUSet, "/a", "", ""}, write{cgroup.CPUSet, "/a", "cpuset.cpus", "0-3"},
		write{cgroup.CPUSet, "/a", "cpuset.mems", "0"},
		write{cgroup.CPUSet, "/a/b", "", ""}, write{cgroup.CPUSet, "/a/b", "cpuset.cpus", "1-2"},
		write{cgroup.CPUSet, "/a/b", "cpuset.mems", "0"},
		write{cgroup.CPUSet, "/e", "", ""},
	)
	k.Spawn("/a/b", 10)
	return k
}

func v2Tree(t *testing.T) *cgroupmodel.Kernel {
	k := cgroupmodel.New(cgroupmodel.V2("0-7"))
	const cpu = cgroup.CPU
	prepare(t, k,
		write{cpu, "/", "cgroup.subtree_control", "+cpu +cpuset"},
		write{cpu, "/a", "", ""}, write{cpu, "/a", "cgroup.subtree_control", "+cpu"}, write{cpu, "/a/b", "", ""},
		write{cpu, "/a/c", "", ""},
		write{cpu, "/t", "", ""}, write{cpu, "/t/x", "", ""}, write{cpu, "/t/y", "", ""}, write{cpu, "/t/x", "cgroup.type", "threaded"},
		write{cpu, "/s", "", ""}, write{cpu, "/s", "cpuset.cpus", "0-1"},
	)
	k.Spawn("/a/b", 10)
	k.Spawn("/s", 12)
	k.Spawn("/", 11)
	return k
}

// Each refusal has its own kind, with the cause looked up.
func TestErrorsNameTheCause(t *testing.T) {
	for _, c := range []struct {
		name  string
		tree  func(*testing.T) *cgroupmodel.Kernel
		do    func(*cgroupmodel.Kernel) error
		errno unix.Errno
		text  string
	}{
		{"outside the parent", v1Tree, func(k *cgroupmodel.Kernel) error { return k.Write(cgroup.CPUSet, "/a/b", "cpuset.cpus", "3-5") },
			unix.EACCES, "cgroup /a/b: cpuset.cpus: kernel refused 3-5: outside the parent's 0-3 (permission denied)"},
		{"child needs more", v1Tree, func(k *cgroupmodel.Kernel) error { return k.Write(cgroup.CPUSet, "/a", "cpuset.cpus", "0-1") },
			unix.EBUSY, "cgroup /a: cpuset.cpus: kernel refused 0-1: a child needs more: /a/b has 1-2 (device or resource busy)"},
		{"tasks inside", v1Tree, func(k *cgroupmodel.Kernel) error { return k.Write(cgroup.CPUSet, "/a/b", "cpuset.cpus", "") },
			unix.ENOSPC, `cgroup /a/b: cpuset.cpus: kernel refused "": it would leave the tasks inside without a CPU or memory node (no space left on device)`},
		{"attach to an empty cpuset", v1Tree, func(k *cgroupmodel.Kernel) error { return k.Attach(cgroup.CPUSet, "/e", 10) },
			unix.ENOSPC, "cgroup /e: cannot move process 10 here: its cpuset.cpus or cpuset.mems is empty: set both " +
				"first (no space left on device)"},
		{"no such CPU", v1Tree, func(k *cgroupmodel.Kernel) error { return k.Write(cgroup.CPUSet, "/a/b", "cpuset.cpus", "9") },
			unix.ERANGE, "cgroup /a/b: cpuset.cpus: kernel refused 9: a number beyond the CPUs or memory nodes of " +
				"this machine (numerical result out of range)"},
		{"no list", v1Tree, func(k *cgroupmodel.Kernel) error { return k.Write(cgroup.CPUSet, "/a/b", "cpuset.cpus", "all") },
			unix.EINVAL, "cgroup /a/b: cpuset.cpus: kernel refused all: not a list of CPUs (invalid argument)"},
		{"parent not exclusive", v1Tree,
			func(k *cgroupmodel.Kernel) error { return k.Write(cgroup.CPUSet, "/a/b", "cpuset.cpu_exclusive", "1") },
			unix.EACCES, "cgroup /a/b: cpuset.cpu_exclusive: kernel refused 1: the parent is not exclusive itself (permission denied)"},
		{"above the parent's quota", v1Tree,
			func(k *cgroupmodel.Kernel) error { return k.Write(cgroup.CPU, "/a/b", "cpu.cfs_quota_us", "80000") },
			unix.EINVAL, "cgroup /a/b: cpu.cfs_quota_us: kernel refused 80000: 0.8 CPUs are above the 0.5 CPUs of /a (invalid argument)"},
		{"below a child's quota", v1Tree,
			func(k *cgroupmodel.Kernel) error { return k.Write(cgroup.CPU, "/a", "cpu.cfs_quota_us", "10000") },
			unix.EINVAL, "cgroup /a: cpu.cfs_quota_us: kernel refused 10000: 0.1 CPUs are below the 0.2 CPUs of its " +
				"child /a/b (invalid argument)"},
		{"burst above quota", v1Tree, func(k *cgroupmodel.Kernel) error { return k.Write(cgroup.CPU, "/a/b", "cpu.cfs_burst_us", "30000") },
			unix.EINVAL, "cgroup /a/b: cpu.cfs_burst_us: kernel refused 30000: burst 30ms is above the quota 20ms (invalid argument)"},
		{"quota too small", v1Tree, func(k *cgroupmodel.Kernel) error { return k.Write(cgroup.CPU, "/a/b", "cpu.cfs_quota_us", "500") },
			unix.EINVAL, "cgroup /a/b: cpu.cfs_quota_us: kernel refused 500: quota 500µs is below the least of 1ms (invalid argument)"},
		{"period too long", v1Tree, func(k *cgroupmodel.Kernel) error {
			return k.Write(cgroup.CPU, "/a/b", "cpu.cfs_period_us", "2000000")
		},
			unix.EINVAL, "cgroup /a/b: cpu.cfs_period_us: kernel refused 2000000: period 2s is not within 1ms to 1s (invalid argument)"},
		{"root takes no limit", v1Tree, func(k *cgroupmodel.Kernel) error { return k.Write(cgroup.CPU, "/", "cpu.cfs_quota_us", "50000") },
			unix.EINVAL, "cgroup /: cpu.cfs_quota_us: kernel refused 50000: the root cgroup has no limit (invalid argument)"},
		{"in use", v1Tree, func(k *cgroupmodel.Kernel) error { return k.Remove(cgroup.CPU, "/a") },
			unix.EBUSY, "cgroup /a: cannot be removed: it still holds processes or child cgroups (device or resource busy)"},
		{"process gone", v1Tree, func(k *cgroupmodel.Kernel) error { return k.Attach(cgroup.CPU, "/a", 99) },
			unix.ESRCH, "cgroup /a: cannot move process 99 here: the process has ended (no such process)"},
		{"newline in a name", v1Tree, func(k *cgroupmodel.Kernel) error { return k.Make(cgroup.CPU, "/x\ny") },
			unix.EINVAL, `cgroup "/x\ny": cannot be created: the kernel accepts no newline in a cgroup's name (invalid argument)`},
		{"gone", v1Tree, func(k *cgroupmodel.Kernel) error { return k.Write(cgroup.CPU, "/gone\x1b[2J", "cpu.shares", "2") },
			unix.ENOENT, `cgroup "/gone\x1b[2J": cpu.shares: kernel refused 2: the cgroup does not exist (no such file or directory)`},

		{"controller not enabled", v2Tree, func(k *cgroupmodel.Kernel) error { return k.Write(cgroup.CPUSet, "/a/b", "cpuset.cpus", "0") },
			unix.ENOENT, "cgroup /a/b: cpuset.cpus: kernel refused 0: the cpuset controller is not enabled for this " +
				"cgroup: write +cpuset to cgroup.subtree_control of /a (no such file or directory)"},
		{"no internal processes", v2Tree, func(k *cgroupmodel.Kernel) error { return k.Attach(cgroup.CPU, "/a", 11) },
			unix.EBUSY, "cgroup /a: cannot move process 11 here: it enables controllers for children " +
				"(cgroup.subtree_control), so it may hold no processes itself (device or resource busy)"},
		{"not its own controller", v2Tree, func(k *cgroupmodel.Kernel) error {
			return k.Write(cgroup.CPU, "/a/b", "cgroup.subtree_control", "+cpuset")
		},
			unix.ENOENT, "cgroup /a/b: cgroup.subtree_control: kernel refused +cpuset: not among its own controllers " +
				"[cpu] (no such file or directory)"},
		{"domain invalid", v2Tree, func(k *cgroupmodel.Kernel) error { return k.Attach(cgroup.CPU, "/t/y", 11) },
			unix.EOPNOTSUPP, `cgroup /t/y: cannot move process 11 here: its cgroup.type is "domain invalid": only domain cgroups take whole processes (operation not supported)`},
		{"threaded", v2Tree, func(k *cgroupmodel.Kernel) error { _, err := k.Procs(cgroup.CPU, "/t/x"); return err },
			unix.EOPNOTSUPP, `cgroup /t/x: cgroup.procs: cannot read: its cgroup.type is "threaded": only cgroup.threads can be read (operation not supported)`},
		{"weight out of range", v2Tree, func(k *cgroupmodel.Kernel) error { return k.Write(cgroup.CPU, "/a", "cpu.weight", "10001") },
			unix.ERANGE, "cgroup /a: cpu.weight: kernel refused 10001: the number is out of range (numerical result out of range)"},
		{"clearing a populated v2 cpuset", v2Tree,
			func(k *cgroupmodel.Kernel) error { return k.Write(cgroup.CPUSet, "/s", "cpuset.cpus", "") },
			unix.ENOSPC, `cgroup /s: cpuset.cpus: kernel refused "": this kernel does not clear the list while tasks are inside; the parent's list has the same effect (no space left on device)`},
	} {
		k := c.tree(t)
		before := k.Snapshot()
		err := c.do(k)
		if !errors.Is(err, c.errno) {
			t.Errorf("%s: %v is not %v", c.name, err, c.errno)
			continue
		}
		if err.Error() != c.text {
			t.Errorf("%s:\n got %s\nwant %s", c.name, err, c.text)
		}
		if diff := before.Diff(k.Snapshot()); len(diff) > 0 {
			t.Errorf("%s: refused, yet changed: %v", c.name, diff)
		}
	}
}

// Errnos that the model cannot produce.
func TestErrorsOfTheHost(t *testing.T) {
	k := v1Tree(t)
	for _, c := range []struct {
		e    cgroup.Error
		text string
	}{
		{cgroup.Error{Op: cgroup.OpWrite, Path: "/a", File: "cpu.shares", Value: "2", Errno: unix.EROFS},
			"cgroup /a: cpu.shares: kernel refused 2: mounted read-only; remount it writable or run outside this " +
				"container (read-only file system)"},
		{cgroup.Error{Op: cgroup.OpWrite, Path: "/a", File: "cpu.shares", Value: "2", Errno: unix.EPERM},
			"cgroup /a: cpu.shares: kernel refused 2: not permitted; this needs root, or a cgroup delegated to this " +
				"user (operation not permitted)"},
		{cgroup.Error{Op: cgroup.OpMake, Path: "/a/n", Errno: unix.EACCES},
			"cgroup /a/n: cannot be created: no permission; this needs root, or a cgroup delegated to this user (permission denied)"},
		{cgroup.Error{Op: cgroup.OpWrite, Path: "/a", File: "cpu.shares", Value: "2", Errno: unix.ENODEV, Kind: cgroup.ErrNoCgroup},
			"cgroup /a: cpu.shares: kernel refused 2: the cgroup does not exist (no such device)"},
	} {
		if got := cgroup.NewError(k, cgroup.CPU, c.e).Error(); got != c.text {
			t.Errorf("\n got %s\nwant %s", got, c.text)
		}
	}
	long := cgroup.NewError(k, cgroup.CPU, cgroup.Error{Op: cgroup.OpWrite, Path: "/" + strings.Repeat("x\n", 5000),
		Value: strings.Repeat("9", 5000), Errno: unix.EPERM})
	if n := len(long.Error()); n > 14000 || strings.Contains(long.Error(), "\n") {
		t.Errorf("message of %d bytes, or with a raw newline", n)
	}
}

func TestWriteCPUsReadsBack(t *testing.T) {
	k := cgroupmodel.New(cgroupmodel.V2("0-7"))
	prepare(t, k, write{cgroup.CPU, "/", "cgroup.subtree_control", "+cpuset"},
		write{cgroup.CPU, "/p", "", ""}, write{cgroup.CPUSet, "/p", "cpuset.cpus", "0-3"},
		write{cgroup.CPU, "/p", "cgroup.subtree_control", "+cpuset"}, write{cgroup.CPU, "/p/c", "", ""})
	if got, err := cgroup.WriteCPUs(k, "/p/c", cpuset.New(1, 2)); err != nil || got.String() != "1-2" {
		t.Errorf("%s, %v", got, err)
	}
	got, err := cgroup.WriteCPUs(k, "/p/c", cpuset.New(3, 4))
	var not *cgroup.NotInForce
	if !errors.As(err, &not) || got.String() != "3" {
		t.Fatalf("%s, %v", got, err)
	}
	if want := `cgroup /p/c: cpuset.cpus: the kernel took 3-4, but "3" are in force: the parent lacks the others`; err.Error() != want {
		t.Errorf("got %s", err)
	}
	if got, err := cgroup.WriteCPUs(k, "/p/c", cpuset.New(6)); !errors.As(err, &not) || got.String() != "0-3" {
		t.Errorf("nothing of it in the parent means all of the parent's: %s, %v", got, err)
	}
	if got, err := cgroup.WriteCPUs(k, "/p/c", cpuset.New()); err != nil || got.String() != "0-3" {
		t.Errorf("cleared means inherited: %s, %v", got, err)
	}
}

func TestReadCPUSet(t *testing.T) {
	k := v1Tree(t)
	prepare(t, k, write{cgroup.CPUSet, "/e", "cpuset.cpu_exclusive", "1"}, write{cgroup.CPUSet, "/e", "cpuset.sched_load_balance", "0"},
		write{cgroup.CPUSet, "/e", "cgroup.clone_children", "1"})
	s, err := cgroup.ReadCPUSet(k, "/e")
	if err != nil || !s.Exclusive || s.LoadBalance || !s.CloneChildren || s.Partition != "" {
		t.Errorf("%+v, %v", s, err)
	}
	k = v2Tree(t)
	k.Pin(cgroup.CPUSet, "/s", "cpuset.cpus.partition", "isolated")
	k.Pin(cgroup.CPUSet, "/s", "cpuset.cpus.exclusive.effective", "0-1")
	s, err = cgroup.ReadCPUSet(k, "/s")
	if err != nil || !s.InPartition() || s.LoadBalance || s.ExclusiveEffective.String() != "0-1" || s.Configured.String() != "0-1" {
		t.Errorf("%+v, %v", s, err)
	}
	k.Pin(cgroup.CPUSet, "/s", "cpuset.cpus.partition", "root invalid (Cpu list in cpuset.cpus not exclusive)")
	if s, err = cgroup.ReadCPUSet(k, "/s"); err != nil || s.InPartition() {
		t.Errorf("an invalid partition is not in force: %+v, %v", s, err)
	}
}

func TestReadType(t *testing.T) {
	k := v2Tree(t)
	if kind, err := cgroup.ReadType(k, cgroup.CPU, "/t"); err != nil || kind != "domain threaded" {
		t.Errorf("%q, %v", kind, err)
	}
}

func TestLevelsTooDeep(t *testing.T) {
	k := cgroupmodel.New(cgroupmodel.V1("0"))
	path := ""
	for range cgroup.MaxDepth + 1 {
		path += "/x"
		must(t, k.Make(cgroup.CPU, path))
	}
	if levels, err := cgroup.Levels(k, path); !errors.Is(err, cgroup.ErrTooMuch) {
		t.Errorf("%d levels, %v", len(levels), err)
	}
	seen := 0
	err := cgroup.Walk(k, cgroup.CPU, "/", func(string) error { seen++; return nil })
	if !errors.Is(err, cgroup.ErrTooMuch) || seen != cgroup.MaxDepth+1 {
		t.Errorf("walk: %d cgroups, %v", seen, err)
	}
	if levels, err := cgroup.Levels(k, cgroup.Parent(cgroup.Parent(path))); err != nil || len(levels) != cgroup.MaxDepth {
		t.Errorf("%d levels, %v", len(levels), err)
	}
}
