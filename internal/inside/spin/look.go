package spin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/inside"
)

// Result is what a look found.
type Result struct {
	Finding inside.Finding
	// Trial and Watch are the threads' gaps. Watch is empty where the trial found no limit.
	Trial inside.Trial
	Watch inside.Watch
	// Busiest is the other process in sight, of the same cgroup, that used most CPU time; 0: there is none.
	Busiest int
}

// LeastTrial is how long a trial takes at least, and LeastWatch the watch behind it.
const (
	LeastTrial = time.Second
	LeastWatch = 200 * time.Millisecond
)

// maxCPUs bounds the threads.
const maxCPUs = 1024

// Look looks for that long, of which the trial is a part: it tells periods up to [inside.LongestPeriod]. It sets GOMAXPROCS and
// stops the garbage collector meanwhile, so that the Go runtime holds no thread back. A look that ctx ends early has the watch until then.
func Look(ctx context.Context, forTime, trial time.Duration) (Result, error) {
	var r Result
	if trial < LeastTrial {
		return r, fmt.Errorf("%v: a trial takes %v at least", trial, LeastTrial)
	}
	if forTime < trial+LeastWatch {
		return r, fmt.Errorf("%v: a look with a trial of %v takes %v at least", forTime, trial, trial+LeastWatch)
	}
	cpus, err := ownCPUs()
	if err != nil {
		return r, err
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(len(cpus) + 2)) // a thread each, the caller, and one in a system call
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	l := &look{begun: time.Now(), cpus: cpus}
	l.account.see(inSight("/proc"))
	if r.Trial, err = l.trial(trial); err != nil {
		return r, err
	}
	if err := ctx.Err(); err != nil {
		return r, err
	}
	r.Finding = inside.Find(r.Trial)
	if r.Finding.Period > 0 {
		r.Watch, err = l.watch(ctx, forTime, r.Finding.LimitCPUs())
		r.Finding = r.Finding.Follow(r.Trial, r.Watch)
		l.account.see(inSight("/proc")) // those of the trial may have ended
		l.account.used()
	}
	r.Busiest = l.account.busiest(os.Getpid())
	return r, err
}

// ownCPUs are the CPUs that this process may use.
func ownCPUs() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("the CPUs that this process may use: %w", err)
	}
	var all []int
	for cpu := range maxCPUs {
		if set.IsSet(cpu) {
			all = append(all, cpu)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("the kernel names no CPU that this process may use")
	}
	return all, nil
}
