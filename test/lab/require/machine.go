package require

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	inLab = "the lab"

	// What `make lab-test` boots; see lab/topology.go. Larger guests are
	// had with `lab run --smp`.
	labCPUs = 16
)

// Root needs uid 0 with CAP_SYS_ADMIN: what it takes to make cgroups and to
// load BPF programs.
func Root(t testing.TB) {
	t.Helper()
	need{name: needRoot, runsIn: inLab}.ask(t, tryRoot)
}

func tryRoot() error {
	if uid := os.Geteuid(); uid != 0 {
		return fmt.Errorf("running as uid %d", uid)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return fmt.Errorf("capget: %w", err)
	}
	if data[0].Effective&(1<<unix.CAP_SYS_ADMIN) == 0 {
		return errors.New("root without CAP_SYS_ADMIN")
	}
	return nil
}

// Kernel needs real processes, threads or clocks of the kernel that runs the
// test, and nothing that some Linux lacks. The lab does not repeat such a test.
func Kernel(t testing.TB) {
	t.Helper()
	need{name: needKernel, runsIn: "a host with Linux"}.ask(t, func() error { return nil })
}

// EachCgroup says that cgroup v2 changes what a test checks, and what that is. `make check-all` repeats it in the lab, though
// this host's kernel has taken it; of the others only `make test-all` does. It is no need, and skips nothing.
func EachCgroup(t testing.TB, what string) {
	t.Helper()
	if what == "" {
		t.Fatal("require.EachCgroup: say what of the test depends on the version")
	}
}

// Alone says that a test compares its figures with each other or with those of a model, or that it takes whole CPUs, and
// which: other work on the host would be part of it. `make test` runs it on this host's kernel while nothing else runs. It is
// no need, and skips nothing.
func Alone(t testing.TB, what string) {
	t.Helper()
	if what == "" {
		t.Fatal("require.Alone: say what the test compares or takes")
	}
}

// CPUs needs n CPUs that this process may run on.
func CPUs(t testing.TB, n int) {
	t.Helper()
	need{name: needCPUs, count: n, runsIn: runsIn(n, labCPUs, "CPUs")}.ask(t, atLeast(n, "CPUs are usable", usableCPUs))
}

func usableCPUs() (int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return 0, fmt.Errorf("sched_getaffinity: %w", err)
	}
	return set.Count(), nil
}

// Slow needs a guest whose clock runs so much slower than the host's that its milliseconds mean something (package
// test/lab/slow).
func Slow(t testing.TB) {
	t.Helper()
	need{name: needSlow, runsIn: "lab test --slow"}.ask(t, trySlow)
}

func trySlow() error {
	if k, err := strconv.Atoi(os.Getenv(EnvSlow)); err != nil || k < 2 {
		return errors.New("the clock runs at the host's pace")
	}
	return nil
}

// atLeast tries for n of something that count counts.
func atLeast(n int, what string, count func() (int, error)) func() error {
	return func() error {
		have, err := count()
		if err != nil {
			return err
		}
		if have < n {
			return fmt.Errorf("%d %s", have, what)
		}
		return nil
	}
}

func runsIn(n, lab int, what string) string {
	if n <= lab {
		return inLab
	}
	return "a host with " + strconv.Itoa(n) + " " + what
}
