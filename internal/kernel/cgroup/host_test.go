package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// tree is a fake host: a /proc with a mountinfo, and directories instead of mounts.
type tree struct {
	t    *testing.T
	dir  string
	info strings.Builder
}

func newTree(t *testing.T) *tree {
	tr := &tree{t: t, dir: t.TempDir()}
	return tr
}

// mount adds a hierarchy; options is "cpu,cpuacct" for v1, "" for v2.
func (tr *tree) mount(name, root, options, flags string) string {
	dir := filepath.Join(tr.dir, name)
	kind, super := "cgroup", "rw,"+options
	if options == "" {
		kind, super = "cgroup2", "rw"
	}
	escaped := strings.NewReplacer(`\`, `\134`, " ", `\040`, "\n", `\012`, "\t", `\011`).Replace(dir)
	n := strings.Count(tr.info.String(), "\n") + 30
	fmt.Fprintf(&tr.info, "%d 25 0:%d %s %s %s,nosuid,relatime shared:9 - %s %s %s\n", n, n, root, escaped, flags, kind, kind, super)
	tr.file(filepath.Join(name, "cgroup.procs"), "")
	return dir
}

func (tr *tree) file(name, text string) {
	name = filepath.Join(tr.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		tr.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		tr.t.Fatal(err)
	}
}

func (tr *tree) open() *Host {
	tr.t.Helper()
	tr.file("proc/self/mountinfo", tr.info.String())
	h, err := Open(filepath.Join(tr.dir, "proc"))
	if err != nil {
		tr.t.Fatal(err)
	}
	return h
}

func TestHostReadsV2(t *testing.T) {
	tr := newTree(t)
	tr.mount("cg", "/", "", "rw")
	tr.file("cg/cgroup.controllers", "cpuset cpu io memory\n")
	tr.file("cg/pod/cpu.max", "20000 100000\n")
	tr.file("cg/pod/cpu.max.burst", "10000\n")
	tr.file("cg/pod/c/cpu.max", "max 100000\n")
	tr.file("cg/pod/c/cgroup.procs", "0\n12\n")
	tr.file("cg/pod/c/cpu.stat", "usage_usec 5000\nuser_usec 1\nnr_periods 7\nnr_throttled 3\nthrottled_usec 20\n")
	tr.file("cg/cpuset.cpus.effective", "0-3\n")
	h := tr.open()
	if h.Mode() != "v2" {
		t.Errorf("mode %q", h.Mode())
	}
	levels, err := Levels(h, "/pod/c")
	if err != nil || len(levels) != 3 {
		t.Fatalf("levels %v, %v", levels, err)
	}
	if cpus, _, at := Effective(levels); cpus != 0.2 || at != "/pod" {
		t.Errorf("effective %v at %q", cpus, at)
	}
	if levels[1].Limit.Burst != 10*ms {
		t.Errorf("burst %v", levels[1].Limit.Burst)
	}
	g, err := h.Group("/pod/c")
	if err != nil || g != (Group{"/pod/c", "/pod/c", "/pod/c"}) {
		t.Errorf("group %+v, %v", g, err)
	}
	s, err := ReadStat(h, g)
	if err != nil || s.Periods != 7 || s.ThrottledPeriods != 3 || s.Throttled.Microseconds() != 20 || s.Usage.Milliseconds() != 5 {
		t.Errorf("stat %+v, %v", s, err)
	}
	if s.ThrottledTotal != nil || s.Bursts != nil {
		t.Errorf("what the kernel has not must be nil: %+v", s)
	}
	configured, effective, err := CPUs(h, "/pod/c")
	if err != nil || !configured.IsEmpty() || effective.String() != "0-3" {
		t.Errorf("cpus %q %q %v", configured, effective, err)
	}
	if pids, err := h.Procs(CPU, "/pod/c"); err != nil || len(pids) != 2 || pids[0] != 0 {
		t.Errorf("procs %v, %v", pids, err)
	}
	var seen []string
	if err := h.Walk("", func(p string) error { seen = append(seen, p); return nil }); err != nil || fmt.Sprint(seen) != "[/ /pod /pod/c]" {
		t.Errorf("walk %v, %v", seen, err)
	}
}

func TestHostSeparateV1(t *testing.T) {
	tr := newTree(t)
	tr.mount("cpu", "/", "cpu", "rw")
	tr.mount("cpuset", "/", "cpuset", "rw")
	tr.mount("cpuacct", "/", "cpuacct", "rw")
	tr.file("cpu/system.slice/a.service/sub/cgroup.procs", "7\n0\n")
	tr.file("cpu/system.slice/a.service/cgroup.procs", "")
	tr.file("cpuacct/system.slice/a.service/cpuacct.usage", "42\n")
	tr.file("cpu/system.slice/a.service/cpu.stat", "nr_periods 1\nnr_throttled 1\nthrottled_time 9\n")
	tr.file("cpuacct/system.slice/a.service/sub/cpuacct.usage", "42\n")
	tr.file("proc/7/cgroup", "3:cpuset:/\n2:cpuacct:/system.slice/a.service/sub\n1:cpu:/system.slice/a.service/sub\n0::/x\n")
	h := tr.open()
	g, err := h.Group("/system.slice/a.service")
	if err != nil || g != (Group{"/system.slice/a.service", "/", "/system.slice/a.service"}) {
		t.Errorf("group %+v, %v", g, err)
	}
	s, err := ReadStat(h, g)
	if err != nil || s.Usage == nil || *s.Usage != 42 || s.Throttled != 9 {
		t.Errorf("stat %+v, %v", s, err)
	}
}

func TestHostErrors(t *testing.T) {
	tr := newTree(t)
	tr.mount("cpu", "/", "cpu", "rw")
	tr.file("cpu/a/cpu.shares", "1024\n")
	h := tr.open()
	for _, c := range []struct {
		name string
		err  error
		is   []error
	}{
		{"gone", h.Write(CPU, "/gone", "cpu.shares", "2"), []error{ErrNoCgroup, unix.ENOENT}},
		{"no file", func() error { _, err := h.Read(CPU, "/a", "cpu.nope"); return err }(), []error{ErrNoFile, unix.ENOENT}},
		{"dot dot", h.Write(CPU, "/a/../b", "cpu.shares", "2"), []error{ErrBadPath}},
		{"file with a slash", h.Write(CPU, "/a", "../x", "2"), []error{ErrBadPath}},
		{"empty", h.Write(CPU, "/a", "cpu.shares", ""), []error{ErrEmptyValue}},
		{"no controller", h.Write(CPUSet, "/a", FileCPUs, "1"), []error{ErrNoController}},
		{"pid 0", h.Attach(CPU, "/a", 0), []error{ErrBadPID}},
		{"exists", h.Make(CPU, "/a"), []error{unix.EEXIST}},
		{"parent gone", h.Make(CPU, "/x/y"), []error{ErrNoCgroup}},
	} {
		for _, is := range c.is {
			if !errors.Is(c.err, is) {
				t.Errorf("%s: %v is not %v", c.name, c.err, is)
			}
		}
		var e *Error
		if !errors.As(c.err, &e) || e.Why == "" && c.name != "dot dot" && c.name != "file with a slash" {
			t.Errorf("%s: no cause in %#v", c.name, c.err)
		}
	}
}

// If the mount begins above our cgroup namespace, only processes outside of it have a known place.
func TestMembersUnderAForeignRoot(t *testing.T) {
	for _, c := range []struct {
		root, line, want string
		ok               bool
	}{
		{"/..", "/../x/y", "/x/y", true},
		{"/..", "/..", "/", true},
		{"/..", "/", "", false},
		{"/..", "/../../x", "", false},
		{"/../x", "/../x/y", "/y", true},
		{"/../x", "/../xy", "", false},
		{"/", "/a", "/a", true},
		{"/", "/../a", "", false},
		{"/docker/1", "/docker/1/a", "/docker/1/a", true},
	} {
		tr := newTree(t)
		tr.mount("cpu", c.root, "cpu", "rw")
		tr.file("proc/7/cgroup", "1:cpu:"+c.line+"\n")
		got, ok, err := tr.open().Of(7, CPU)
		if err != nil || ok != c.ok || ok && got != c.want {
			t.Errorf("root %s, process at %s: %q %v %v", c.root, c.line, got, ok, err)
		}
	}
}

// A container that sees only its own tree uses the kernel's names for it.
func TestBoundRoot(t *testing.T) {
	tr := newTree(t)
	dir := tr.mount("cpu", "/docker/1", "cpu", "ro")
	tr.file("cpu/cpu.cfs_quota_us", "50000\n")
	tr.file("cpu/cpu.cfs_period_us", "100000\n")
	tr.file("cpu/a/cpu.cfs_quota_us", "-1\n")
	tr.file("cpu/a/cpu.cfs_period_us", "100000\n")
	h := tr.open()
	levels, err := Levels(h, "/docker/1/a")
	if cpus, _, at := Effective(levels); err != nil || len(levels) != 2 || cpus != 0.5 || at != "/docker/1" {
		t.Errorf("%v %v", levels, err)
	}
	if _, err := Levels(h, "/docker"); !errors.Is(err, ErrOutside) {
		t.Errorf("above what is mounted: %v", err)
	}
	if got := h.Dir(CPU, "/docker/1/a"); got != dir+"/a" {
		t.Errorf("directory %q", got)
	}
	if got, err := CleanPath(h, dir+"/a"); err != nil || got != "/docker/1/a" {
		t.Errorf("path of the directory: %q, %v", got, err)
	}
	if m, _ := h.Mount(CPU); !m.ReadOnly {
		t.Error("not seen as read-only")
	}
}

// A cgroup may be removed before it is opened or while it is open.
func TestGoneIsOneKind(t *testing.T) {
	tr := newTree(t)
	tr.mount("cpu", "/", "cpu", "rw")
	tr.file("cpu/a/cpu.shares", "1024\n")
	h := tr.open()
	for _, errno := range []unix.Errno{unix.ENODEV, unix.ENOENT} {
		path := map[unix.Errno]string{unix.ENODEV: "/a", unix.ENOENT: "/gone"}[errno]
		err := h.fail(OpWrite, CPU, path, "cpu.shares", "2", errno)
		if !errors.Is(err, ErrNoCgroup) || !errors.Is(err, errno) {
			t.Errorf("%v: %v", errno, err)
		}
	}
}
