package workload

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/test/lab/require"
)

// A thread uses as much CPU time as is asked for, also where it sleeps in between,
// which is none.
func TestBurnFor(t *testing.T) {
	require.Kernel(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, d := range []time.Duration{100 * time.Microsecond, 2 * time.Millisecond, 10 * time.Millisecond} {
		const runs = 20
		all, x := make([]time.Duration, runs), uint64(1)
		for i := range all {
			from := ThreadTime()
			x = BurnFor(d, x, 1000, nil)
			all[i] = ThreadTime() - from
		}
		slices.Sort(all) // what a hypervisor takes is charged to some
		if used := all[runs/2]; x == 0 || used < d-d/20 || used > d+d/5+50*time.Microsecond {
			t.Errorf("%v: used %v", d, used)
		}
	}
	const d = 2 * time.Millisecond
	from, begin, rounds := ThreadTime(), time.Now(), 0
	BurnFor(d, 1, 100_000, func() {
		rounds++
		time.Sleep(time.Millisecond)
	})
	if used := ThreadTime() - from; used < d-d/20 || time.Since(begin) < 2*d || rounds < 5 {
		t.Errorf("of %v it slept %v, and used %v of %v in %d turns", time.Since(begin), time.Since(begin)-used, used, d, rounds)
	}
}
