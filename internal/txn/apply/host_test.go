package apply

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// The test binary runs itself again as one of these.
const (
	envChild     = "UNTHROTTLE_APPLY_CHILD"
	childSleeper = "sleeper"
	childWriter  = "writer"
	childTrier   = "trier"
	childLooker  = "looker"
	envRoot      = "UNTHROTTLE_APPLY_ROOT"
	envState     = "UNTHROTTLE_APPLY_STATE"
)

// childLife is the longest that a child lives, whatever happens to its parent.
const childLife = 60 * time.Second

func TestMain(m *testing.M) {
	kind := os.Getenv(envChild)
	if kind == "" {
		os.Exit(m.Run())
	}
	go func() {
		// The pipe is held by the parent: its end is ours.
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	time.AfterFunc(childLife, func() { os.Exit(0) })
	if kind == childLooker {
		fmt.Println(NewProc("/proc").AllProcesses())
		os.Exit(0)
	}
	if kind == childWriter || kind == childTrier {
		trial := map[string]time.Duration{childTrier: time.Hour}[kind]
		if err := writeForEver(os.Getenv(envRoot), os.Getenv(envState), trial); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	select {}
}

// startChild runs the test binary as a child; it ends with the returned pipe, with the test, or with its deadline.
func startChild(t *testing.T, kind string, extra ...string) (*exec.Cmd, io.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), append(extra, envChild+"="+kind)...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, out
}

// real is a subtree of the real kernel's cgroups that this test made.
type real struct {
	t    *testing.T
	h    *cgroup.Host
	v    cgroup.Version
	root string
	last string // the highest CPU
	env  Env
}

func (r *real) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *real) path(name string) string { return r.root + name }

// newReal makes pods a, b and c and a unit svc, each with a process of ours inside.
func newReal(t *testing.T, v cgroup.Version) *real {
	require.Root(t)
	if v == cgroup.V1 {
		require.CgroupV1(t)
	} else {
		require.CgroupV2(t)
	}
	h, err := cgroup.Open("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []cgroup.Controller{cgroup.CPU, cgroup.CPUSet} {
		if have, _ := h.Version(c); have != v {
			t.Skipf("cgroup.Open uses %v for %s here", have, c)
		}
	}
	boot, err := BootID("/proc")
	if err != nil {
		t.Fatal(err)
	}
	top := strings.TrimSuffix(h.Top(cgroup.CPU), "/")
	r := &real{t: t, h: h, v: v, root: fmt.Sprintf("%s/unthrottle-apply-%d-%d", top, os.Getpid(), time.Now().UnixNano()),
		env: Env{FS: h, StateDir: t.TempDir() + "/state", BootID: boot, By: "test", Proc: NewProc("/proc")}}
	r.env.Scope = r.root
	_, online, err := cgroup.CPUs(h, h.Top(cgroup.CPUSet))
	r.must(err)
	all := online.List()
	if len(all) < 2 {
		t.Skip("needs two CPUs")
	}
	r.last = strconv.Itoa(all[len(all)-1])
	_, mems, err := cgroup.Mems(h, h.Top(cgroup.CPUSet))
	r.must(err)
	t.Cleanup(r.remove)
	r.make("", true, online.String(), mems.String())
	r.make("/pods", true, online.String(), mems.String())
	for _, pod := range []string{"/pods/a", "/pods/b", "/pods/c"} {
		r.make(pod, false, online.String(), mems.String())
	}
	r.must(h.Make(cgroup.CPU, r.path("/svc")))
	if v == cgroup.V2 {
		r.must(h.Write(cgroup.CPU, r.path("/svc"), cgroup.FileSubtreeControl, "+cpu"))
		r.must(h.Make(cgroup.CPU, r.path("/svc/unit")))
	}
	s := r.scene()
	s.limit(r.path("/pods"), "180000 100000 0")
	s.limit(r.path("/pods/a"), "120000 100000 30000")
	s.limit(r.path("/pods/c"), "60000 50000 0")
	s.limit(r.path("/svc"), "150000 100000 0")
	for _, home := range []string{"/pods/a", "/pods/b", "/pods/c", r.unit(), r.unit()} {
		cmd, _ := startChild(t, childSleeper)
		r.must(h.Attach(cgroup.CPU, r.path(home), cmd.Process.Pid))
		if v == cgroup.V1 {
			if home == r.unit() {
				home = ""
			}
			r.must(h.Attach(cgroup.CPUSet, r.path(home), cmd.Process.Pid))
		}
	}
	return r
}

// unit is where the processes of svc live.
func (r *real) unit() string {
	if r.v == cgroup.V2 {
		return "/svc/unit"
	}
	return "/svc"
}

func (r *real) make(name string, inner bool, cpus, mems string) {
	r.t.Helper()
	path := r.path(name)
	r.must(r.h.Make(cgroup.CPU, path))
	if r.v == cgroup.V1 {
		r.must(r.h.Make(cgroup.CPUSet, path))
	} else if inner {
		r.must(r.h.Write(cgroup.CPU, path, cgroup.FileSubtreeControl, "+cpu +cpuset"))
	}
	r.must(r.h.Write(cgroup.CPUSet, path, cgroup.FileMems, mems))
	r.must(r.h.Write(cgroup.CPUSet, path, cgroup.FileCPUs, cpus))
}

// scene lends the helpers that only write files.
func (r *real) scene() *scene { return &scene{t: r.t, v: r.v, fs: r.h} }

// groups lists the subtree in one hierarchy, deepest last.
func (r *real) groups(c cgroup.Controller) []string {
	var all []string
	var walk func(path string)
	walk = func(path string) {
		all = append(all, path)
		children, _ := r.h.Children(c, path)
		for _, child := range children {
			walk(child)
		}
	}
	if cgroup.Exists(r.h, c, r.root) {
		walk(r.root)
	}
	return all
}

// remove ends our processes and removes the subtree. Cleanups run last first, so the children have gone by then only
// if they were started before; hence the retries.
func (r *real) remove() {
	for _, c := range []cgroup.Controller{cgroup.CPU, cgroup.CPUSet} {
		groups := r.groups(c)
		slices.Reverse(groups)
		for _, path := range groups {
			err := r.h.Remove(c, path)
			for i := 0; i < 100 && err != nil && !errors.Is(err, cgroup.ErrNoCgroup); i++ {
				time.Sleep(10 * time.Millisecond)
				err = r.h.Remove(c, path)
			}
			if err != nil && !errors.Is(err, cgroup.ErrNoCgroup) {
				r.t.Error(err)
			}
		}
	}
}

// snapshot is every setting of the subtree, byte for byte, and where the processes are.
func (r *real) snapshot() map[string]string {
	files := append(cgroup.LimitFiles(r.v), cgroup.WeightFile(r.v), cgroup.FileCPUs, cgroup.FileMems,
		cgroup.EffectiveCPUsFile(r.v), cgroup.FileSubtreeControl, cgroup.FileProcs)
	all := map[string]string{}
	for _, c := range []cgroup.Controller{cgroup.CPU, cgroup.CPUSet} {
		for _, path := range r.groups(c) {
			for _, file := range files {
				if text, err := r.h.Read(c, path, file); err == nil {
					lines := strings.Split(text, "\n")
					slices.Sort(lines)
					all[string(c)+path+"/"+file] = strings.Join(lines, "\n")
				}
			}
		}
	}
	return all
}
