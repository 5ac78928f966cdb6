package require

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// recorder is a testing.TB that notes how the test was ended.
type recorder struct {
	testing.TB
	skipped, failed string
}

func (r *recorder) Helper()          {}
func (r *recorder) Skip(args ...any) { r.skipped = fmt.Sprint(args...); runtime.Goexit() }
func (r *recorder) Skipf(format string, args ...any) {
	r.skipped = fmt.Sprintf(format, args...)
	runtime.Goexit()
}
func (r *recorder) Fatal(args ...any) {
	r.failed = fmt.Sprint(args...)
	runtime.Goexit()
}
func (r *recorder) Fatalf(format string, args ...any) {
	r.failed = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func record(f func(testing.TB)) *recorder {
	r := &recorder{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	return r
}

// setShort sets -short for the rest of the test.
func setShort(t *testing.T, to bool) {
	t.Helper()
	before := testing.Short()
	set := func(to bool) {
		if err := flag.Set("test.short", strconv.FormatBool(to)); err != nil {
			t.Error(err)
		}
	}
	set(to)
	t.Cleanup(func() { set(before) })
}

func TestShortAndPureLeaveNeedsOut(t *testing.T) {
	t.Setenv(EnvMust, "root,cpus=1048576")
	for _, c := range []struct {
		short bool
		pure  string
		out   bool
	}{{true, "", true}, {false, "1", true}, {true, "1", true}, {false, "", false}, {false, "0", false}} {
		setShort(t, c.short)
		t.Setenv(EnvPure, c.pure)
		for name, ask := range map[string]func(testing.TB){
			"kernel": Kernel, "cpus=1048576": func(tb testing.TB) { CPUs(tb, 1<<20) },
		} {
			r := record(ask)
			if c.out != (IsLeftOut(r.skipped) && strings.HasPrefix(r.skipped, "needs "+name)) {
				t.Errorf("short %v, pure %q: %s: skipped with %q", c.short, c.pure, name, r.skipped)
			}
			if _, _, _, ok := SkipMessage(r.skipped); ok {
				t.Errorf("%q counts as an unmet need", r.skipped)
			}
			if failed := r.failed != ""; failed != (!c.out && name != "kernel") {
				t.Errorf("short %v, pure %q: %s: failed with %q", c.short, c.pure, name, r.failed)
			}
		}
	}
}

func TestAnUnmetNeedSkipsOrFails(t *testing.T) {
	setShort(t, false)
	t.Setenv(EnvPure, "")
	ask := func(tb testing.TB) { CPUs(tb, 1<<20) }
	for _, c := range []struct{ must, skipped, failed string }{
		{"", "needs cpus=1048576: ", ""},
		{"root,v2", "needs cpus=1048576: ", ""},
		{"cpus=16", "needs cpus=1048576: ", ""},
		{"root, cpus", "", "UNTHROTTLE_MUST says that this machine has it"},
		{"cpus=1048576", "", "UNTHROTTLE_MUST says that this machine has it"},
		{"cpu", "", `unknown need "cpu"`},
		{"cpus=many", "", "want a whole number"},
	} {
		t.Setenv(EnvMust, c.must)
		r := record(ask)
		if !strings.Contains(r.skipped, c.skipped) || (c.skipped == "") != (r.skipped == "") {
			t.Errorf("%s=%q: skipped with %q, want %q", EnvMust, c.must, r.skipped, c.skipped)
		}
		if !strings.Contains(r.failed, c.failed) || (c.failed == "") != (r.failed == "") {
			t.Errorf("%s=%q: failed with %q, want %q", EnvMust, c.must, r.failed, c.failed)
		}
	}
}

func TestSkipMessageRoundTrip(t *testing.T) {
	n := need{name: needCPUs, count: 16, runsIn: "the lab"}
	needed, reason, where, ok := SkipMessage(n.message(errors.New("2 CPUs;\nruns in circles; runs in no lab")))
	if !ok || needed != "cpus=16" || reason != "2 CPUs; runs in circles; runs in no lab" || where != "the lab" {
		t.Fatalf("got %q %q %q %v", needed, reason, where, ok)
	}
	for _, other := range []string{"", "needs", "needs time: none; runs in winter", "needs root: no", "short mode"} {
		if _, _, _, ok := SkipMessage(other); ok {
			t.Errorf("%q was taken for a message of this package", other)
		}
	}
}

func TestRounds(t *testing.T) {
	for _, c := range []struct {
		all, lab string
		short    bool
		n, want  int
	}{{"1", "", false, 200, 200}, {"1", "1", false, 200, 20}, {"1", "1", false, 3, 1}, {"1", "0", false, 200, 200},
		{"1", "", true, 200, 20}, {"", "", false, 200, 20}} {
		t.Setenv(EnvAll, c.all)
		t.Setenv(EnvLab, c.lab)
		setShort(t, c.short)
		if got := Rounds(t, c.n); got != c.want {
			t.Errorf("%s=%q, %s=%q, short %v: Rounds(%d) = %d, want %d", EnvAll, c.all, EnvLab, c.lab, c.short, c.n, got, c.want)
		}
	}
	if r := record(func(tb testing.TB) { Rounds(tb, 0) }); r.failed == "" {
		t.Error("Rounds(0) did not fail")
	}
}

func TestCheckAll(t *testing.T) {
	long := func(tb testing.TB) { CheckAll(tb, "TestShop is the same in short") }
	t.Setenv(EnvAll, "")
	t.Setenv(EnvCheckAll, "")
	if needed, why, where, ok := SkipMessage(record(long).skipped); !ok || needed != "check-all" ||
		why != "TestShop is the same in short" || where != "make check-all" {
		t.Errorf("skipped with %q: %q, %q", needed, why, where)
	}
	if n := Cases(t, 100, 7); n != 7 {
		t.Errorf("%d cases in make test", n)
	}
	for _, env := range []string{EnvCheckAll, EnvAll} {
		t.Setenv(EnvCheckAll, "")
		t.Setenv(env, "1")
		if r := record(long); r.skipped+r.failed != "" || Cases(t, 100, 7) != 100 {
			t.Errorf("%s=1: %+v, %d cases", env, r, Cases(t, 100, 7))
		}
	}
	for _, wrong := range []func(testing.TB){func(tb testing.TB) { CheckAll(tb, "") }, func(tb testing.TB) { Cases(tb, 5, 5) },
		func(tb testing.TB) { Cases(tb, 5, 0) }} {
		if r := record(wrong); r.failed == "" {
			t.Error("taken")
		}
	}
}

func TestTestAll(t *testing.T) {
	long := func(tb testing.TB) { TestAll(tb, "it packs for a minute") }
	t.Setenv(EnvAll, "")
	if needed, why, where, ok := SkipMessage(record(long).skipped); !ok || needed != "test-all" ||
		why != "it packs for a minute" || where != "make test-all" {
		t.Errorf("skipped with %q: %q, %q", needed, why, where)
	}
	t.Setenv(EnvAll, "1")
	if r := record(long); r.skipped+r.failed != "" {
		t.Errorf("left out of make test-all: %+v", r)
	}
	if r := record(func(tb testing.TB) { TestAll(tb, "") }); r.failed == "" {
		t.Error("no reason was needed")
	}
}

func TestCgroupMounts(t *testing.T) {
	mounts := cgroupMounts("31 24 0:27 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct\n" +
		"30 24 0:26 / /mnt/a\\040b rw - cgroup2 cgroup2 rw,nsdelegate\n" +
		"29 24 0:25 / /sys rw - sysfs sysfs rw\n" +
		"short - cgroup\n")
	if len(mounts) != 2 || mounts[0].version != 1 || mounts[0].point != "/sys/fs/cgroup/cpu,cpuacct" ||
		mounts[1].version != 2 || mounts[1].point != "/mnt/a b" {
		t.Fatalf("got %+v", mounts)
	}
}

// TestTrialsLeaveNothing runs every real detection: whatever the machine has,
// none may leave a cgroup behind.
func TestTrialsLeaveNothing(t *testing.T) {
	for name, try := range map[string]func() error{
		"root": tryRoot, "bpf": tryBPF, "sched_ext": trySchedExt,
		"v1": func() error { _, err := tryCgroupV1(); return err },
		"v2": func() error { _, err := tryCgroupV2(); return err },
	} {
		t.Logf("%s: %v", name, try())
	}
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range cgroupMounts(string(table)) {
		left, err := filepath.Glob(filepath.Join(m.point, fmt.Sprintf("unthrottle-require-%d-*", os.Getpid())))
		if err != nil || len(left) != 0 {
			t.Errorf("left behind: %v %v", left, err)
		}
	}
}
