package cgroup_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/utils/cpuset"
	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/procfs"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// A child that its parent's quota stops has zeros in its own cpu.stat; cpu.stat.local has the time (since 6.6).
func TestRealThrottledByTheParent(t *testing.T) {
	require.EachCgroup(t, "the files of cgroups")
	onBoth(t, throttledByTheParent)
}

func throttledByTheParent(t *testing.T, h *cgroup.Host, base string, v cgroup.Version) {
	child := base + "/child"
	must(t, h.Make(cgroup.CPU, child))
	limit(t, h, v, base, 5*time.Millisecond, 100*time.Millisecond)
	start(t, h, "while :; do :; done", map[cgroup.Controller]string{cgroup.CPU: child})

	levels, err := cgroup.Levels(h, child)
	must(t, err)
	if cpus, limited, at := cgroup.Effective(levels); !limited || cpus != 0.05 || at != base {
		t.Errorf("effective %v %v at %q", cpus, limited, at)
	}
	for range 500 {
		parent, err := cgroup.ReadStat(h, cgroup.Group{Path: base})
		must(t, err)
		own, err := cgroup.ReadStat(h, cgroup.Group{Path: child})
		must(t, err)
		if own.ThrottledTotal == nil {
			t.Skip("this kernel has no cpu.stat.local")
		}
		if parent.ThrottledPeriods >= 3 && *own.ThrottledTotal > 0 {
			if own.ThrottledPeriods != 0 || own.Throttled != 0 {
				t.Errorf("the child's own counters moved: %+v", own)
			}
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("never throttled")
}

func TestRealCounterparts(t *testing.T) {
	require.EachCgroup(t, "the files of cgroups")
	h, base := realV1(t)
	if h.SameHierarchy(cgroup.CPU, cgroup.CPUSet) {
		t.Skip("cpu and cpuset share a hierarchy here")
	}
	for _, path := range []string{base + "/unit", base + "/unit/sub", base + "/empty"} {
		must(t, h.Make(cgroup.CPU, path))
	}
	must(t, h.Make(cgroup.CPUSet, base+"/other"))
	for _, file := range []string{cgroup.FileCPUs, cgroup.FileMems} {
		text, err := h.Read(cgroup.CPUSet, base, file)
		must(t, err)
		must(t, h.Write(cgroup.CPUSet, base+"/other", file, text))
	}
	pid := start(t, h, "exec sleep 20", map[cgroup.Controller]string{cgroup.CPU: base + "/unit/sub", cgroup.CPUSet: base + "/other"})
	g, err := h.Group(base + "/unit")
	if err != nil || g.CPUSetPath != base+"/other" {
		t.Errorf("by a member of a descendant: %+v, %v", g, err)
	}
	if g, err = h.Group(base + "/empty"); err != nil || g.CPUSetPath != base {
		t.Errorf("without members the nearest ancestor that exists: %+v, %v", g, err)
	}
	if path, ok, err := h.Of(pid, cgroup.CPU); err != nil || !ok || path != base+"/unit/sub" {
		t.Errorf("of the process: %q %v %v", path, ok, err)
	}
}

// Between any two limits that parent and child allow, the kernel accepts every write of LimitWrites.
func TestRealLimitWritesAreTaken(t *testing.T) {
	require.EachCgroup(t, "the files of cgroups")
	onBoth(t, limitWritesAreTaken)
}

func limitWritesAreTaken(t *testing.T, h *cgroup.Host, base string, v cgroup.Version) {
	mid, leaf := base+"/mid", base+"/mid/leaf"
	must(t, h.Make(cgroup.CPU, mid))
	if v == cgroup.V2 {
		must(t, h.Write(cgroup.CPU, mid, cgroup.FileSubtreeControl, "+cpu"))
	}
	must(t, h.Make(cgroup.CPU, leaf))
	limit(t, h, v, base, 80*time.Millisecond, 100*time.Millisecond)
	limit(t, h, v, leaf, 20*time.Millisecond, 100*time.Millisecond)
	rapid.Check(t, func(t *rapid.T) {
		cur, err := cgroup.ReadLimit(h, mid)
		if err != nil {
			t.Fatal(err)
		}
		want := cgroup.Unlimited()
		want.Period = time.Duration(rapid.SampledFrom([]int{5, 10, 50, 100, 200, 1000}).Draw(t, "period")) * time.Millisecond
		if percent := rapid.IntRange(19, 80).Draw(t, "percent"); percent >= 20 {
			want.Quota = want.Period * time.Duration(percent) / 100
			want.Burst = want.Quota * time.Duration(rapid.IntRange(0, 100).Draw(t, "burst")) / 100
			want.Burst = want.Burst.Truncate(time.Microsecond)
		}
		for _, w := range cgroup.LimitWrites(v, cur, want, true) {
			if err := h.Write(cgroup.CPU, mid, w.File, w.Value); err != nil {
				t.Fatalf("%+v -> %+v: %v", cur, want, err)
			}
		}
		if got, err := cgroup.ReadLimit(h, mid); err != nil || got != want {
			t.Fatalf("%+v -> %+v: ends at %+v, %v", cur, want, got, err)
		}
	})
}

func TestRealRefusals(t *testing.T) {
	require.EachCgroup(t, "the files of cgroups")
	h, base := realV1(t)
	empty := base + "/empty"
	must(t, h.Make(cgroup.CPUSet, empty))
	pid := start(t, h, "exec sleep 20", nil)

	err := h.Attach(cgroup.CPUSet, empty, pid)
	if !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "set both first") {
		t.Errorf("attach to an empty cpuset: %v", err)
	}
	must(t, h.Write(cgroup.CPUSet, empty, cgroup.FileCPUs, "0"))
	must(t, h.Write(cgroup.CPUSet, empty, cgroup.FileCPUs, ""))
	if set, _, err := cgroup.CPUs(h, empty); err != nil || !set.IsEmpty() {
		t.Errorf("an empty value must clear the list: %s, %v", set, err)
	}
	if err := h.Write(cgroup.CPU, base, "cpu.shares", ""); !errors.Is(err, cgroup.ErrEmptyValue) {
		t.Errorf("an empty weight: %v", err)
	}
	if err := h.Write(cgroup.CPUSet, "/", cgroup.FileCPUs, "0"); !errors.Is(err, unix.EACCES) {
		t.Errorf("the root's CPUs: %v", err)
	}
	if err := h.Remove(cgroup.CPUSet, base); !errors.Is(err, unix.EBUSY) {
		t.Errorf("rmdir with a child: %v", err)
	}
	if _, err := h.Read(cgroup.CPU, base, "cpu.max"); !errors.Is(err, cgroup.ErrNoFile) {
		t.Errorf("a v2 file on v1: %v", err)
	}
	// A handle that outlives its cgroup returns ENODEV.
	gone := base + "/gone"
	must(t, h.Make(cgroup.CPU, gone))
	f, err := os.OpenFile(h.Dir(cgroup.CPU, gone)+"/cpu.shares", os.O_WRONLY, 0)
	must(t, err)
	defer f.Close()
	must(t, h.Remove(cgroup.CPU, gone))
	if _, err := f.WriteString("2"); !errors.Is(err, unix.ENODEV) {
		t.Errorf("write through a kept handle: %v", err)
	}
	if err := h.Write(cgroup.CPU, gone, "cpu.shares", "2"); !errors.Is(err, cgroup.ErrNoCgroup) {
		t.Errorf("write to a removed cgroup: %v", err)
	}
}

func TestRealNamesAreData(t *testing.T) {
	require.EachCgroup(t, "the files of cgroups")
	onBoth(t, namesAreData)
}

func namesAreData(t *testing.T, h *cgroup.Host, base string, v cgroup.Version) {
	names := []string{" blank ", "tab\there", "esc\x1b[31m", "..dots..", "not\xff\xfeutf8", `back\xff\slash`,
		strings.Repeat("n", 255), strings.Repeat("m", 1000), "-rf", "*", "café\u202e"}
	ids := map[string]uint64{}
	for _, name := range names {
		path := cgroup.Join(base, name)
		must(t, h.Make(cgroup.CPU, path))
		w := cgroup.SharesWrite(v, 512)
		must(t, h.Write(cgroup.CPU, path, w.File, w.Value))
		shares, err := cgroup.ReadShares(h, path)
		if err != nil || shares != 512 {
			t.Errorf("%q: %d, %v", name, shares, err)
		}
		if ids[path], err = h.ID(cgroup.CPU, path); err != nil {
			t.Error(err)
		}
		if back, err := cgroup.CleanPath(h, text.EscapePath(path)); err != nil || back != path {
			t.Errorf("%q comes back as %q, %v", path, back, err)
		}
		if back, err := cgroup.CleanPath(h, h.Dir(cgroup.CPU, path)); err != nil || back != path {
			t.Errorf("directory of %q comes back as %q, %v", path, back, err)
		}
	}
	children, err := h.Children(cgroup.CPU, base)
	if err != nil || len(children) != len(names) {
		t.Errorf("%d children of %d, %v", len(children), len(names), err)
	}
	for _, child := range children {
		if ids[child] == 0 {
			t.Errorf("%q was never made", child)
		}
	}
	if err := h.Make(cgroup.CPU, base+"/new\nline"); !errors.Is(err, unix.EINVAL) {
		t.Errorf("a newline: %v", err)
	}
}

// A walk continues while cgroups below it appear and vanish.
func TestRealWalkUnderChurn(t *testing.T) {
	require.EachCgroup(t, "the files of cgroups")
	onBoth(t, walkUnderChurn)
}

func walkUnderChurn(t *testing.T, h *cgroup.Host, base string, _ cgroup.Version) {
	done := make(chan error, 1)
	go func() {
		for i := range 1000 {
			path := fmt.Sprintf("%s/%d", base, i%37)
			if err := h.Make(cgroup.CPU, path); err == nil {
				err = h.Make(cgroup.CPU, path+"/x")
				if err != nil {
					done <- err
					return
				}
				continue
			}
			if err := errors.Join(h.Remove(cgroup.CPU, path+"/x"), h.Remove(cgroup.CPU, path)); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for {
		err := h.Walk(base, func(path string) error {
			_, err := cgroup.ReadStat(h, cgroup.Group{Path: path})
			if errors.Is(err, cgroup.ErrNoCgroup) || errors.Is(err, cgroup.ErrNoFile) {
				err = nil
			}
			return err
		})
		must(t, err)
		select {
		case err := <-done:
			must(t, err)
			return
		default:
		}
	}
}

// On v2 the written CPUs differ from those in force.
func TestRealEffectiveCPUs(t *testing.T) {
	require.EachCgroup(t, "the files of cgroups")
	h, base := realV2(t)
	_, set, err := cgroup.CPUs(h, "/")
	must(t, err)
	if set.Size() < 2 {
		t.Skip("needs 2 CPUs")
	}
	first, second := cpuset.New(set.List()[0]), cpuset.New(set.List()[1])
	child := base + "/child"
	must(t, h.Make(cgroup.CPU, child))
	pid := start(t, h, "exec sleep 20", map[cgroup.Controller]string{cgroup.CPUSet: child})
	if _, err := cgroup.WriteCPUs(h, base, first); err != nil {
		t.Error(err)
	}
	var not *cgroup.NotInForce
	if got, err := cgroup.WriteCPUs(h, child, second); !errors.As(err, &not) || !got.Equals(first) {
		t.Errorf("the parent lacks it: %s, %v", got, err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	must(t, err)
	if got, _ := procfs.StatusField(string(status), "Cpus_allowed_list"); got != first.String() {
		t.Errorf("the process may run on %q, want %s", got, first)
	}
	if err := h.Attach(cgroup.CPU, base, pid); !errors.Is(err, unix.EBUSY) && err != nil {
		t.Errorf("attach above: %v", err)
	}
	s, err := cgroup.ReadCPUSet(h, child)
	if err != nil || s.Partition != "member" || s.InPartition() {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := h.Read(cgroup.CPUSet, child, "cpuset.cpu_exclusive"); !errors.Is(err, cgroup.ErrNoFile) {
		t.Errorf("a v1 file on v2: %v", err)
	}
}

// A frozen cgroup is told, by its own freezer or by an ancestor's.
func TestRealFrozen(t *testing.T) {
	require.EachCgroup(t, "the files of cgroups")
	onBoth(t, frozen)
}

func frozen(t *testing.T, h *cgroup.Host, base string, v cgroup.Version) {
	controller, file, freeze, thaw := cgroup.Freezer, "freezer.state", "FROZEN", "THAWED"
	if v == cgroup.V2 {
		controller, file, freeze, thaw = cgroup.CPU, "cgroup.freeze", "1", "0"
	}
	if _, ok := h.Version(controller); !ok {
		t.Skip("the freezer is not mounted")
	}
	child := base + "/child"
	must(t, h.Make(cgroup.CPU, child))
	groups := map[cgroup.Controller]string{cgroup.CPU: child}
	if v == cgroup.V1 {
		must(t, h.Make(controller, base))
		must(t, h.Make(controller, child))
		t.Cleanup(func() { removeAll(h, controller, base) })
		groups[controller] = child
	}
	start(t, h, "exec sleep 20", groups)
	is := func(want bool) {
		t.Helper()
		for range 3000 { // the freezer takes a moment
			got, err := h.Frozen(child)
			must(t, err)
			if got == want {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Fatalf("frozen is not told as %v", want)
	}
	is(false)
	for _, at := range []string{child, base} {
		must(t, h.Write(controller, at, file, freeze))
		is(true)
		must(t, h.Write(controller, at, file, thaw))
		is(false)
	}
}

// The limit of real-time threads is read where the kernel has one for each group.
func TestRealRTLimit(t *testing.T) {
	require.EachCgroup(t, "the files of cgroups")
	onBoth(t, func(t *testing.T, h *cgroup.Host, base string, v cgroup.Version) {
		_, err := h.Read(cgroup.CPU, base, cgroup.FileRTRuntime)
		has := err == nil
		if has {
			must(t, h.Write(cgroup.CPU, base, cgroup.FileRTRuntime, "40000"))
		}
		l, limited, err := cgroup.ReadRTLimit(h, base)
		if err != nil || limited != has || has && (l.Runtime != 40*time.Millisecond || l.Period != time.Second) {
			t.Errorf("%+v, %v, %v; the kernel has it: %v", l, limited, err, has)
		}
	})
}

// The processes of a cgroup are told where its threads are alone in it: v1 lists a process in each cgroup with a thread of it, v2 does
// not list those of a threaded cgroup at all.
func TestRealMembers(t *testing.T) {
	require.EachCgroup(t, "the files of cgroups")
	onBoth(t, members)
}

// sleeps makes TestSleeps the program that members starts.
const sleeps = "UNTHROTTLE_TEST_SLEEPS"

func TestSleeps(t *testing.T) {
	if os.Getenv(sleeps) != "" {
		time.Sleep(20 * time.Second)
	}
}

func members(t *testing.T, h *cgroup.Host, base string, v cgroup.Version) {
	child, empty := base+"/io", base+"/empty"
	must(t, h.Make(cgroup.CPU, child))
	must(t, h.Make(cgroup.CPU, empty))
	if v == cgroup.V2 {
		// The base hands controllers down: with a threaded child it is the root of threads.
		must(t, h.Write(cgroup.CPU, base, cgroup.FileSubtreeControl, "-cpuset"))
		must(t, h.Write(cgroup.CPU, child, cgroup.FileType, "threaded"))
	}
	// A process with threads that can be moved: this program, whose runtime has some.
	self, err := os.Executable()
	must(t, err)
	pid := start(t, h, sleeps+"=1 exec "+self+" -test.run '^TestSleeps$'", map[cgroup.Controller]string{cgroup.CPU: base})
	tid := 0
	for range 3000 {
		tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		must(t, err)
		for _, task := range tasks {
			if name := task.Name(); name != fmt.Sprint(pid) {
				_, err = fmt.Sscan(name, &tid)
				must(t, err)
			}
		}
		if tid != 0 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	must(t, h.Write(cgroup.CPU, child, cgroup.ThreadsFile(v), fmt.Sprint(tid)))
	for path, want := range map[string][]int{base: {pid}, child: {pid}, empty: nil} {
		if got, err := h.Members(path); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, %v, want %v", path, got, err, want)
		}
	}
}
