package diagnose

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/requests"
	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/stats"
)

// Cause is the key of a cause.
type Cause string

// The causes. An Explanation names the first; the others follow, ranked.
const (
	// Burst: wider than the limit for short times, mean use below 80 % of it, wanted back below the limit in
	// between.
	Burst Cause = "burst"
	// Pool: one pool spends the quota, and another one is stopped for it.
	Pool Cause = "pool"
	// Shortage: the mean demand is above the limit: 95 % of it used, or wanted above it for 3 periods in a
	// row.
	Shortage Cause = "shortage"
	// TinyLimit: as Burst, but never wider than ceil(limit): a request's work is longer than a period's
	// quota.
	TinyLimit Cause = "tiny-limit"
	// Ancestor: the quota of a pod or slice, or a sibling that spent it.
	Ancestor Cause = "ancestor"
	// Inside: the quota of a cgroup in the container.
	Inside Cause = "inside"
	// Realtime: the kernel's limit for real-time threads.
	Realtime Cause = "realtime"
	// SliceWaste: throttled although far below the quota (kernels from 4.18 to 5.3 without the fix of 5.4).
	SliceWaste Cause = "slice-waste"
	// Debt: long kernel work past the quota, then parked for several periods (kernels since 6.18).
	Debt Cause = "debt"
	// Neighbours: not throttled, but runnable and not running.
	Neighbours Cause = "neighbours"
	// Cpuset: the cpuset has fewer CPUs than the threads want.
	Cpuset Cause = "cpuset"
	// Scheduler: the loaded sched_ext scheduler ignores limits.
	Scheduler Cause = "scheduler"
	// None: no cause applies.
	None Cause = "none"
)

// OwnQuota reports whether the container's own quota stops it, for what its threads do.
func (c Cause) OwnQuota() bool {
	switch c {
	case Burst, Pool, Shortage, TinyLimit:
		return true
	}
	return false
}

// ByQuota reports whether a quota stops the container: its own, one above or below it, or the kernel's for real-time threads.
func (c Cause) ByQuota() bool {
	switch c {
	case Ancestor, Inside, Realtime, SliceWaste, Debt:
		return true
	}
	return c.OwnQuota()
}

// Reason is why a runnable thread waited.
type Reason string

// Reasons of waiting, in the order of display.
const (
	OwnQuota      Reason = "own-quota"
	AncestorQuota Reason = "ancestor-quota"
	OwnThreads    Reason = "own-threads" // another thread of the container held the CPU
	ByNeighbours  Reason = "neighbours"  // another container or process held the CPU
	HostSystem    Reason = "host-system" // tasks of the root cgroup and kernel threads held the CPU
	Steal         Reason = "steal"       // the hypervisor held the CPU
	IdleUnused    Reason = "idle-unused" // an allowed CPU was idle meanwhile
	// RealtimeLimit: a real-time thread, which comes before all others, did not run: the kernel's limit for such threads held it
	// back, or another real-time thread did.
	RealtimeLimit Reason = "realtime-limit"
)

// Explanation is the analysis of one container over one recording. Every view of `explain` shows it. A nil
// pointer means not measured.
type Explanation struct {
	Target string
	Start  time.Time
	Window time.Duration
	// EndedEarly says how the target ended within the time to record; "": it did not.
	EndedEarly string
	// Verdict is one sentence with its evidence.
	Verdict string
	// Cause is the first of Causes; "": not decided. Causes are then those that are left, nil: any.
	Cause  Cause
	Causes []RankedCause
	// LimitCPUs is the effective limit. nil: there is none, or with LimitUnknown it was not measured.
	LimitCPUs    *float64
	LimitUnknown bool
	// Levels are the container's cgroup, its ancestors and the cgroups in it that have quotas, with their limits as they were
	// first; nil: not read. LimitChanges are those that changed meanwhile, one a cgroup: then no cause is decided.
	Levels       []recording.Level
	LimitChanges []recording.LimitChange
	// Periods and ThrottledPeriods are those of the binding level.
	Periods, ThrottledPeriods *uint64
	// Stopped is the wall time in which a quota held back at least one runnable thread.
	Stopped *time.Duration
	// StoppedIntervals counts the stopped intervals.
	StoppedIntervals *int
	// MeanWidth is the mean CPU use in CPUs.
	MeanWidth *float64
	// Width and Wanted are exact and weighted by time; means of samples where there are no events (LostEvents).
	// SampledWidth is width read every 10 ms, as in the article.
	Width, Wanted, SampledWidth []Bar
	Timeline                    []Row // the interval with the worst rows first; the number of rows is bounded
	// Overview has the whole recording in stretches of equal length, 240 at most, in the order of time; nil: not measured.
	Overview []Stretch
	// Pools has the pools that ran or waited, most CPU time first; nil: not measured. IdlePools are the others.
	Pools, IdlePools []PoolUse
	// Budgets are what processes say that they have in force to stay within the limit; nil: none says it. [Analysis] does not
	// set them.
	Budgets []Budget
	// Requests are those that clients outside sent; nil: not measured. [Analysis] does not set them.
	Requests *requests.Requests
	// CostOfWidth compares the CPU time per run wider than the limit and not; nil: too few runs of either.
	CostOfWidth *WidthCost
	// ClosedLoop says that clients wait for answers before they ask again; nil: they do not, or it cannot be told.
	ClosedLoop *ClosedLoop
	// Startup says that it was stopped while it started; nil: it was not, or it cannot be told.
	Startup *Startup
	// Waiting has the thread time of all pools by reason. A thread's waiting counts once. A missing reason
	// was not measured.
	Waiting map[Reason]time.Duration
	// Neighbours has the owners that the container waited for, longest first, then others that ran on its
	// CPUs; nil: not measured.
	Neighbours []NeighbourUse
	// RunnablePerCore is the mean of wanted while any thread wants a CPU, over the reserved CPUs (limit, or
	// allowed CPUs); nil: neither is known.
	RunnablePerCore *float64
	// LostEvents is the number of events that the recording had no room for; nil: it has no events.
	LostEvents  *uint64
	Checks      []Check // nil: there is nothing to check
	NotMeasured []string
	// OwnRemedies are what somebody without rights on the host can do; nil: it was not asked. [Analysis] does not set them.
	OwnRemedies []string
}

