package observe

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// envSpin makes this test binary a load: "THREADS:PIN:SECONDS". It waits for a byte on stdin. Then its threads spin,
// pinned to CPU PIN if that is not negative. Without threads it makes one long system call after the other. It ends
// after SECONDS or when stdin closes, as it does when the parent exits.
const envSpin = "UNTHROTTLE_OBSERVE_SPIN"

func TestMain(m *testing.M) {
	if spec := os.Getenv(envSpin); spec != "" {
		spin(spec)
		return
	}
	os.Exit(m.Run())
}

func spin(spec string) {
	part := strings.Split(spec, ":")
	threads, _ := strconv.Atoi(part[0])
	pin, _ := strconv.Atoi(part[1])
	seconds, _ := strconv.Atoi(part[2])
	runtime.GOMAXPROCS(threads + 2)
	time.AfterFunc(time.Duration(seconds)*time.Second, func() { os.Exit(0) })
	if _, err := os.Stdin.Read(make([]byte, 1)); err != nil {
		return
	}
	if threads == 0 {
		go longCalls()
	}
	for range threads {
		go func() {
			runtime.LockOSThread()
			if pin >= 0 {
				var set unix.CPUSet
				set.Set(pin)
				_ = unix.SchedSetaffinity(0, &set)
			}
			for n := 0; ; n++ {
				_ = n
			}
		}()
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// longCalls reads 2 GiB of zeros per system call, some 100 ms within the kernel.
func longCalls() {
	zero, err := os.Open("/dev/zero")
	if err != nil {
		return
	}
	buf := make([]byte, 2<<20)
	parts := make([][]byte, 1000)
	for i := range parts {
		parts[i] = buf
	}
	for {
		if _, err := unix.Readv(int(zero.Fd()), parts); err != nil {
			return
		}
	}
}

// tree is a subtree of real cgroups for one test, in all hierarchies, removed at its end.
type tree struct {
	t    *testing.T
	host *cgroup.Host
	top  string
}

func newTree(t *testing.T) *tree {
	t.Helper()
	h, err := cgroup.Open("/proc")
	if err != nil {
		t.Fatal(err)
	}
	top := cgroup.Join(h.Top(cgroup.CPU), fmt.Sprintf("unthrottle-observe-%d-%d", os.Getpid(), time.Now().UnixNano()))
	tr := &tree{t: t, host: h, top: top}
	t.Cleanup(tr.remove)
	tr.add("")
	return tr
}

// add makes a cgroup below the top in each hierarchy and returns its identity. On v1 the cpuset gets its parent's
// values.
func (tr *tree) add(name string) cgroup.Group {
	tr.t.Helper()
	path := tr.path(name)
	for _, c := range tr.hierarchies() {
		if err := tr.host.Make(c, path); err != nil {
			tr.t.Fatal(err)
		}
		v, _ := tr.host.Version(c)
		if v == cgroup.V2 && name != "" {
			if err := tr.host.Write(c, cgroup.Parent(path), cgroup.FileSubtreeControl, "+cpu +cpuset"); err != nil {
				tr.t.Fatal(err)
			}
		}
		if c == cgroup.CPU {
			// The heaviest possible weight keeps other work on the machine from holding the loads below their quota.
			heaviest := map[cgroup.Version]string{cgroup.V1: "262144", cgroup.V2: "10000"}[v]
			if err := tr.host.Write(c, path, cgroup.WeightFile(v), heaviest); err != nil {
				tr.t.Fatal(err)
			}
		}
		if v == cgroup.V1 && c == cgroup.CPUSet {
			for _, file := range []string{cgroup.FileCPUs, cgroup.FileMems} {
				value, err := tr.host.Read(c, cgroup.Parent(path), file)
				if err == nil {
					err = tr.host.Write(c, path, file, value)
				}
				if err != nil {
					tr.t.Fatal(err)
				}
			}
		}
	}
	return cgroup.Group{Path: path, CPUSetPath: path, CPUAcctPath: path}
}

func (tr *tree) path(name string) string {
	if name == "" {
		return tr.top
	}
	return tr.top + "/" + name
}

// hierarchies are the controllers, one per tree.
func (tr *tree) hierarchies() []cgroup.Controller {
	var own []cgroup.Controller
	for _, c := range cgroup.Controllers() {
		shared := false
		for _, o := range own {
			shared = shared || tr.host.SameHierarchy(o, c)
		}
		if _, ok := tr.host.Mount(c); ok && !shared {
			own = append(own, c)
		}
	}
	return own
}

func (tr *tree) limit(g cgroup.Group, quota, period time.Duration) {
	tr.t.Helper()
	cur, err := cgroup.ReadLimit(tr.host, g.Path)
	if err != nil {
		tr.t.Fatal(err)
	}
	v, _ := tr.host.Version(cgroup.CPU)
	for _, w := range cgroup.LimitWrites(v, cur, cgroup.Limit{Quota: quota, Period: period}, false) {
		if err := tr.host.Write(cgroup.CPU, g.Path, w.File, w.Value); err != nil {
			tr.t.Fatal(err)
		}
	}
}

// load runs a spinner in a cgroup until the test ends, at most for the given seconds.
func (tr *tree) load(g cgroup.Group, threads, pin, seconds int) {
	tr.t.Helper()
	tr.loadIn(tr.hierarchies(), g, threads, pin, seconds)
}

// loadIn moves the spinner in some hierarchies only.
func (tr *tree) loadIn(hierarchies []cgroup.Controller, g cgroup.Group, threads, pin, seconds int) {
	tr.t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d:%d:%d", envSpin, threads, pin, seconds))
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		tr.t.Fatal(err)
	}
	tr.t.Cleanup(func() {
		stdin.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for _, c := range hierarchies {
		if err := tr.host.Attach(c, g.Path, cmd.Process.Pid); err != nil {
			tr.t.Fatal(err)
		}
	}
	if _, err := stdin.Write([]byte{1}); err != nil {
		tr.t.Fatal(err)
	}
}

// remove removes the subtree, children first. Loads have ended by then (cleanups run last in, first out), but a process
// may need a moment to leave its cgroup.
func (tr *tree) remove() {
	for _, c := range tr.hierarchies() {
		var paths []string
		_ = cgroup.Walk(tr.host, c, tr.top, func(path string) error {
			paths = append(paths, path)
			return nil
		})
		for i := len(paths) - 1; i >= 0; i-- {
			var err error
			for range 100 {
				if err = tr.host.Remove(c, paths[i]); err == nil {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			if err != nil {
				tr.t.Errorf("not removed: %v", err)
			}
		}
	}
}

func (tr *tree) observe(window time.Duration, groups ...cgroup.Group) []Observation {
	tr.t.Helper()
	var containers []container.Container
	for _, g := range groups {
		containers = append(containers, container.Container{Group: g, Name: cgroup.Base(g.Path)})
	}
	observations, err := Once(context.Background(), tr.host, containers, window)
	if err != nil {
		tr.t.Fatal(err)
	}
	if len(observations) != len(groups) {
		tr.t.Fatalf("%d observations of %d containers", len(observations), len(groups))
	}
	for _, o := range observations {
		tr.t.Logf("%s: window %v limit %v used %v periods %v/%v throttled %v own %v stopped %v-%v by %q %v notes %q",
			o.Container.Name, o.Window, deref(o.LimitCPUs), deref(o.UsedCPUs), deref(o.ThrottledPeriods),
			deref(o.Periods), deref(o.ThrottledSeconds), deref(o.OwnThrottledSeconds), deref(o.StoppedLow),
			deref(o.StoppedHigh), o.ThrottledBy, o.ThrottledByAll, o.NotMeasured)
	}
	return observations
}

func deref[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

// onEachKernelInterface runs a test on each interface that this machine has.
func onEachKernelInterface(t *testing.T, test func(t *testing.T)) {
	require.Root(t)
	t.Run("v1", func(t *testing.T) { require.CgroupV1(t); test(t) })
	t.Run("v2", func(t *testing.T) { require.CgroupV2(t); test(t) })
}

func TestAParentsQuotaIsNamed(t *testing.T) {
	require.EachCgroup(t, "what cpu.stat and cpu.stat.local say")
	onEachKernelInterface(t, func(t *testing.T) {
		tr := newTree(t)
		parent, child, sibling := tr.add("parent"), tr.add("parent/child"), tr.add("parent/sibling")
		tr.limit(parent, 2*ms, 100*ms) // so little that it is used up beside any load
		tr.load(child, 1, -1, 20)
		got := tr.observe(2*time.Second, child, sibling)
		o := got[0]
		if o.ThrottledBy != parent.Path {
			t.Errorf("throttled by %q, want %q", o.ThrottledBy, parent.Path)
		}
		if *o.Periods != 0 || *o.ThrottledPeriods != 0 || *o.OwnThrottledSeconds != 0 {
			t.Errorf("the child has counters of its own")
		}
		if o.LimitCPUs == nil || *o.LimitCPUs != 0.02 || o.LimitAt != parent.Path {
			t.Errorf("limit %v at %q, want 0.02 at the parent", deref(o.LimitCPUs), o.LimitAt)
		}
		low, high, ok := o.StoppedPerSecond()
		if !ok || high < 0.3 || low > high {
			t.Errorf("stopped %v to %v of a second, a spinner with 0.02 CPUs", low, high)
		}
		if s := got[1]; s.ThrottledBy != "" || *s.StoppedHigh != 0 {
			if s.ThrottledSeconds != nil {
				t.Errorf("the idle sibling was stopped by %q for %v", s.ThrottledBy, *s.StoppedHigh)
			}
		}
	})
}

func TestAQuotaEqualToItsCPUsIsNoFinding(t *testing.T) {
	require.EachCgroup(t, "what cpu.stat says")
	onEachKernelInterface(t, func(t *testing.T) {
		tr := newTree(t)
		g := tr.add("whole")
		tr.limit(g, 100*ms, 100*ms)
		tr.load(g, 1, 0, 20)
		o := tr.observe(3*time.Second, g)[0]
		above, ok := o.Above(0.05)
		if ok && require.InLab() {
			t.Log("an emulated CPU stops for many ms at a time and is charged for it: only measured, not judged")
			return
		}
		if !ok || above {
			t.Errorf("a quota as large as its one CPU is a finding: stopped %v to %v of %v", deref(o.StoppedLow),
				deref(o.StoppedHigh), o.Window)
		}
	})
}

func TestManyThreadsOnAQuotaAreStoppedByThemselves(t *testing.T) {
	onEachKernelInterface(t, func(t *testing.T) {
		tr := newTree(t)
		g := tr.add("seed003")
		tr.limit(g, time.Duration(runtime.NumCPU())*30*ms, 100*ms)
		tr.load(g, 8, -1, 20)
		o := tr.observe(3*time.Second, g)[0]
		if o.ThrottledBy != BySelf {
			t.Errorf("throttled by %q", o.ThrottledBy)
		}
		if ratio, ok := o.ThrottledRatio(); !ok || ratio < 0.5 {
			t.Errorf("%.2f of the periods were throttled, want most", ratio)
		}
		if low, high, ok := o.StoppedPerSecond(); !ok || low > high || high < 0.1 {
			t.Errorf("stopped %v to %v", low, high)
		}
		if want := float64(runtime.NumCPU()) * 0.3; *o.UsedCPUs > want*1.3 {
			t.Errorf("used %v CPUs of a limit of %v", *o.UsedCPUs, want)
		}
	})
}

func TestAStopThatGoesOnIsNotShownAsNothing(t *testing.T) {
	onEachKernelInterface(t, func(t *testing.T) {
		tr := newTree(t)
		g := tr.add("indebted")
		tr.limit(g, ms, 100*ms)
		tr.load(g, 0, -1, 20)
		for range 5 {
			o := tr.observe(time.Second, g)[0]
			if *o.ThrottledPeriods < 8 || *o.UsedCPUs > 0 || *o.ThrottledSeconds > 0 {
				continue
			}
			if _, high, ok := o.StoppedPerSecond(); !ok || high < 0.8 || o.ThrottledBy != BySelf {
				t.Errorf("stopped for at most %v of the window by %q, with all periods throttled and no CPU used", high, o.ThrottledBy)
			}
			return
		}
		t.Log("this kernel does not let a system call run beyond the quota (before 6.18): there is no such stop")
	})
}

func TestCPUUseOfACgroupThatOnlyTheCPUHierarchyHas(t *testing.T) {
	require.Root(t)
	require.CgroupV1(t)
	tr := newTree(t)
	if tr.host.SameHierarchy(cgroup.CPU, cgroup.CPUAcct) {
		t.Log("cpu and cpuacct share a hierarchy here: there is no such cgroup")
		return
	}
	g := tr.add("alone")
	tr.limit(g, 30*ms, 100*ms)
	tr.loadIn([]cgroup.Controller{cgroup.CPU}, g, 2, -1, 20)
	found, err := tr.host.Group(g.Path)
	if err != nil {
		t.Fatal(err)
	}
	o := tr.observe(2*time.Second, found)[0]
	if o.UsedCPUs == nil || *o.UsedCPUs < 0.15 || *o.UsedCPUs > 0.45 {
		t.Errorf("used %v CPUs of a limit of 0.3, group %+v", deref(o.UsedCPUs), found)
	}
}

// A payload's quota inside a machine without one: libvirt's vCPUs, kind, systemd-nspawn.
func TestAQuotaInsideForReal(t *testing.T) {
	require.Root(t)
	tr := newTree(t)
	machine := tr.add("machine")
	vcpu := tr.add("machine/vcpu0")
	tr.limit(vcpu, 5*time.Millisecond, 100*time.Millisecond)
	tr.load(vcpu, 1, -1, 60)
	containers := []container.Container{{Name: "machine", Group: machine}}
	for end := time.Now().Add(time.Minute); ; {
		seen, err := Once(t.Context(), tr.host, containers, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		o := seen[0]
		if o.StoppedHigh != nil && *o.StoppedHigh > 500*time.Millisecond && o.ThrottledBy == vcpu.Path && o.Inside() == vcpu.Path {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("stopped %v to %v by %q", o.StoppedLow, o.StoppedHigh, o.ThrottledBy)
		}
	}
}
