package experiments

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/test/lab/require"
)

const (
	// envFib makes this test binary fibtest's load.
	envFib = "UNTHROTTLE_EXPERIMENT_FIB"
	// envSlices says what the kernel under test does with the rest of its CPUs' slices at the end of a period: "kept"
	// or "expire".
	envSlices = "UNTHROTTLE_EXPERIMENT_SLICES"

	fibQuotaUsec = 10_000 // per period of 100 ms
	// fibSleep is 10 ms in fibtest. In the lab a wake-up is charged 0.15 to 0.3 ms, so that ten of them per period use
	// up the time that would expire.
	fibSleep = 80 * time.Millisecond

	// Shares of the quota used on 16 CPUs: 0.95 to 1.00 where slices are kept, 0.54 to 0.67 where they expire
	// (docs/lab.md).
	fibKept, fibExpired = 0.9, 0.8
)

// TestSlices distinguishes kernels that let slices expire (4.18 to 5.3) from those that keep them, with fibtest's load.
// One thread wants all of a small quota. On every other CPU a thread takes a slice, uses a sliver of it and sleeps.
// Either way the group is throttled all the time. Where the rest of the slices expires, it is throttled before it has
// used its quota.
func TestSlices(t *testing.T) {
	want := os.Getenv(envSlices)
	if want != "kept" && want != "expire" {
		t.Skipf("%s is %q: no behaviour is specified for this kernel; runs in make lab-kernel-affected", envSlices, want)
	}
	require.Root(t)
	require.CPUs(t, 8)
	root := require.CgroupV2(t)

	before, after, wall := loadIn(t, root, "fib", envFib+"=1", map[string]string{"cpu.max": fmt.Sprintf("%d 100000", fibQuotaUsec)})
	all, throttled := after["nr_periods"]-before["nr_periods"], after["nr_throttled"]-before["nr_throttled"]
	used := after["usage_usec"] - before["usage_usec"]
	share := float64(used) / float64(all*fibQuotaUsec)
	t.Logf("%d CPUs, slices %s: used %d of %d ms in %.1f s (%.2f), %d of %d periods throttled",
		runtime.NumCPU(), want, used/1000, all*fibQuotaUsec/1000, wall.Seconds(), share, throttled, all)
	if throttled < all*9/10 {
		t.Errorf("%d of %d periods were throttled; want nearly all: the load asks for more than the quota", throttled, all)
	}
	if want == "kept" && share < fibKept {
		t.Errorf("%.2f of the quota was used; a kernel that keeps slices lets at least %.1f be used", share, fibKept)
	}
	if want == "expire" && share > fibExpired {
		t.Errorf("%.2f of the quota was used; where slices expire at most %.1f is", share, fibExpired)
	}
}

// fib is the load: one thread per CPU, pinned to it; the first one spins.
func fib() {
	debug.SetGCPercent(-1) // no helper threads in addition to the pinned ones
	cpus := runtime.NumCPU()
	runtime.GOMAXPROCS(cpus + 1)
	for cpu := range cpus {
		go func() {
			runtime.LockOSThread()
			var only unix.CPUSet
			only.Set(cpu)
			if err := unix.SchedSetaffinity(0, &only); err != nil {
				fmt.Fprintf(os.Stderr, "pin a thread to CPU %d: %v\n", cpu, err)
				os.Exit(1)
			}
			for x := uint64(1); ; x++ {
				if cpu != 0 && x%100 == 0 {
					sleep := unix.NsecToTimespec(fibSleep.Nanoseconds())
					_ = unix.Nanosleep(&sleep, nil) // a signal only makes it shorter
				}
			}
		}()
	}
	time.Sleep(burnLimit)
	os.Exit(1)
}
