package scx

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Name is the scheduler's name in /sys/kernel/sched_ext/root/ops.
const Name = "unthrottle"

// Bounds of a cap.
const (
	// MinCPUs is the least CPUs of a cap.
	MinCPUs = 0.01
	// MaxCPUs is the most CPUs of a cap, and the highest CPU number plus one that the scheduler counts on.
	MaxCPUs = 1024
	// MaxCredit is the longest credit.
	MaxCredit = time.Hour
	// DefaultCgroups is how many cgroups may have a cap or a limit of their own unless Options say otherwise.
	DefaultCgroups = 1024
	// MaxCgroups is the largest Options.Cgroups.
	MaxCgroups = 4096
)

// Cap bounds how many threads of a cgroup and of the cgroups below it run at one moment.
type Cap struct {
	// CPUs is the limit, MinCPUs to MaxCPUs. A fraction alternates between the whole numbers beside it in turns of a
	// few milliseconds. A limit below 1 alternates between one thread and none.
	CPUs float64
	// Credit is the CPU time that the cgroup may save while it uses less than CPUs; 0 means none.
	Credit time.Duration
	// Widest is the most CPUs at one moment while it has credit; 0 means every CPU.
	Widest int
}

// Check returns an error that names what makes no sense, or nil.
func (c Cap) Check() error {
	switch {
	case math.IsNaN(c.CPUs) || c.CPUs < MinCPUs || c.CPUs > MaxCPUs:
		return fmt.Errorf("a cap of %g CPUs; want %g to %d", c.CPUs, MinCPUs, MaxCPUs)
	case c.Credit < 0 || c.Credit > MaxCredit:
		return fmt.Errorf("a credit of %v; want 0s to %v", c.Credit, MaxCredit)
	case c.Widest < 0 || c.Widest > MaxCPUs:
		return fmt.Errorf("%d CPUs at the widest; want 0 to %d", c.Widest, MaxCPUs)
	case c.Widest > 0 && float64(c.Widest) < c.CPUs:
		return fmt.Errorf("%d CPUs at the widest is less than the cap of %g; give at least %d, or 0 for every CPU",
			c.Widest, c.CPUs, int(math.Ceil(c.CPUs)))
	}
	return nil
}

// Stats are what the scheduler has counted for a capped cgroup since its cap was set. They are the scheduler's own
// counts; package probe measures the width independently.
type Stats struct {
	// Now is how many of its threads run, Widest the most that ran at one moment.
	Now, Widest int
	// Credit is the CPU time saved.
	Credit time.Duration
	// AtCap is for how long as many threads ran as the cap allowed. Waited is for how long at least one more waited then.
	AtCap, Waited time.Duration
	// Cut counts slices that the scheduler ended early because the cap fell below what ran.
	Cut uint64
	// Joined counts threads that began to run above the cap, for one slice at most: they ran when the scheduler was
	// attached, or when they joined the cgroup.
	Joined uint64
	// Faults counts what must not happen, by name: each is a defect of the scheduler, or a bound that was passed. They are of
	// the whole scheduler since it was loaded. Nil: a scheduler that an older program loaded does not count them.
	Faults map[string]uint64
}

// Options of Load.
type Options struct {
	// PinDir is a folder in a BPF file system in which the maps are pinned; "" means none. Load makes it. Close removes
	// what Load pinned. The link is never pinned: when the loader dies, the kernel's own scheduler is back.
	PinDir string
	// Cgroups is how many cgroups may have a cap, or a cpu.max of their own, at one time. 0 means DefaultCgroups.
	Cgroups int
	// CgroupRoot is where cgroup v2 is mounted; "" means /sys/fs/cgroup.
	CgroupRoot string
}

// Errors of methods.
var (
	// ErrNoCap means that the cgroup has no cap.
	ErrNoCap = errors.New("the cgroup has no cap")
	// ErrFull means that Options.Cgroups cgroups have caps already.
	ErrFull = errors.New("no room for another cap")
	// ErrRestart means that a CPU went offline or came online, at which the kernel ends the scheduler. Load it again.
	ErrRestart = errors.New("the set of CPUs has changed; load the scheduler again")
	// ErrNotEnabled means that the kernel does not run this scheduler.
	ErrNotEnabled = errors.New("the scheduler is not enabled")
)

// Unavailable says why this kernel cannot run the scheduler, and the way out.
type Unavailable struct {
	// Why is the cause: "the kernel has no sched_ext".
	Why string
	// Err is the kernel's error; it may be nil.
	Err error
	// Way is the way out: "use a cpuset instead: --via cpuset".
	Way string
}

func (u *Unavailable) Error() string {
	if u.Err != nil {
		return fmt.Sprintf("%s: %v; %s", u.Why, u.Err, u.Way)
	}
	return u.Why + "; " + u.Way
}

func (u *Unavailable) Unwrap() error { return u.Err }
