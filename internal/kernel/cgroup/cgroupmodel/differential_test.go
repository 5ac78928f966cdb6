package cgroupmodel_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
	"github.com/unthrottle/unthrottle/test/lab/require"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// The differential test runs random operations on the real kernel and on the model, below a cgroup of its own. Every
// errno must be equal and, after each operation, every setting and every process.

const differentialName = "unthrottle-model-"

// Children can be exclusive only below an exclusive base, and that would refuse the CPUs to every other cgroup of the
// host meanwhile. The test does so only where this is set: on a machine that runs nothing else.
const exclusiveVariable = "UNTHROTTLE_TEST_EXCLUSIVE"

func TestModelAgainstKernelV1(t *testing.T) {
	require.Root(t)
	require.CgroupV1(t)
	differential(t, cgroup.V1)
}

func TestModelAgainstKernelV2(t *testing.T) {
	require.Root(t)
	require.CgroupV2(t)
	differential(t, cgroup.V2)
}

// rig holds both kernels and a few sleeping processes.
type rig struct {
	host    *cgroup.Host
	version cgroup.Version
	base    string
	pids    []int
	origin  map[cgroup.Controller]string // where the processes were before
	runs    int
	seen    map[string]int // "operation errno" -> how often
}

func differential(t *testing.T, v cgroup.Version) {
	host, err := cgroup.Open("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []cgroup.Controller{cgroup.CPU, cgroup.CPUSet} {
		if got, _ := host.Version(c); got != v {
			t.Skipf("%s is on %v here", c, got)
		}
	}
	r := &rig{host: host, version: v, base: "/" + differentialName + strconv.Itoa(os.Getpid()),
		origin: map[cgroup.Controller]string{}, seen: map[string]int{}}
	r.removeLeftovers(t)
	for range 3 {
		// Its own end, in case this test is killed.
		sleeper := exec.Command("sleep", "300")
		if err := sleeper.Start(); err != nil {
			t.Fatal(err)
		}
		r.pids = append(r.pids, sleeper.Process.Pid)
		t.Cleanup(func() { sleeper.Process.Kill(); sleeper.Wait() })
	}
	for _, c := range cgroup.Controllers() {
		if path, ok, err := host.Of(r.pids[0], c); err != nil {
			t.Fatal(err)
		} else if ok {
			r.origin[c] = path
		}
	}
	if require.InLab() { // a sequence takes ten times as long there
		for name, value := range map[string]string{"rapid.checks": "30", "rapid.seed": "1"} {
			if err := flag.Set(name, value); err != nil {
				t.Fatal(err)
			}
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		ops := rapid.SliceOfN(genOp(v), 1, 80).Draw(rt, "ops")
		r.runs++
		r.compare(rt, ops)
	})
	t.Logf("%d sequences: %v", r.runs, r.seen)
}

// patience is how long the kernel may take to forget a removed cgroup.
const patience = 5 * time.Second

