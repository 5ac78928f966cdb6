package experiments

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/test/lab/require"
)

// envBurners makes this test binary burn CPU on that many threads.
const envBurners = "UNTHROTTLE_EXPERIMENT_BURNERS"

const (
	burners = 32
	periods = 50 // to observe
	// burnLimit ends the burners, also after a failed test.
	burnLimit = 90 * time.Second
	attempts  = 6
)

func TestMain(m *testing.M) {
	if n, err := strconv.Atoi(os.Getenv(envBurners)); err == nil && n > 0 {
		burn(n)
		return
	}
	if os.Getenv(envFib) != "" {
		fib()
		return
	}
	os.Exit(m.Run())
}

func burn(threads int) {
	runtime.GOMAXPROCS(threads + 1)
	for range threads {
		go func() {
			runtime.LockOSThread()
			for x := uint64(1); ; x++ {
				_ = x
			}
		}()
	}
	time.Sleep(burnLimit)
	os.Exit(1)
}

// TestQuotaThrottlesAndCpusetDoesNot is seed 003 on a machine with eight times the CPUs of the limit.
func TestQuotaThrottlesAndCpusetDoesNot(t *testing.T) {
	require.TestAll(t, "it tests the kernel: make lab-kernels runs it on each")
	require.Root(t)
	require.CPUs(t, 16)
	root := require.CgroupV2(t)

	quota := throttledShare(t, root, "quota", map[string]string{"cpu.max": "200000 100000"})
	if quota <= 0.9 {
		t.Errorf("quota alone: %.2f of the periods were throttled; want more than 0.9", quota)
	}
	// A busy host can only increase the second figure, so the least of a few attempts is the nearest to the truth.
	cpuset := 1.0
	for attempt := 0; attempt < attempts && cpuset >= quota/2; attempt++ {
		cpuset = min(cpuset, throttledShare(t, root, "cpuset", map[string]string{"cpu.max": "200000 100000", "cpuset.cpus": "0-1"}))
	}
	if cpuset >= quota/2 {
		t.Errorf("with the cpuset: %.2f of the periods were throttled; want less than half of %.2f", cpuset, quota)
	}
}

// TestLimitIsKept checks the plain meaning of a limit on any kernel: the CPU time of a cgroup per wall time.
func TestLimitIsKept(t *testing.T) {
	require.TestAll(t, "it tests the kernel: make lab-kernels runs it on each")
	require.Root(t)
	require.CPUs(t, 4)
	root := require.CgroupV2(t)
	before, after, wall := burnIn(t, root, "limit", map[string]string{"cpu.max": "50000 100000"})
	used := float64(after["usage_usec"]-before["usage_usec"]) / float64(wall.Microseconds())
	t.Logf("limit 0.5 CPUs: used %.2f, %d of %d periods throttled", used, after["nr_throttled"]-before["nr_throttled"],
		after["nr_periods"]-before["nr_periods"])
	if used > 0.75 || used < 0.1 {
		t.Errorf("a limit of 0.5 CPUs let %.2f be used", used)
	}
}

func throttledShare(t *testing.T, root, name string, settings map[string]string) float64 {
	t.Helper()
	before, after, _ := burnIn(t, root, name, settings)
	throttled, all := after["nr_throttled"]-before["nr_throttled"], after["nr_periods"]-before["nr_periods"]
	share := float64(throttled) / float64(all)
	t.Logf("%s: %d of %d periods throttled (%.2f)", name, throttled, all, share)
	return share
}

// burnIn is loadIn with the burners.
func burnIn(t *testing.T, root, name string, settings map[string]string) (before, after map[string]int64, wall time.Duration) {
	t.Helper()
	return loadIn(t, root, name, envBurners+"="+strconv.Itoa(burners), settings)
}

// loadIn runs this test binary, as the load that env names, in a new cgroup until enough periods have passed. It
// returns its cpu.stat at their start and end.
func loadIn(t *testing.T, root, name, env string, settings map[string]string) (before, after map[string]int64, wall time.Duration) {
	t.Helper()
	dir := filepath.Join(root, fmt.Sprintf("unthrottle-experiment-%d-%s", os.Getpid(), name))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := remove(dir); err != nil {
			t.Error(err)
		}
	}()
	for file, value := range settings {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(value), 0); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), env)
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(f.Fd()), Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // Pdeathsig is per thread
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	// All threads need a few periods to start.
	before = waitForPeriods(t, dir, 10)
	start := time.Now()
	after = waitForPeriods(t, dir, before["nr_periods"]+periods)
	return before, after, time.Since(start)
}

func waitForPeriods(t *testing.T, dir string, n int64) map[string]int64 {
	t.Helper()
	deadline := time.Now().Add(burnLimit * 2 / 3)
	for {
		stat, err := cpuStat(dir)
		if err != nil {
			t.Fatal(err)
		}
		if stat["nr_periods"] >= n {
			return stat
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %d periods, waiting for %d: is anything running in it?", dir, stat["nr_periods"], n)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func cpuStat(dir string) (map[string]int64, error) {
	text, err := os.ReadFile(filepath.Join(dir, "cpu.stat"))
	if err != nil {
		return nil, err
	}
	stat := map[string]int64{}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			if stat[name], err = strconv.ParseInt(value, 10, 64); err != nil {
				return nil, err
			}
		}
	}
	return stat, nil
}

// remove removes a cgroup whose processes were just killed: the kernel returns EBUSY until they are gone.
func remove(dir string) error {
	for range 100 {
		if err := os.Remove(dir); !errors.Is(err, syscall.EBUSY) {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("%s: still busy", dir)
}
