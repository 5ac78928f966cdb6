package cgroupmodel_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
	"golang.org/x/sys/unix"
)

// do is one write of a script; file "" makes the cgroup, "-" removes it; errno 0 means accepted.
type do struct {
	c           cgroup.Controller
	path, file  string
	value       string
	errno       unix.Errno
	pid, spawns int
}

func play(t *testing.T, k *cgroupmodel.Kernel, script []do) {
	t.Helper()
	for i, d := range script {
		var err error
		switch {
		case d.spawns != 0:
			k.Spawn(d.path, d.spawns)
		case d.pid != 0:
			err = k.Attach(d.c, d.path, d.pid)
		case d.file == "":
			err = k.Make(d.c, d.path)
		case d.file == "-":
			err = k.Remove(d.c, d.path)
		default:
			err = k.Write(d.c, d.path, d.file, d.value)
		}
		if d.errno == 0 && err != nil || d.errno != 0 && !errors.Is(err, d.errno) {
			t.Fatalf("step %d %+v: %v", i, d, err)
		}
	}
}

const (
	cpu, set = cgroup.CPU, cgroup.CPUSet
	subtree  = cgroup.FileSubtreeControl
)

// The rules of v2, each step with the kernel's answer.
func TestV2Rules(t *testing.T) {
	for name, script := range map[string][]do{
		"files come with the controller": {
			{c: cpu, path: "/a"},
			{c: cpu, path: "/a", file: "cpu.max", value: "max", errno: unix.ENOENT},
			{c: cpu, path: "/", file: subtree, value: "+cpu"},
			{c: cpu, path: "/a", file: "cpu.max", value: "50000 100000"},
			{c: set, path: "/a", file: "cpuset.cpus", value: "0", errno: unix.ENOENT},
			{c: cpu, path: "/", file: subtree, value: "-cpu"},
			{c: cpu, path: "/a", file: "cpu.max", value: "max", errno: unix.ENOENT},
		},
		"a controller must be there itself before it is handed on": {
			{c: cpu, path: "/a"}, {c: cpu, path: "/a/b"},
			{c: cpu, path: "/a", file: subtree, value: "+cpu", errno: unix.ENOENT},
			{c: cpu, path: "/", file: subtree, value: "+cpu +cpuset"},
			{c: cpu, path: "/a", file: subtree, value: "+cpu"},
			{c: cpu, path: "/", file: subtree, value: "-cpu", errno: unix.EBUSY},
			{c: cpu, path: "/", file: subtree, value: "+io", errno: unix.EINVAL},
			{c: cpu, path: "/", file: subtree, value: "cpu", errno: unix.EINVAL},
		},
		"no internal processes beside populated domains": {
			{c: cpu, path: "/", file: subtree, value: "+cpu"}, {c: cpu, path: "/a"}, {c: cpu, path: "/a/b"},
			{path: "/a", spawns: 1}, {path: "/a/b", spawns: 2},
			{c: cpu, path: "/a", file: subtree, value: "+cpu", errno: unix.EBUSY},
			{c: cpu, path: "/", pid: 1},
			{c: cpu, path: "/a", file: subtree, value: "+cpu"},
			{c: cpu, path: "/a", pid: 1, errno: unix.EBUSY},
		},
		"a cgroup with processes becomes a thread root": {
			{c: cpu, path: "/", file: subtree, value: "+cpu"}, {c: cpu, path: "/a"}, {c: cpu, path: "/a/b"}, {path: "/a", spawns: 1},
			{c: cpu, path: "/a", file: subtree, value: "+cpu"},
			{c: cpu, path: "/a/b", pid: 1, errno: unix.EOPNOTSUPP},
			{c: cpu, path: "/a/b", file: cgroup.FileType, value: "threaded"},
			{c: cpu, path: "/a/b", pid: 1},
		},
		"a child's quota may exceed its parent's": {
			{c: cpu, path: "/", file: subtree, value: "+cpu"}, {c: cpu, path: "/a"},
			{c: cpu, path: "/a", file: subtree, value: "+cpu"}, {c: cpu, path: "/a/b"},
			{c: cpu, path: "/a", file: "cpu.max", value: "10000 100000"},
			{c: cpu, path: "/a/b", file: "cpu.max", value: "90000 100000"},
			{c: cpu, path: "/a/b", file: "cpu.max.burst", value: "90001", errno: unix.EINVAL},
			{c: cpu, path: "/a/b", file: "cpu.max.burst", value: "90000"},
			{c: cpu, path: "/a/b", file: "cpu.max", value: "80000", errno: unix.EINVAL},
			{c: cpu, path: "/a/b", file: "cpu.max", value: "999 100000", errno: unix.EINVAL},
			{c: cpu, path: "/a/b", file: "cpu.max", value: "max 1000001", errno: unix.EINVAL},
		},
		"CPUs beyond the parent's are taken": {
			{c: cpu, path: "/", file: subtree, value: "+cpuset"}, {c: cpu, path: "/a"},
			{c: cpu, path: "/a", file: subtree, value: "+cpuset"}, {c: cpu, path: "/a/b"},
			{c: set, path: "/a", file: "cpuset.cpus", value: "0-1"},
			{c: set, path: "/a/b", file: "cpuset.cpus", value: "1-3"},
			{path: "/a/b", spawns: 1},
			{c: set, path: "/a", file: "cpuset.cpus", value: "", errno: unix.ENOSPC},
			{c: cpu, path: "/a/b", file: "-", errno: unix.EBUSY},
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := cgroupmodel.New(cgroupmodel.V2("0-3"))
			play(t, k, script)
			if broken := k.Check(); len(broken) > 0 {
				t.Error(broken)
			}
		})
	}
}