func (r *rig) compare(t *rapid.T, ops []step) {
	defer r.clean(t)
	k := cgroupmodel.New(r.config(t))
	for _, pid := range r.pids {
		k.Spawn("/", pid)
	}
	both := []cgroup.FS{r.host, k}
	filled := rapid.Bool().Draw(t, "filled")
	for _, fs := range both {
		for _, c := range r.trees() {
			if err := fs.Make(c, r.base); err != nil {
				t.Fatalf("%T: %v", fs, err)
			}
			r.fill(t, fs, c, r.base, true)
			for _, group := range groups[1:] {
				if err := fs.Make(c, r.base+group); err != nil {
					t.Fatalf("%T: %v", fs, err)
				}
				r.fill(t, fs, c, r.base+group, filled)
			}
		}
	}
	removed := false
	for i, op := range ops {
		path := r.base + groups[op.group]
		var errs [2]error
		for j, fs := range both {
			errs[j] = r.do(fs, op, path)
		}
		removed = removed || op.kind == "rmdir" && errs[0] == nil
		// The quota of a removed cgroup counts against its parent's until a worker of the kernel has removed it
		// (cpu_cgroup_css_released, kernel/sched/core.c).
		for end := time.Now().Add(patience); removed && errs[1] == nil && errors.Is(errs[0], unix.EINVAL) && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
			errs[0] = r.do(r.host, op, path)
		}
		if errnoOf(errs[0]) != errnoOf(errs[1]) {
			t.Fatalf("step %d %+v:\nkernel: %v\nmodel:  %v\nall: %s", i, op, errs[0], errs[1], describe(ops[:i+1]))
		}
		r.seen[strings.TrimSpace(op.file+" "+op.kind)+" "+errnoOf(errs[0])]++
		if got, want := r.state(r.host), r.state(k); got != want {
			t.Fatalf("step %d %+v (%v): state differs\n%s\nall: %s", i, op, errs[0], lineDiff(got, want), describe(ops[:i+1]))
		}
		if broken := k.Check(); len(broken) > 0 {
			t.Fatalf("step %d %+v: the kernel allowed: %v", i, op, broken)
		}
	}
}

// trees returns one controller per hierarchy that the test operates on.
func (r *rig) trees() []cgroup.Controller {
	if r.host.SameHierarchy(cgroup.CPU, cgroup.CPUSet) {
		return []cgroup.Controller{cgroup.CPU}
	}
	return []cgroup.Controller{cgroup.CPU, cgroup.CPUSet}
}

// fill makes a new cgroup usable: on v2 it enables the controllers, on v1 it sets the root's CPUs and memory nodes.
func (r *rig) fill(t *rapid.T, fs cgroup.FS, c cgroup.Controller, path string, filled bool) {
	if !filled {
		return
	}
	writes := map[string]string{}
	switch {
	case r.version == cgroup.V2:
		if _, ok := fs.(*cgroupmodel.Kernel); ok && path == r.base {
			if err := fs.Write(c, "/", cgroup.FileSubtreeControl, "+cpu +cpuset"); err != nil {
				t.Fatal(err)
			}
		}
		writes[cgroup.FileSubtreeControl] = "+cpu +cpuset"
	case c == cgroup.CPUSet || r.host.SameHierarchy(c, cgroup.CPUSet):
		for _, file := range []string{cgroup.FileCPUs, cgroup.FileMems} {
			text, err := fs.Read(cgroup.CPUSet, "/", file)
			if err != nil {
				t.Fatal(err)
			}
			writes[file] = text
		}
	}
	for file, value := range writes {
		if err := fs.Write(c, path, file, value); err != nil {
			t.Fatal(err)
		}
	}
}

func (r *rig) config(t *rapid.T) cgroupmodel.Config {
	_, cpus, err := cgroup.CPUs(r.host, "/")
	if err != nil {
		t.Fatal(err)
	}
	_, mems, err := cgroup.Mems(r.host, "/")
	if err != nil {
		t.Fatal(err)
	}
	config := cgroupmodel.V1(cpus.String())
	if r.version == cgroup.V2 {
		config = cgroupmodel.V2(cpus.String())
	}
	config.Mems = mems
	config.Together = r.version == cgroup.V1 && r.host.SameHierarchy(cgroup.CPU, cgroup.CPUSet)
	return config
}

func (r *rig) do(fs cgroup.FS, op step, path string) error {
	switch op.kind {
	case cgroup.OpMake:
		return fs.Make(op.controller, path)
	case cgroup.OpRemove:
		if path == r.base {
			return nil
		}
		return fs.Remove(op.controller, path)
	case cgroup.OpAttach:
		return fs.Attach(op.controller, path, r.pids[op.process])
	}
	if op.file == cgroup.FileExclusiveV1 && path == r.base && os.Getenv(exclusiveVariable) == "" {
		return nil
	}
	return fs.Write(op.controller, path, op.file, op.value)
}

