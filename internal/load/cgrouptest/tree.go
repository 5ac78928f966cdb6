// Package cgrouptest gives tests a subtree of real cgroups of their own, on v1
// (all hierarchies) and v2 alike, with real work in them, and takes everything
// away again: also when the test fails, and, by the children's own deadlines,
// when it is killed.
//
// A test that uses it says so by calling New, which skips (or fails, where
// UNTHROTTLE_MUST says so) on a machine without writable cgroups.
package cgrouptest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/workload"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// Tree is a subtree of one test. Its paths are the same in every hierarchy.
type Tree struct {
	t testing.TB
	// Host is this host, Top the subtree's own cgroup: what tests pass as
	// --scope. StateDir is a journal's folder of its own.
	Host     *cgroup.Host
	Top      string
	StateDir string
	// Exe is the program that children run; "": the test binary, whose TestMain
	// must then hand workload.ChildCommand on.
	Exe     string
	working []*workload.Process
}

var count atomic.Int64

// New makes a subtree, named by process and count so that runs side by side
// don't meet.
func New(t testing.TB) *Tree {
	t.Helper()
	require.Root(t)
	h, err := cgroup.Open("/proc")
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := h.Version(cgroup.CPU); require.InLab() || ok && v == cgroup.V2 {
		require.CgroupV2(t)
	} else {
		require.CgroupV1(t)
	}
	name := fmt.Sprintf("unthrottle-test-%d-%d-%d", os.Getpid(), time.Now().UnixNano(), count.Add(1))
	tr := &Tree{t: t, Host: h, Top: cgroup.Join(h.Top(cgroup.CPU), name), StateDir: t.TempDir()}
	t.Cleanup(tr.remove)
	tr.create(tr.Top)
	// Other load must not keep a test's work from spending its quota; nor must
	// work whose quota is gone keep everybody else from running.
	v, _ := h.Version(cgroup.CPU)
	file, weight := "cpu.shares", 8*cgroup.DefaultShares
	if v == cgroup.V2 {
		file, weight = "cpu.weight", 800
	}
	tr.must(h.Write(cgroup.CPU, tr.Top, file, strconv.Itoa(weight)))
	return tr
}

// controllers are those whose trees differ: one on v2, up to three on v1.
func (tr *Tree) controllers() []cgroup.Controller {
	var all []cgroup.Controller
	for _, c := range cgroup.Controllers() {
		if _, ok := tr.Host.Version(c); !ok {
			continue
		}
		if !slices.ContainsFunc(all, func(d cgroup.Controller) bool { return tr.Host.SameHierarchy(c, d) }) {
			all = append(all, c)
		}
	}
	return all
}

// Make makes a cgroup below the top, such as "pod/a", parents too, and gives
// its path. On v1 cpusets get their parent's CPUs and memory nodes; on v2 the
// parents hand cpu and cpuset on.
func (tr *Tree) Make(rel string) string {
	tr.t.Helper()
	path := tr.Top
	for part := range strings.SplitSeq(rel, "/") {
		path = cgroup.Join(path, part)
		if _, err := tr.Host.ID(cgroup.CPU, path); errors.Is(err, cgroup.ErrNoCgroup) {
			tr.create(path)
		}
	}
	return path
}

func (tr *Tree) create(path string) {
	tr.t.Helper()
	for _, c := range tr.controllers() {
		if v, _ := tr.Host.Version(c); v == cgroup.V2 && path != tr.Top {
			tr.must(tr.Host.Write(c, cgroup.Parent(path), "cgroup.subtree_control", "+cpu +cpuset"))
		}
		tr.must(tr.Host.Make(c, path))
		if v, _ := tr.Host.Version(c); c != cgroup.CPUSet || v != cgroup.V1 {
			continue
		}
		for _, file := range []string{"cpuset.mems", "cpuset.cpus"} {
			value, err := tr.Host.Read(c, cgroup.Parent(path), file)
			tr.must(err)
			tr.must(tr.Host.Write(c, path, file, value))
		}
	}
}

// Limit sets a quota of so many CPUs per 100 ms period.
func (tr *Tree) Limit(path string, cpus float64) {
	tr.t.Helper()
	v, _ := tr.Host.Version(cgroup.CPU)
	now, err := cgroup.ReadLimit(tr.Host, path)
	tr.must(err)
	want := cgroup.Limit{Quota: time.Duration(cpus * float64(100*time.Millisecond)), Period: 100 * time.Millisecond}
	for _, w := range cgroup.LimitWrites(v, now, want) {
		tr.must(tr.Host.Write(cgroup.CPU, path, w.File, w.Value))
	}
}