func TestV2EffectiveCPUs(t *testing.T) {
	k := cgroupmodel.New(cgroupmodel.V2("0-7"))
	play(t, k, []do{
		{c: cpu, path: "/", file: subtree, value: "+cpuset"}, {c: cpu, path: "/a"}, {c: cpu, path: "/a", file: subtree, value: "+cpuset"},
		{c: cpu, path: "/a/b"}, {c: cpu, path: "/a/b/c"}, {path: "/a/b/c", spawns: 5},
	})
	for _, step := range []struct{ path, value, allowed string }{
		{"/a", "0-3", "0-3"}, {"/a/b", "2-5", "2-3"}, {"/a/b", "6", "0-3"}, {"/a", "4-6", "6"},
	} {
		play(t, k, []do{{c: set, path: step.path, file: "cpuset.cpus", value: step.value}})
		if got, _ := k.Allowed(5); got.String() != step.allowed {
			t.Errorf("%s to %s: allowed %s, want %s", step.path, step.value, got, step.allowed)
		}
	}
}

func TestDisabledControllerForgets(t *testing.T) {
	k := cgroupmodel.New(cgroupmodel.V2("0-3"))
	play(t, k, []do{
		{c: cpu, path: "/", file: subtree, value: "+cpu"}, {c: cpu, path: "/a"}, {c: cpu, path: "/a", file: "cpu.weight", value: "7"},
		{c: cpu, path: "/", file: subtree, value: "-cpu"}, {c: cpu, path: "/", file: subtree, value: "+cpu"},
	})
	if got, err := k.Read(cpu, "/a", "cpu.weight"); err != nil || got != "100" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestSnapshotDiff(t *testing.T) {
	k := cgroupmodel.New(cgroupmodel.V1("0-3"))
	play(t, k, []do{{c: cpu, path: "/a"}, {path: "/", spawns: 1}})
	before := k.Snapshot()
	if diff := before.Diff(k.Snapshot()); len(diff) != 0 {
		t.Errorf("nothing changed, yet %v", diff)
	}
	play(t, k, []do{{c: cpu, path: "/a", file: "cpu.shares", value: "2"}, {c: set, path: "/n"}, {c: cpu, path: "/a", pid: 1}})
	diff := before.Diff(k.Snapshot())
	for _, want := range []string{`cpu /a cpu.shares: was "1024", is "2"`, `cpuset /n : is new: "exists"`,
		`cpu /a cgroup.procs: was "", is "1"`} {
		if !slices.Contains(diff, want) {
			t.Errorf("no %q in %v", want, diff)
		}
	}
	if diff := before.Settings().Diff(k.Snapshot().Settings()); slices.ContainsFunc(diff,
		func(s string) bool { return strings.Contains(s, cgroup.FileProcs) }) {
		t.Errorf("processes are no settings: %v", diff)
	}
	play(t, k, []do{{c: cpu, path: "/", pid: 1}, {c: cpu, path: "/a", file: "cpu.shares", value: "1024"}, {c: set, path: "/n", file: "-"}})
	if diff := before.Diff(k.Snapshot()); len(diff) != 0 {
		t.Errorf("all is back, yet %v", diff)
	}
}

// Stopped before any of its operations, a sequence has done exactly the earlier ones.
func TestBeforeStopsAnywhere(t *testing.T) {
	script := []do{
		{c: set, path: "/a"}, {c: set, path: "/a", file: "cpuset.cpus", value: "0-1"},
		{c: set, path: "/a", file: "cpuset.mems", value: "0"},
		{c: set, path: "/a", pid: 1}, {c: set, path: "/", pid: 1}, {c: set, path: "/a", file: "-"},
	}
	killed := errors.New("killed")
	for stop := range script {
		k, twin := cgroupmodel.New(cgroupmodel.V1("0-3")), cgroupmodel.New(cgroupmodel.V1("0-3"))
		k.Spawn("/", 1)
		twin.Spawn("/", 1)
		play(t, twin, script[:stop])
		seen := 0
		k.Before = func(op cgroupmodel.Op) error {
			if !op.Changes() {
				t.Errorf("%v changes nothing", op)
			}
			if seen++; seen > stop {
				return killed
			}
			return nil
		}
		play(t, k, script[:stop])
		if err := k.Make(set, "/never"); err != killed {
			t.Fatalf("stop %d: %v", stop, err)
		}
		k.Before = nil
		if diff := twin.Snapshot().Diff(k.Snapshot()); len(diff) != 0 {
			t.Errorf("stop %d: %v", stop, diff)
		}
	}
}

// The hook may act as another process would.
func TestBeforeMayChangeTheModel(t *testing.T) {
	k := cgroupmodel.New(cgroupmodel.V1("0-3"))
	play(t, k, []do{{c: cpu, path: "/a"}, {path: "/a", spawns: 1}})
	forked := false
	k.Before = func(op cgroupmodel.Op) error {
		if op.Kind == cgroup.OpAttach && !forked {
			forked = true
			k.Fork(1, 2)
		}
		return nil
	}
	if err := k.Attach(cpu, "/", 1); err != nil {
		t.Fatal(err)
	}
	if pids, err := k.Procs(cpu, "/a"); err != nil || !slices.Equal(pids, []int{2}) {
		t.Errorf("the fork stayed behind: %v, %v", pids, err)
	}
	k.Exit(2)
	if pids, err := k.Procs(cpu, "/a"); err != nil || len(pids) != 0 {
		t.Errorf("%v, %v", pids, err)
	}
}

func TestForeignProcessesReadAsZero(t *testing.T) {
	k := cgroupmodel.New(cgroupmodel.V1("0-3"))
	play(t, k, []do{{c: cpu, path: "/a"}})
	k.SpawnForeign("/a")
	k.SpawnForeign("/a")
	if pids, err := k.Procs(cpu, "/a"); err != nil || !slices.Equal(pids, []int{0, 0}) {
		t.Errorf("%v, %v", pids, err)
	}
	if err := k.Attach(cpu, "/", 0); !errors.Is(err, cgroup.ErrBadPID) {
		t.Errorf("%v", err)
	}
	if err := k.Remove(cpu, "/a"); !errors.Is(err, unix.EBUSY) {
		t.Errorf("%v", err)
	}
}

func TestTogetherIsOneTree(t *testing.T) {
	config := cgroupmodel.V1("0-3")
	config.Together = true
	k := cgroupmodel.New(config)
	play(t, k, []do{{c: cpu, path: "/a"}, {c: set, path: "/a", file: "cpuset.cpus", value: "0"}})
	if _, err := k.Read(cpu, "/a", "cpu.shares"); err != nil {
		t.Error(err)
	}
	mixed := cgroupmodel.V2("0-3")
	mixed.CPUSet = cgroup.V1
	k = cgroupmodel.New(mixed)
	play(t, k, []do{{c: cpu, path: "/", file: subtree, value: "+cpuset", errno: unix.EINVAL}, {c: cpu, path: "/a"},
		{c: set, path: "/a", file: "-", errno: unix.ENOENT}})
}

func TestPin(t *testing.T) {
	k := cgroupmodel.New(cgroupmodel.V1("0-3"))
	play(t, k, []do{{c: cpu, path: "/a"}})
	k.Pin(cpu, "/a", "cpu.stat", "nr_periods 5\nnr_throttled 4\nthrottled_time 3")
	s, err := cgroup.ReadStat(k, cgroup.Group{Path: "/a", CPUAcctPath: "/a"})
	if err == nil {
		t.Errorf("cpuacct has no /a: %+v", s)
	}
	if s, err = cgroup.ReadStat(k, cgroup.Group{Path: "/a", CPUAcctPath: "/"}); err != nil || s.Periods != 5 ||
		s.ThrottledPeriods != 4 || s.Usage == nil {
		t.Errorf("%+v, %v", s, err)
	}
	if k.Pin(cpu, "/gone", "cpu.stat", "x") {
		t.Error("pinned a file of no cgroup")
	}
}

// The one check of a limit refuses what the modelled kernel refuses, and nothing else: also a burst without a quota, which the
// kernel takes. Through differential_test.go the real kernel agrees.
func TestCheckOfALimitIsTheKernels(t *testing.T) {
	newest, err := bandwidth.For("6.18")
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		us := func(name string, bounds ...int64) int64 {
			return rapid.OneOf(rapid.SampledFrom(bounds), rapid.Int64Range(0, 3_000_000)).Draw(t, name)
		}
		quota, period, burst := us("quota", -1, 999, 1000), us("period", 999, 1000, 1_000_000, 1_000_001), us("burst", 0, 999, 1000, 1001)
		k := cgroupmodel.New(cgroupmodel.V2("0"))
		text := strconv.FormatInt(quota, 10)
		if quota < 0 {
			text = "max"
		}
		for _, err := range []error{k.Write(cpu, "/", subtree, "+cpu"), k.Make(cpu, "/a"),
			k.Write(cpu, "/a", "cpu.max.burst", strconv.FormatInt(burst, 10))} {
			if err != nil {
				t.Fatal(err)
			}
		}
		refused := k.Write(cpu, "/a", "cpu.max", fmt.Sprintf("%s %d", text, period)) != nil
		l := cgroup.Limit{Quota: max(bandwidth.NoQuota, time.Duration(quota)*bandwidth.Unit),
			Period: time.Duration(period) * bandwidth.Unit, Burst: time.Duration(burst) * bandwidth.Unit}
		if bounds, whole := l.CheckBounds(), l.Check(&newest); (bounds != nil) != refused || (whole != nil) != refused {
			t.Fatalf("%+v: refused by the kernel: %v, by the check: %v, %v", l, refused, bounds, whole)
		}
	})
}