func errnoOf(err error) string {
	var errno unix.Errno
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &errno):
		return unix.ErrnoName(errno)
	}
	var e *cgroup.Error
	if errors.As(err, &e) {
		return fmt.Sprint(e.Kind)
	}
	return err.Error()
}

// state returns every setting of every group below the base, and the cgroups of our processes.
func (r *rig) state(fs cgroup.FS) string {
	var b strings.Builder
	for _, c := range r.trees() {
		for _, group := range groups {
			path := r.base + group
			if !cgroup.Exists(fs, c, path) {
				continue
			}
			for _, file := range r.files(c) {
				text, err := fs.Read(c, path, file)
				if err != nil {
					text = errnoOf(err)
				}
				if file == cgroup.FileControllers || file == cgroup.FileSubtreeControl {
					text = ours(text)
				}
				fmt.Fprintf(&b, "%s %s %s: %q\n", c, group, file, text)
			}
			pids, err := fs.Procs(c, path)
			slices.Sort(pids)
			fmt.Fprintf(&b, "%s %s procs: %v %s\n", c, group, pids, errnoOf(err))
		}
	}
	return b.String()
}

// ours drops the controllers that are not modelled; a real root may enable memory, too.
func ours(list string) string {
	return strings.Join(slices.DeleteFunc(strings.Fields(list), func(c string) bool {
		return c != string(cgroup.CPU) && c != string(cgroup.CPUSet)
	}), " ")
}

func (r *rig) files(c cgroup.Controller) []string {
	if r.version == cgroup.V2 {
		return []string{"cgroup.controllers", "cgroup.subtree_control", "cgroup.type", "cpu.max", "cpu.max.burst", "cpu.weight", "cpu.idle",
			"cpuset.cpus", "cpuset.mems", "cpuset.cpus.effective", "cpuset.mems.effective", "cpuset.cpus.partition"}
	}
	cpu := []string{"cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.cfs_burst_us", "cpu.shares", "cpu.idle"}
	set := []string{"cpuset.cpus", "cpuset.mems", "cpuset.effective_cpus", "cpuset.effective_mems", "cpuset.cpu_exclusive",
		"cpuset.sched_load_balance", "cgroup.clone_children"}
	if len(r.trees()) == 1 {
		return append(cpu, set...)
	}
	if c == cgroup.CPU {
		return cpu
	}
	return set
}

// clean moves our processes back and removes the base, deepest first.
func (r *rig) clean(t *rapid.T) {
	for _, c := range r.trees() {
		for _, pid := range r.pids {
			if err := r.host.Attach(c, r.origin[c], pid); err != nil {
				t.Errorf("cleaning up: %v", err)
			}
		}
		removeTree(r.host, c, r.base)
		if cgroup.Exists(r.host, c, r.base) {
			t.Errorf("%s %s is left behind", c, r.base)
		}
	}
}

func removeTree(fs cgroup.FS, c cgroup.Controller, path string) {
	children, _ := fs.Children(c, path)
	for _, child := range children {
		removeTree(fs, c, child)
	}
	_ = fs.Remove(c, path)
}

// removeLeftovers removes cgroups of a killed run of this test, if its process is gone.
func (r *rig) removeLeftovers(t *testing.T) {
	for _, c := range r.trees() {
		m, _ := r.host.Mount(c)
		found, _ := filepath.Glob(filepath.Join(m.Dir, differentialName+"*"))
		for _, dir := range found {
			pid, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), differentialName))
			if err == nil && syscall.Kill(pid, 0) == syscall.ESRCH {
				t.Logf("removing %s", dir)
				removeTree(r.host, c, "/"+filepath.Base(dir))
			}
		}
	}
}

func lineDiff(kernel, model string) string {
	a, b := strings.Split(kernel, "\n"), strings.Split(model, "\n")
	var out []string
	for _, line := range a {
		if !slices.Contains(b, line) {
			out = append(out, "kernel "+line)
		}
	}
	for _, line := range b {
		if !slices.Contains(a, line) {
			out = append(out, "model  "+line)
		}
	}
	return strings.Join(out, "\n")
}
