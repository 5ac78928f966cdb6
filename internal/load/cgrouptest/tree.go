// Package cgrouptest is the face of package sandbox for tests. It gives a test real
// cgroups of its own, on v1 (all hierarchies) and on v2, with real work in them. It
// removes them when the test ends, also when it fails. The leftovers of a killed
// test are removed by the next one, and its work ends at its own deadline.
//
// A test that calls New needs writable cgroups. New skips where there are none, or
// fails where UNTHROTTLE_MUST says so.
package cgrouptest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/procfs"
	"github.com/unthrottle/unthrottle/internal/load/sandbox"
	"github.com/unthrottle/unthrottle/internal/load/workload"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// Tree is the sandbox of one test. Its paths are the same in every hierarchy.
type Tree struct {
	t testing.TB
	// Host is this host, Top the subtree's own cgroup: what tests pass as
	// --scope. StateDir is a journal's folder of its own.
	Host     *cgroup.Host
	Top      string
	StateDir string
	// Exe is the program that children run; "": the test binary, whose TestMain
	// must then call Child first.
	Exe     string
	box     *sandbox.Sandbox
	working []*workload.Process
}

// Child is the whole life of a process that is a child of a test: it ends it. In
// the test itself it does nothing.
func Child() {
	if len(os.Args) > 1 && os.Args[1] == workload.ChildCommand {
		os.Exit(workload.ChildMain())
	}
}

// prefix of the names of test sandboxes.
const prefix = "unthrottle-test-"

// New makes the sandbox of a test. Its weight is eight times the default, so that
// other load does not keep a test's work from its quota. Work without a quota still
// leaves CPU time to others.
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
	tr := &Tree{t: t, Host: h, StateDir: t.TempDir()}
	box, err := sandbox.Open(sandbox.Options{Host: h, Prefix: prefix, Fair: true})
	tr.must(err)
	t.Cleanup(func() {
		for _, p := range tr.working {
			if err := p.Stop(); err != nil {
				t.Errorf("work in %s: %v", tr.Top, err)
			}
		}
		if err := box.Remove(); err != nil {
			t.Errorf("left behind: %v", err)
		}
	})
	tr.box, tr.Top = box, box.Top().At().Path
	tr.Weigh(tr.Top, 8*cgroup.DefaultShares)
	return tr
}

// Make makes a cgroup below the top, such as "pod/a", parents too, and returns its
// path. On v1 its cpuset gets the CPUs and memory nodes of the parent. On v2 the
// parents enable cpu and cpuset for it.
func (tr *Tree) Make(rel string) string {
	tr.t.Helper()
	at := tr.Top
	for part := range strings.SplitSeq(rel, "/") {
		parent := tr.group(at)
		at = cgroup.Join(at, part)
		if !cgroup.Exists(tr.Host, cgroup.CPU, at) {
			_, err := parent.Group(part)
			tr.must(err)
		}
	}
	return at
}

func (tr *Tree) group(path string) *sandbox.Group {
	tr.t.Helper()
	g, err := tr.box.At(path)
	tr.must(err)
	return g
}

// Limit sets a quota of so many CPUs per 100 ms period.
func (tr *Tree) Limit(path string, cpus float64) {
	tr.t.Helper()
	tr.must(tr.group(path).SetLimit(cgroup.Limit{Quota: time.Duration(cpus * float64(100*time.Millisecond)),
		Period: 100 * time.Millisecond}))
}

// Weigh gives a cgroup a weight, in shares of v1.
func (tr *Tree) Weigh(path string, shares uint64) {
	tr.t.Helper()
	tr.must(tr.group(path).SetShares(shares))
}

// Work runs burners and a sleeper in a cgroup until the test ends, and no longer than
// ten minutes whatever happens. Give the cgroup a limit: burners take every CPU they
// can get.
func (tr *Tree) Work(path string, burners int) int {
	tr.t.Helper()
	return tr.run(path, workload.Spec{Burners: burners, Sleep: 10 * time.Millisecond})
}

// Rest runs a process in a cgroup that wakes up once a second, for as long as Work
// would.
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
	tr.must(tr.group(path).Attach(p.Pid()))
	tr.must(p.Go())
	return p.Pid()
}

// InheritsEmpty reports whether an empty cpuset.cpus means "all that the parent has"
// (v2). Kernels before 7.0 refuse to empty a list while processes are inside
// (validate_change, ENOSPC). Settings therefore shows the effective list of an empty
// one.
func (tr *Tree) InheritsEmpty() bool {
	v, ok := tr.Host.Version(cgroup.CPUSet)
	return ok && v == cgroup.V2
}

// Settings returns the values of everything that unthrottle may set in the subtree,
// a line each, for comparing before with after byte by byte.
func (tr *Tree) Settings() string {
	tr.t.Helper()
	var lines []string
	for _, c := range cgroup.Controllers() {
		if _, ok := tr.Host.Version(c); !ok {
			continue
		}
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

// Allowed returns Cpus_allowed_list of a process's main thread.
func Allowed(t testing.TB, pid int) string {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	if list, ok := procfs.StatusField(string(text), "Cpus_allowed_list"); ok {
		return list
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