// RankedCause is one cause with its cost and its evidence.
type RankedCause struct {
	Cause    Cause
	Stopped  *time.Duration // stopped time that the cause accounts for: wall time; nil: nothing was stopped for it
	Wall     *time.Duration // what it cost: Stopped, or else the time in which at least one thread waited; nil: not measured
	Waited   *time.Duration // thread time of that, each waiting thread counted; nil: not told apart
	Evidence string
	// Guilty names what spent the quota or held the CPUs: pools, the cgroup beside the container, or another
	// program; nil: nothing can be named.
	Guilty []string
	// Suffers names the pool that is stopped for the guilty ones; "": all of the container, or the guilty itself.
	Suffers string
}

// Bar is the time with so many CPUs in use, or so many threads wanting one.
type Bar struct {
	CPUs int
	Time time.Duration
}

// Row is one period of the timeline.
type Row struct {
	Start     time.Duration // since Explanation.Start
	Length    time.Duration
	Throttled bool
	Cells     []Cell
}

// Cell is one cell of the timeline, or of the overview.
type Cell struct {
	MeanWidth float64
	MostWidth int
	Stopped   float64 // share of the cell, 0 to 1; without meaning if Explanation.Stopped is nil
	Wanted    float64 // mean; without meaning if Explanation.Wanted is nil
}

// PoolUse is the use of one thread pool.
type PoolUse struct {
	Name    string
	Process string // the name of its process
	Threads int    // threads that ran or waited
	// Working is how many of them did workingShare of the pool's work or more: a program may give others its name.
	// Main says that the pool has no thread but main threads of processes.
	Working int
	Main    bool
	// CPU time overall, and in throttled periods; nil: there are no periods.
	CPU          time.Duration
	CPUThrottled *time.Duration
	Widest       int
	// Size is how many threads it had at once at most, also such that did nothing. Runnable is how many of them ran or were runnable
	// at once at most, and RunnableP99 how many in 99 % of the time.
	Size, Runnable, RunnableP99 int
	// The entry of the pool table; empty: unknown.
	Key, Library, Setting, Advice string
	// DefaultCPUs is for how many CPUs, at least, the library's default is a pool of that Size; nil: for none, or it is no matter of
	// CPUs.
	DefaultCPUs *int
	// Class is that of the tasks that its threads ran last, as their process says: "io", "app" or "background"; "": it says
	// none, or several.
	Class string
	// OnIOThread says that application work ran on threads made for I/O.
	OnIOThread bool
	// Delay is the time from wake-up to running, Response from wake-up to the next sleep; nil: no wake-ups.
	Delay, Response *Quantiles
	Waiting         map[Reason]time.Duration // as in Explanation
}

// Budget is what the project's library in a process has in force, as the process says.
type Budget struct {
	TGID    uint32
	Process string
	threadpool.Budget
}

// Quantiles of a distribution of times.
type Quantiles struct {
	Count              int
	P50, P90, P99, Max time.Duration
	// Lengths are all of it, in few bins.
	Lengths []stats.Length
}

// WidthCost is the CPU time per run (from wake-up to sleep) by width.
type WidthCost struct {
	Narrow, Wide         time.Duration // mean CPU time per run, at or below the limit and above it
	NarrowRuns, WideRuns int
}

// NeighbourUse is another owner of the CPUs that the container waited for.
type NeighbourUse struct {
	Name string
	// Waited is the thread time for which the container waited while this owner held the CPU.
	Waited time.Duration
	CPU    time.Duration // on the CPUs that the container may use
	// Client says that it wakes the container's threads and runs by turns with them, Recorder that it is unthrottle, which made the
	// recording: without it there would be none of this waiting.
	Client, Recorder bool
	// Throttled says that the neighbour is throttled itself, Toggling that it swings between many CPUs and
	// none; nil: unknown.
	Throttled, Toggling *bool
}

// Check compares two ways to measure the same figure.
type Check struct {
	Name       string
	ErrorRatio *float64 // nil: not judged; Note says why
	OK         bool     // without meaning if not judged
	Note       string
}
