package sampled

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// Target is what is known of a container before the first sample.
type Target struct {
	Name, Path, Kernel string
	Start              time.Time
	// Levels are its cgroup and the ancestors, nearest first, with their limits.
	Levels []recording.Level
	// Hidden says that there may be quotas above Levels, or that none of them could be read.
	Hidden bool
	// CPUsAllowed and CPUsOnline count CPUs; 0: not known.
	CPUsAllowed, CPUsOnline int
	// Process names a process, as its main thread is called; "": not known. PoolOf names the pool of a thread.
	Process func(pid uint32) string
	PoolOf  func(tid, pid uint32, comm string) string
	// Serves says whether a process was seen to hold a client's connection, or that is not known of it; nil: of none.
	Serves func(pid uint32) bool
}

// Sample is one reading. All counters count from some time before the first sample.
type Sample struct {
	// At is when it was read, since the first one.
	At time.Duration
	// Apart says that too much time went by since the sample before it to tell what happened in between.
	Apart bool
	// Counters are those of Target.Levels, in the same order; nil: not read.
	Counters []*Counters
	// Used is the CPU time of the container's cgroup; nil: not read, and the sum of its threads counts.
	Used *time.Duration
	// Threads are those of which something is another than in the sample before; all that there are, where it is Apart.
	Threads []Thread
}

// Counters are those of one cgroup's cpu.stat.
type Counters struct {
	Periods, ThrottledPeriods uint64
	Throttled                 time.Duration // a sum over CPUs
}

// Thread is what the kernel tells of one thread.
type Thread struct {
	PID, TID uint32
	Comm     string // raw
	// Ran and Waited are its times on CPUs and on run queues, Runs how often it got a CPU.
	Ran, Waited time.Duration
	Runs        uint64
}

// tick is the time between two timer interrupts, at which the kernel adds to a running thread's time: 1 to 10 ms by the kernel's
// build. To read which would cost more than the look.
const tick = 4 * time.Millisecond

// Bounds of an analysis.
const (
	// MaxThreads is how many threads are followed, MaxPools into how many pools they are put.
	MaxThreads = 4096
	MaxPools   = 256
	// keepFor is for how many periods of the longest quota a thread's waiting may reach back.
	keepFor = 4
	// maxPending bounds the samples of that time.
	maxPending = 1024
)
