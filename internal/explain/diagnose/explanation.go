package diagnose

import "time"

// Cause is a key of the causes that diagnosis tells apart.
type Cause string

// The causes. An Explanation names the first; the others follow, ranked.
const (
	// Burst: wider than the limit for short times, mean use below 80 % of it, wanted back below the limit in between.
	Burst Cause = "burst"
	// Pool: one pool spends the quota and another stands still for it.
	Pool Cause = "pool"
	// Shortage: the mean demand is above the limit: 95 % of it used, wanted never back to it for 3 periods in a row.
	Shortage Cause = "shortage"
	// TinyLimit: as Burst, but never wider than ceil(limit): a request's work is longer than a period's quota.
	TinyLimit Cause = "tiny-limit"
	// Ancestor: the quota of a pod or slice, or a sibling that spent it.
	Ancestor Cause = "ancestor"
	// SliceWaste: throttled although far below the quota (kernels of seed 001).
	SliceWaste Cause = "slice-waste"
	// Debt: long kernel work past the quota, then parked for several periods (kernels since 6.18).
	Debt Cause = "debt"
	// Neighbours: not throttled, but runnable and not running.
	Neighbours Cause = "neighbours"
	// Cpuset: its cpuset is smaller than what it wants.
	Cpuset Cause = "cpuset"
	// Scheduler: a sched_ext scheduler that ignores limits is loaded.
	Scheduler Cause = "scheduler"
	// None: nothing wrong.
	None Cause = "none"
)

// Reason is where a runnable thread's waiting went.
type Reason string

// Reasons of waiting, in the order in which they are printed.
const (
	OwnQuota      Reason = "own-quota"
	AncestorQuota Reason = "ancestor-quota"
	OwnThreads    Reason = "own-threads" // another thread of the container held the CPU
	ByNeighbours  Reason = "neighbours"  // another container or process held it
	HostSystem    Reason = "host-system" // root tasks and kernel threads held it
	Steal         Reason = "steal"       // the hypervisor held it
	IdleUnused    Reason = "idle-unused" // an allowed CPU was idle meanwhile
)

// Explanation is what happened to one container over one recording: the value
// behind every view of `explain`. Pointers are nil where a thing was not
// measured.
type Explanation struct {
	Target string
	Start  time.Time
	Window time.Duration
	// EndedEarly is how the target ended within the time that was to be looked at; "": it did not.
	EndedEarly string
	// Verdict is one sentence with its evidence.
	Verdict string
	// Cause is the first of Causes; "" with nil Causes: not decided.
	Cause  Cause
	Causes []RankedCause
	// LimitCPUs is the effective limit; nil: none, or, with LimitUnknown, not measured.
	LimitCPUs    *float64
	LimitUnknown bool
	// Periods and ThrottledPeriods are those of the level that binds.
	Periods, ThrottledPeriods *uint64
	// Stopped is wall time during which at least one runnable thread was held back by a quota.
	Stopped *time.Duration
	// StoppedSpells is how many times it was stopped.
	StoppedSpells *int
	// MeanWidth is the mean CPU use in CPUs.
	MeanWidth *float64
	// Width and Wanted are exact, time-weighted; SampledWidth is width read every 10 ms, as the article did.
	Width, Wanted, SampledWidth []Bar
	Strip                       []Row // worst stretch first, at most a bounded number of rows
	// Pools are those that ran or waited, most CPU time first; nil: not measured.
	Pools []PoolUse
	// CostOfWidth is CPU time per run when wider than the limit, against when not; nil: too few of either.
	CostOfWidth *WidthCost
	// Waiting by reason, all pools together, in thread seconds; a thread's waiting counts once. A reason that is not
	// there was not measured.
	Waiting map[Reason]time.Duration
	// Neighbours are those that it waited for, longest first, then others that ran on its CPUs; nil: not measured.
	Neighbours []NeighbourUse
	// RunnablePerCore is the mean of wanted while any thread is, over reserved CPUs (limit, or CPUs allowed); nil: neither is known.
	RunnablePerCore *float64
	// LostEvents had no room in the recording; nil: no events were recorded.
	LostEvents  *uint64
	Checks      []Check // nil: there is nothing to check
	NotMeasured []string
}

// RankedCause is one cause with what it cost and what shows it.
type RankedCause struct {
	Cause    Cause
	Stopped  *time.Duration // stopped time (or waiting, where nothing was throttled) that it accounts for
	Evidence string
}

// Bar is time spent with so many CPUs in use, or threads wanting one.
type Bar struct {
	CPUs int
	Time time.Duration
}

// Row of the strip: one period.
type Row struct {
	Start     time.Duration // since Explanation.Start
	Length    time.Duration
	Throttled bool
	Cells     []Cell
}

// Cell of the strip.
type Cell struct {
	MeanWidth float64
	MostWidth int
	Stopped   float64 // share of the cell, 0 to 1; means nothing where Explanation.Stopped is nil
	Wanted    float64 // mean; means nothing where Explanation.Wanted is nil
}

// PoolUse is what one thread pool did.
type PoolUse struct {
	Name    string
	Process string // its process's name
	Threads int    // that ran or waited
	// CPU time overall, and in periods that ended throttled; nil: there are no periods.
	CPU          time.Duration
	CPUThrottled *time.Duration
	Widest       int
	// What the pool table knows of it; empty: unknown.
	Library, Setting, Advice string
	// OnIOThread: application work was seen on threads made for I/O.
	OnIOThread bool
	// Delay is from wake-up to running, Response from wake-up to going back to sleep; nil: no wake-ups.
	Delay, Response *Quantiles
	Waiting         map[Reason]time.Duration // as of the Explanation
}

// Quantiles of a distribution of times.
type Quantiles struct {
	Count              int
	P50, P90, P99, Max time.Duration
}

// WidthCost is CPU time per run (from wake-up to sleep) by width.
type WidthCost struct {
	Narrow, Wide         time.Duration // mean CPU time per run, at or below the limit and above it
	NarrowRuns, WideRuns int
}

// NeighbourUse is who else held CPUs that the container waited for.
type NeighbourUse struct {
	Name string
	// Waited is thread time of the container that waited while this one held the CPU.
	Waited time.Duration
	CPU    time.Duration // that it used on the CPUs allowed
	// Throttled: it is throttled itself; Toggling: it swings between many CPUs and none; nil: not known.
	Throttled, Toggling *bool
}

// Check compares two ways to the same figure.
type Check struct {
	Name       string
	ErrorRatio *float64 // nil: not judged, Note says why
	OK         bool     // means nothing where not judged
	Note       string
}