// Weigh gives a cgroup a weight, in shares of v1.
func (tr *Tree) Weigh(path string, shares uint64) {
	tr.t.Helper()
	version, _ := tr.Host.Version(cgroup.CPU)
	w := cgroup.SharesWrite(version, shares)
	tr.must(tr.Host.Write(cgroup.CPU, path, w.File, w.Value))
}

// Work runs burners and a sleeper in a cgroup until the test ends, and no
// longer than ten minutes whatever happens. Their number bounds what
// they burn only as far as the cgroup's limit does: give it one.
func (tr *Tree) Work(path string, burners int) int {
	tr.t.Helper()
	return tr.run(path, workload.Spec{Burners: burners, Sleep: 10 * time.Millisecond})
}

// Rest runs a process in a cgroup that hardly ever wakes up, so that there is one, for
// as long as Work would.
func (tr *Tree) Rest(path string) int {
	tr.t.Helper()
	return tr.run(path, workload.Spec{Sleep: workload.MaxSleep})
}

func (tr *Tree) run(path string, spec workload.Spec) int {
	tr.t.Helper()
	spec.Deadline = 10 * time.Minute
	p, err := workload.Start(tr.Exe, spec)
	tr.must(err)
	tr.working = append(tr.working, p)
	go func() {
		for range p.Records() {
		}
	}()
	for _, c := range tr.controllers() {
		tr.must(tr.Host.Attach(c, path, p.Pid()))
	}
	tr.must(p.Go())
	return p.Pid()
}

// InheritsEmpty tells whether an empty cpuset.cpus means "all that the parent
// has" (v2). Kernels before 7.0 refuse to empty a list while processes are
// inside (validate_change, ENOSPC), so that an emptied one cannot come back there
// byte by byte: Settings shows what is in force for it.
func (tr *Tree) InheritsEmpty() bool {
	v, ok := tr.Host.Version(cgroup.CPUSet)
	return ok && v == cgroup.V2
}

// Settings are the values of everything that unthrottle may set in the subtree,
// a line each, for comparing before with after byte by byte.
func (tr *Tree) Settings() string {
	tr.t.Helper()
	var lines []string
	for _, c := range tr.controllers() {
		root := tr.Host.Dir(c, tr.Top)
		err := filepath.WalkDir(root, func(name string, d os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			base := filepath.Base(name)
			rel, _ := filepath.Rel(root, name)
			if d.IsDir() {
				lines = append(lines, fmt.Sprintf("%s %s/", c, rel))
				return nil
			}
			if !slices.Contains(settings, base) {
				return nil
			}
			value, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			if base == cgroup.FileCPUs && strings.TrimSpace(string(value)) == "" && tr.InheritsEmpty() {
				if value, err = os.ReadFile(name + ".effective"); err != nil {
					return err
				}
			}
			lines = append(lines, fmt.Sprintf("%s %s %q", c, rel, value))
			return nil
		})
		tr.must(err)
	}
	return strings.Join(lines, "\n")
}

var settings = []string{
	"cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.cfs_burst_us", "cpu.shares",
	"cpu.max", "cpu.max.burst", "cpu.weight",
	"cpuset.cpus", "cpuset.mems", "cpuset.cpu_exclusive", "cpuset.cpus.partition", "cgroup.subtree_control",
}

// remove ends the work, then removes the cgroups, deepest first. A cgroup whose
// last process has just ended is busy for a moment longer.
func (tr *Tree) remove() {
	for _, p := range tr.working {
		if err := p.Stop(); err != nil {
			tr.t.Errorf("work in %s: %v", tr.Top, err)
		}
	}
	for _, c := range tr.controllers() {
		if err := tr.removeBelow(c, tr.Top); err != nil {
			tr.t.Errorf("left behind: %v", err)
		}
	}
}

func (tr *Tree) removeBelow(c cgroup.Controller, path string) error {
	children, err := tr.Host.Children(c, path)
	if err != nil && !errors.Is(err, cgroup.ErrNoCgroup) {
		return err
	}
	for _, child := range children {
		if err := tr.removeBelow(c, child); err != nil {
			return err
		}
	}
	for range 100 {
		err = tr.Host.Remove(c, path)
		if err == nil || errors.Is(err, cgroup.ErrNoCgroup) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return err
}

// Allowed is Cpus_allowed_list of a process's main thread.
func Allowed(t testing.TB, pid int) string {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		if list, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
			return strings.TrimSpace(list)
		}
	}
	t.Fatalf("process %d shows no Cpus_allowed_list", pid)
	return ""
}

func (tr *Tree) must(err error) {
	tr.t.Helper()
	if err != nil {
		tr.t.Fatal(err)
	}
}
