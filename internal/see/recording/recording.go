package recording

import (
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/topology"
)

// Version of the format that this package writes. Older ones are read, newer
// ones refused with an error that says so.
const Version = 1

// Header is what was in force when a recording began.
type Header struct {
	Version int       `json:"version"`
	Created time.Time `json:"created"` // wall clock at StartNS
	// StartNS is CLOCK_MONOTONIC, in nanoseconds: Event.AtNS counts from here.
	StartNS uint64 `json:"start_ns"`
	Host    Host   `json:"host"`
	Target  Target `json:"target"`
	// Levels are the container's cgroup and its ancestors up to the root, its own
	// first; SubLevels are cgroups below the container that have a quota of their own.
	Levels    []Level `json:"levels"`
	SubLevels []Level `json:"sub_levels,omitempty"`
	// CPUsAllowed are the online CPUs of its cpuset.
	CPUsAllowed cpuset.CPUSet `json:"-"`
	// Threads are all threads of the container at the start.
	Threads   []Thread  `json:"threads"`
	Processes []Process `json:"processes"`
	Features  Features  `json:"features"`
	// NotMeasured says what could not be had and why, "steal: ...".
	NotMeasured []string `json:"not_measured,omitempty"`
}

// Host is the machine and its kernel.
type Host struct {
	Kernel string        `json:"kernel"` // uname -r
	CPUs   cpuset.CPUSet `json:"-"`      // online
	// Machine is the topology; nil: not read.
	Machine *topology.Machine `json:"-"`
	HZ      *int              `json:"hz,omitempty"` // nil: not known
	// SliceNS is sched_cfs_bandwidth_slice_us; nil: not known.
	SliceNS *int64 `json:"slice_ns,omitempty"`
	// SchedExt is the name of a loaded sched_ext scheduler, "" for none.
	SchedExt string `json:"sched_ext,omitempty"`
}

// Target is the container recorded.
type Target struct {
	Path string `json:"path"` // cgroup path of the cpu controller
	ID   uint64 `json:"id"`   // cgroup id: inode of its folder
	Name string `json:"name"` // what people call it
}

// Level is one cgroup with what the cpu controller has for it.
type Level struct {
	Path string `json:"path"`
	ID   uint64 `json:"id"`
	// QuotaNS per PeriodNS; nil: no quota at this level.
	QuotaNS  *int64 `json:"quota_ns,omitempty"`
	PeriodNS int64  `json:"period_ns,omitempty"`
	BurstNS  int64  `json:"burst_ns,omitempty"`
	// Weight as cpu.weight (1 to 10,000, usual 100); v1's shares are converted.
	Weight int `json:"weight,omitempty"`
}

// Thread is a thread of the container and its state when the recording began.
type Thread struct {
	TID     uint32 `json:"tid"`
	TGID    uint32 `json:"tgid"`
	Comm    string `json:"comm"`   // as the kernel has it, raw
	Cgroup  uint64 `json:"cgroup"` // id of its own cgroup, the container's or one below
	State   State  `json:"state"`
	CPU     int32  `json:"cpu"` // where it runs or last ran
	Nice    int8   `json:"nice,omitempty"`
	Allowed string `json:"allowed,omitempty"` // its own affinity, a CPU list
}

// State of a thread.
type State uint8

// States of a thread at the start of a recording.
const (
	Sleeping State = iota
	Runnable
	Running
)

// Process is what is known of a process of the container.
type Process struct {
	TGID      uint32   `json:"tgid"`
	Comm      string   `json:"comm,omitempty"` // of its first thread, raw
	Exe       string   `json:"exe,omitempty"`
	Cmdline   []string `json:"cmdline,omitempty"`
	Libraries []string `json:"libraries,omitempty"`
	// Go is the version of Go that built the executable, "" if that is not known to be a Go program.
	Go string `json:"go,omitempty"`
	// Holds are libraries known to be linked into the executable, such as "rayon".
	Holds []string `json:"holds,omitempty"`
}

