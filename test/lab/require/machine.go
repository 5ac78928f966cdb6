package require

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	inLab = "the lab"

	// What `make lab-test` boots; see lab/topology.go. Larger guests are
	// had with `lab run --smp`.
	labCPUs, labL3s, labNUMANodes = 16, 2, 2
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

// EachCgroup says that cgroup v2 changes what a test checks, and what that is. `make test` repeats it in the lab, though
// this host's kernel has taken it; of the others only `make test-all` does. It is no need, and skips nothing.
func EachCgroup(t testing.TB, what string) {
	t.Helper()
	if what == "" {
		t.Fatal("require.EachCgroup: say what of the test depends on the version")
	}
}

// Alone says that a test compares its figures with each other or with those of a model, and how: other work on the host
// would be part of them. `make test` runs it on this host's kernel while nothing else runs. It is no need, and skips nothing.
func Alone(t testing.TB, how string) {
	t.Helper()
	if how == "" {
		t.Fatal("require.Alone: say what the test compares")
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

// L3s needs n L3 caches with CPUs online below them.
func L3s(t testing.TB, n int) {
	t.Helper()
	count := func() (int, error) { return countL3s("/sys") }
	need{name: needL3s, count: n, runsIn: runsIn(n, labL3s, "L3 caches")}.ask(t, atLeast(n, "L3 caches are in sysfs", count))
}

// countL3s counts sets of CPUs rather than cache ids, as some machines give
// each core its own id for the one cache they share.
func countL3s(sys string) (int, error) {
	levels, err := filepath.Glob(filepath.Join(sys, "devices/system/cpu/cpu[0-9]*/cache/index*/level"))
	if err != nil {
		return 0, err
	}
	shared := map[string]bool{}
	for _, file := range levels {
		if level, err := os.ReadFile(file); err != nil || strings.TrimSpace(string(level)) != "3" {
			continue
		}
		cpus, err := os.ReadFile(filepath.Join(filepath.Dir(file), "shared_cpu_list"))
		if err != nil {
			return 0, err
		}
		shared[strings.TrimSpace(string(cpus))] = true
	}
	return len(shared), nil
}

// NUMANodes needs n NUMA nodes that have CPUs.
func NUMANodes(t testing.TB, n int) {
	t.Helper()
	count := func() (int, error) { return countNUMANodes("/sys") }
	need{name: needNUMA, count: n, runsIn: runsIn(n, labNUMANodes, "NUMA nodes")}.ask(t, atLeast(n, "NUMA nodes have CPUs", count))
}

func countNUMANodes(sys string) (int, error) {
	lists, err := filepath.Glob(filepath.Join(sys, "devices/system/node/node[0-9]*/cpulist"))
	if err != nil {
		return 0, err
	}
	n := 0
	for _, file := range lists {
		cpus, err := os.ReadFile(file)
		if err != nil {
			return 0, err
		}
		if strings.TrimSpace(string(cpus)) != "" {
			n++
		}
	}
	return n, nil
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

// Systemd needs a systemd that runs this machine and answers on the system
// bus.
func Systemd(t testing.TB) {
	t.Helper()
	need{name: needSystemd, runsIn: "a host with systemd"}.ask(t, trySystemd)
}

func trySystemd() error {
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		return fmt.Errorf("systemd did not boot this machine: %w", err)
	}
	bus, err := net.Dial("unix", "/run/dbus/system_bus_socket")
	if err != nil {
		return err
	}
	return bus.Close()
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
