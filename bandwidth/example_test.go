package bandwidth_test

import (
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
)

// A group with a limit of 1 CPU, 100 ms in 100 ms, runs a thread on each of 4 CPUs. The kernel charges them
// at ticks of 4 ms. The last two CPUs find the pool empty at 24 ms, the first two at 32 ms. The refill pays
// their debts of 3 ms first.
func Example() {
	const ms = time.Millisecond
	rules, err := bandwidth.For("6.12")
	if err != nil {
		fmt.Println(err)
		return
	}
	group, err := bandwidth.New(&rules, 4, bandwidth.Limit{Quota: 100 * ms, Period: 100 * ms}, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	for cpu := range 4 {
		group.Enqueue(0, cpu) // a thread becomes runnable and takes a slice of 5 ms
	}
	for now := 4 * ms; now < 100*ms; now += 4 * ms {
		for cpu := range 4 {
			if group.Throttled(cpu) {
				continue
			}
			if usedUp := group.Charge(now, cpu, 4*ms, true); usedUp && group.Check(now, cpu, true) {
				fmt.Printf("%v: CPU %d is throttled, with a debt of %v\n", now, cpu, -group.Left(cpu))
			}
		}
	}
	now := group.PeriodAt()
	for _, cpu := range group.PeriodTimer(now, nil) {
		group.Unthrottle(now, cpu)
		fmt.Printf("%v: CPU %d may run again\n", now, cpu)
	}
	stat := group.Stat(now)
	fmt.Printf("throttled in %d of %d periods, for %v over all CPUs\n", stat.ThrottledPeriods, stat.Periods, stat.Throttled)
	// Output:
	// 24ms: CPU 2 is throttled, with a debt of 3ms
	// 24ms: CPU 3 is throttled, with a debt of 3ms
	// 32ms: CPU 0 is throttled, with a debt of 3ms
	// 32ms: CPU 1 is throttled, with a debt of 3ms
	// 100ms: CPU 2 may run again
	// 100ms: CPU 3 may run again
	// 100ms: CPU 0 may run again
	// 100ms: CPU 1 may run again
	// throttled in 1 of 1 periods, for 288ms over all CPUs
}