// Features says what the kernel let us see.
type Features struct {
	// Mark is where throttled threads are told from: MarkTask, MarkQueue or "" (not at all).
	Mark string `json:"mark"`
	// Periods: the period timer's expiries are in the events.
	Periods bool `json:"periods"`
	// Migrations: moves of waiting threads between CPUs are in the events.
	Migrations bool `json:"migrations"`
	// SlicesExpire: what a CPU has taken of a quota and not used by the period's end is lost, by the kernel's own types
	// (seed 001); nil: they were not read.
	SlicesExpire *bool `json:"slices_expire,omitempty"`
}

// Where the throttled mark comes from.
const (
	MarkTask  = "task"   // task_struct.throttled, Linux 6.18 and later
	MarkQueue = "cfs_rq" // cfs_rq.throttle_count of the thread's run queue
)

// Kind of an event.
type Kind uint8

// Kinds of events, and which fields each uses beside AtNS and Kind.
const (
	// Switch: CPU gave up Prev (State after it: see Flags) and took Next. A side that is a thread of the container has
	// Thread or NextThread set; else Owner or NextOwner says who it is. At AtNS 0 there is one per CPU that no thread
	// of the container held, with Owner and NextOwner alike: who held it when the recording began.
	Switch Kind = iota + 1
	// Wakeup: Thread became runnable on CPU, woken by Waker (a thread of the container) or else by Owner.
	Wakeup
	// Migrate: the waiting Thread was moved to CPU.
	Migrate
	// Exit: Thread ended.
	Exit
	// Name: Thread (of TGID) is called Text, from now on; also how a thread not in the header is introduced.
	Name
	// Enter and Leave: Thread (of TGID, called Text) moved into the container or one of its cgroups (Cgroup), or out.
	// A thread that Name or Enter introduces is asleep: a Wakeup follows if it wants a CPU.
	Enter
	Leave
	// Period: the period timer of Cgroup expired; Period has its state before the refill.
	Period
	// Define: Owner is of OwnerKind, called Text, with Cgroup (containers) or TGID (processes).
	Define
	// Lost: Count events were lost since the last one on CPU.
	Lost
	// Hold: the waiting Thread is held back by the quota of Cgroup (0: not known) from now on: its run queue on CPU was
	// throttled while another thread ran.
	Hold
	// Release: no quota holds Thread back any longer; it waits for a CPU.
	Release
)

// Flags of an event.
type Flags uint8

// Flags of Switch and Wakeup.
const (
	// PrevRunnable: Prev was preempted or yielded: it still wants a CPU.
	PrevRunnable Flags = 1 << iota
	// Throttled: Prev (Switch) or Thread (Wakeup) is held back by a quota from now on, until Release or until it runs
	// again. Cgroup says whose quota, 0: not known.
	Throttled
	// New: the thread was just created (Wakeup).
	New
	// InKernel: Prev was switched out inside a system call or fault rather than from user mode, where known.
	InKernel
)

// Event is one thing that happened. Which fields count depends on Kind.
type Event struct {
	AtNS       int64 // since Header.StartNS, never less than the event before
	Kind       Kind
	Flags      Flags
	CPU        int32
	Thread     uint32 // tid of a thread of the container; 0: none
	NextThread uint32
	Owner      uint32 // number of an owner, see Define; the fixed ones below
	NextOwner  uint32
	Waker      uint32 // tid of a thread of the container; 0: Owner woke it
	TGID       uint32
	Cgroup     uint64
	Count      uint64
	OwnerKind  OwnerKind
	Text       string
	Period     PeriodState
}

// PeriodState is a level's bandwidth as its period timer saw it, before the
// refill (do_sched_cfs_period_timer).
type PeriodState struct {
	QuotaNS     int64
	LeftNS      int64 // cfs_bandwidth.runtime: left in the pool, not counting what CPUs hold
	BurstNS     int64
	Periods     uint32 // nr_periods
	Throttled   uint32 // nr_throttled
	StoppedCPUs uint32 // run queues on the throttled list
}

// OwnerKind says what holds a CPU that no thread of the container holds.
type OwnerKind uint8

// Kinds of owners. The first three have fixed numbers in Event.Owner.
const (
	OwnerIdle   OwnerKind = iota // nobody: the CPU idles
	OwnerKernel                  // kernel threads, all of them
	OwnerRoot                    // tasks of the root cgroup and of autogroups that were not told apart further
	OwnerContainer
	OwnerProcess // a process outside any container
)

// Fixed numbers of owners; others are given by Define, from FirstOwner up.
const (
	Idle uint32 = iota
	Kernel
	Root
	FirstOwner
)

// Footer is what only the end of a recording can tell.
type Footer struct {
	EndNS int64 `json:"end_ns"` // since Header.StartNS
	// StealNS per CPU over the recording (/proc/stat, exact to a tick); nil: not known.
	StealNS map[int]int64 `json:"steal_ns,omitempty"`
	// UsageNS is the cgroup's own usage counter over the recording; nil: not measured.
	UsageNS *int64 `json:"usage_ns,omitempty"`
	// Counters of the container's own quota over the recording; nil: no quota or not measured.
	Periods          *uint64 `json:"periods,omitempty"`
	ThrottledPeriods *uint64 `json:"throttled_periods,omitempty"`
	ThrottledNS      *int64  `json:"throttled_ns,omitempty"`
	// WidthNS and WantedNS are the probe's own histograms over the same time, by CPUs or threads; nil: not measured.
	WidthNS  []int64 `json:"width_ns,omitempty"`
	WantedNS []int64 `json:"wanted_ns,omitempty"`
	// LateNS is how far these, times their levels, may be off: a hypervisor took CPUs away between their look at the clock
	// and their counting. The events' times are right.
	LateNS int64 `json:"late_ns,omitempty"`
	// StoppedNS is how long at least one of its threads was held back by a quota, in StoppedSpells spells, as the probe
	// counted it; nil: not measured.
	StoppedNS     *int64  `json:"stopped_ns,omitempty"`
	StoppedSpells *uint64 `json:"stopped_spells,omitempty"`
	// OnCPUNS is per CPU the time that the container held it, summed in the kernel; nil: not measured.
	OnCPUNS map[int]int64 `json:"on_cpu_ns,omitempty"`
	// Threads' user and kernel time, exact to a tick.
	Threads []ThreadTime `json:"threads,omitempty"`
	// LostEvents were told by the probe and never seen; not 0: every figure may be off.
	LostEvents uint64 `json:"lost_events"`
	// UnseenSwitches the kernel made without telling (Linux 6.18 was seen to leave out one in a thousand). Each was put
	// right at the next switch on its CPU; until then the CPU is told to have stayed with its holder.
	UnseenSwitches uint64 `json:"unseen_switches,omitempty"`
	// Troubles are what else went wrong in the probe, with how often: figures may be off. None is expected.
	Troubles []string `json:"troubles,omitempty"`
	// Neighbours are other containers that ran on the CPUs allowed, with what their own counters say.
	Neighbours []Neighbour `json:"neighbours,omitempty"`
}

// ThreadTime is what a thread used over the recording.
type ThreadTime struct {
	TID      uint32 `json:"tid"`
	UserNS   int64  `json:"user_ns"`
	KernelNS int64  `json:"kernel_ns"`
}

// Neighbour is another container as its own counters saw the time.
type Neighbour struct {
	Owner uint32 `json:"owner"` // its number in events
	Name  string `json:"name"`
	Path  string `json:"path"`
	// Periods and ThrottledPeriods of its own quota; nil: no quota or not measured.
	Periods          *uint64 `json:"periods,omitempty"`
	ThrottledPeriods *uint64 `json:"throttled_periods,omitempty"`
}

// Recording is a whole one in memory.
type Recording struct {
	Header Header
	Events []Event
	Footer Footer
	// Truncated: it was cut off; Footer then holds only EndNS, the last event's time.
	Truncated bool
}
