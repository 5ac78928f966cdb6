package recording

import (
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/topology"
)

// Version of the format that this package writes. It reads older versions and refuses newer ones with a *VersionError.
const Version = 1

// Header is the state when a recording began.
type Header struct {
	Version int       `json:"version"`
	Created time.Time `json:"created"` // wall clock at StartNS
	// StartNS is CLOCK_MONOTONIC, in nanoseconds: Event.AtNS counts from here.
	StartNS uint64 `json:"start_ns"`
	Host    Host   `json:"host"`
	Target  Target `json:"target"`
	// Levels are the container's cgroup and its ancestors up to the root, its own first. SubLevels are cgroups below
	// the container that have their own quota.
	Levels    []Level `json:"levels"`
	SubLevels []Level `json:"sub_levels,omitempty"`
	// CPUsAllowed are the online CPUs of its cpuset.
	CPUsAllowed cpuset.CPUSet `json:"-"`
	// Threads are all threads of the container at the start.
	Threads   []Thread  `json:"threads"`
	Processes []Process `json:"processes"`
	Features  Features  `json:"features"`
	// Recorder is the process that recorded (TGID of its Define); 0: not known, or a recording before 2026-11-29.
	Recorder uint32 `json:"recorder,omitempty"`
	// NotMeasured says what could not be measured and why, "steal: ...".
	NotMeasured []string `json:"not_measured,omitempty"`
}

// Host is the machine and its kernel.
type Host struct {
	Kernel string        `json:"kernel"` // uname -r
	CPUs   cpuset.CPUSet `json:"-"`      // online
	// Machine is the topology; nil means not read.
	Machine *topology.Machine `json:"-"`
	HZ      *int              `json:"hz,omitempty"` // nil means not known
	// SliceNS is sched_cfs_bandwidth_slice_us; nil means not known.
	SliceNS *int64 `json:"slice_ns,omitempty"`
	// SchedExt is the name of a loaded sched_ext scheduler, "" for none.
	SchedExt string `json:"sched_ext,omitempty"`
}

// Target is the recorded container.
type Target struct {
	Path string `json:"path"` // cgroup path of the cpu controller
	ID   uint64 `json:"id"`   // cgroup id: inode of its folder
	Name string `json:"name"` // readable name
	// AgeNS is for how long its oldest process had run when the recording began, to 10 ms; nil means not known.
	AgeNS *int64 `json:"age_ns,omitempty"`
	// Frozen says that the freezer held all of it (docker pause) when the recording began.
	Frozen bool `json:"frozen,omitempty"`
	// Namespace, Pod and Container are Kubernetes' names; "" means none, not known, or a recording before 2026-11-24.
	Namespace string `json:"namespace,omitempty"`
	Pod       string `json:"pod,omitempty"`
	Container string `json:"container,omitempty"`
}

// Level is one cgroup with its settings of the cpu controller.
type Level struct {
	Path string `json:"path"`
	ID   uint64 `json:"id"`
	// QuotaNS per PeriodNS; nil means no quota at this level.
	QuotaNS  *int64 `json:"quota_ns,omitempty"`
	PeriodNS int64  `json:"period_ns,omitempty"`
	BurstNS  int64  `json:"burst_ns,omitempty"`
	// Weight as cpu.weight (1 to 10,000, default 100); v1's shares are converted.
	Weight int `json:"weight,omitempty"`
	// RTRuntimeNS is how long its real-time threads may run in a period of RTPeriodNS (v1 with CONFIG_RT_GROUP_SCHED); nil
	// means no such limit, or that it has no real-time threads.
	RTRuntimeNS *int64 `json:"rt_runtime_ns,omitempty"`
	RTPeriodNS  int64  `json:"rt_period_ns,omitempty"`
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
	// Realtime is its policy if that comes before all others: "fifo", "rr" or "deadline"; "": another one, or not read.
	Realtime string `json:"realtime,omitempty"`
}

// State of a thread.
type State uint8

// States of a thread at the start of a recording.
const (
	Sleeping State = iota
	Runnable
	Running
)

// Process describes a process of the container.
type Process struct {
	TGID      uint32   `json:"tgid"`
	Comm      string   `json:"comm,omitempty"` // of its first thread, raw
	Exe       string   `json:"exe,omitempty"`
	Cmdline   []string `json:"cmdline,omitempty"`
	Libraries []string `json:"libraries,omitempty"`
	// Unnamed is the name of the file whose code most of the threads named as the program were started with, by their CPU time;
	// "": not known, or there are none.
	Unnamed string `json:"unnamed,omitempty"`
	// Go is the version of Go that built the executable; "" unless known to be a Go program.
	Go string `json:"go,omitempty"`
	// Holds are libraries known to be linked into the executable, such as "rayon".
	Holds []string `json:"holds,omitempty"`
	// Budget is what the project's library in it said that it had in force; nil: nothing.
	Budget *Budget `json:"budget,omitempty"`
}

// Budget is what a process says that it has in force to stay within its limit: a claim.
type Budget struct {
	LimitCPUs *float64 `json:"limit_cpus,omitempty"` // nil: it knows of none
	// Paced says that work of the classes app and background holds back in time.
	Paced bool `json:"paced"`
	// Permits are how many tasks of a class run at once; 0: as many as come.
	Permits map[string]int `json:"permits,omitempty"`
	// GOMAXPROCS is what it set; 0: nothing.
	GOMAXPROCS int `json:"gomaxprocs,omitempty"`
}

// Features says what the kernel lets the probe see.
type Features struct {
	// Mark is the source of the throttled mark: MarkTask, MarkQueue, or "" for none.
	Mark string `json:"mark"`
	// Periods reports that the period timer's expiries are in the events.
	Periods bool `json:"periods"`
	// Migrations reports that moves of waiting threads between CPUs are in the events.
	Migrations bool `json:"migrations"`
	// Sockets reports that the reads and writes of sockets are in the events. Kernels since Linux 6.3 have the
	// tracepoints (sk_data_ready, sock_recv_length, sock_send_length).
	Sockets bool `json:"sockets,omitempty"`
	// SlicesExpire reports that a CPU loses the unused rest of its slice of a quota at the period's end. The
	// kernel's own types show it (seed 001). nil means not read.
	SlicesExpire *bool `json:"slices_expire,omitempty"`
}

// The sources of the throttled mark.
const (
	MarkTask  = "task"   // task_struct.throttled, Linux 6.18 and later
	MarkQueue = "cfs_rq" // cfs_rq.throttle_count of the thread's run queue
)

// Kind of an event.
type Kind uint8

// Kinds of events, and the fields that each uses, except AtNS and Kind, which all use.
const (
	// Switch means that CPU gave up Prev (for its state see Flags) and took Next. A side that is a thread of the
	// container has Thread or NextThread set; otherwise Owner or NextOwner names the owner. At AtNS 0 the recording has
	// one Switch per CPU that no thread of the container held. Its Owner and NextOwner are equal: the holder when the
	// recording began.
	Switch Kind = iota + 1
	// Wakeup means that Thread became runnable on CPU. Waker (a thread of the container) or else Owner woke it.
	Wakeup
	// Migrate means that the waiting Thread was moved to CPU.
	Migrate
	// Exit means that Thread ended.
	Exit
	// Name means that Thread (of TGID) is called Text from now on. It also introduces a thread that is not in the
	// header.
	Name
	// Enter and Leave mean that Thread (of TGID, called Text) moved into the container or one of its cgroups (Cgroup),
	// or out. A thread that Name or Enter introduces is asleep: a Wakeup follows if it wants a CPU.
	Enter
	Leave
	// Period means that the period timer of Cgroup expired; Period has its state before the refill.
	Period
	// Define means that Owner is of OwnerKind, called Text, with Cgroup (containers) or TGID (processes).
	Define
	// Lost means that Count events were lost since the last one on CPU.
	Lost
	// Hold means that the quota of Cgroup (0: not known) holds back the waiting Thread from now on: its run queue on
	// CPU was throttled while another thread ran.
	Hold
	// Release means that no quota holds Thread back from now on; it waits for a CPU.
	Release
	// Receive means that Thread read data from Socket. The data came from outside the container, and its first bytes
	// had been there for Count ns. Data that comes while other data waits has no event of its own.
	Receive
	// Send means that Thread has written to Socket after a Receive. Of writes within SendEveryNS only the first has an
	// event.
	Send
)

// SendEveryNS is the least time between two Send events of one socket after one Receive, in nanoseconds: a long
// response takes many writes.
const SendEveryNS = 100_000

// Flags of an event.
type Flags uint8

// Flags of Switch and Wakeup.
const (
	// PrevRunnable means that Prev was preempted or yielded: it still wants a CPU.
	PrevRunnable Flags = 1 << iota
	// Throttled means that a quota holds Prev (Switch) or Thread (Wakeup) back from now on, until Release or until it
	// runs again. Cgroup has that quota; 0 means not known.
	Throttled
	// New means that the thread was just created (Wakeup).
	New
	// InKernel means that Prev was switched out inside a system call or fault rather than from user mode, where known.
	InKernel
)

// Event is one thing that happened. Kind says which fields count.
type Event struct {
	AtNS       int64 // since Header.StartNS, never before the previous event's
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
	// Socket is the number of a connection within the recording, from 1: one that a client outside the container opened
	// to it, TCP or a Unix stream.
	Socket uint32
}

// PeriodState is a level's bandwidth as its period timer saw it, before the
// refill (do_sched_cfs_period_timer).
type PeriodState struct {
	QuotaNS     int64
	LeftNS      int64 // cfs_bandwidth.runtime: left in the pool, without what CPUs hold
	BurstNS     int64
	Periods     uint32 // nr_periods
	Throttled   uint32 // nr_throttled
	StoppedCPUs uint32 // run queues on the throttled list
}

// OwnerKind is the kind of holder of a CPU that no thread of the container holds.
type OwnerKind uint8

// Kinds of owners. The first three have fixed numbers in Event.Owner.
const (
	OwnerIdle   OwnerKind = iota // the CPU is idle
	OwnerKernel                  // kernel threads, all of them
	OwnerRoot                    // tasks of the root cgroup and of autogroups, together
	OwnerContainer
	OwnerProcess // a process outside any container
)

// Fixed numbers of owners; Define assigns others, from FirstOwner up.
const (
	Idle uint32 = iota
	Kernel
	Root
	FirstOwner
)

// Footer has what only the end of a recording shows.
type Footer struct {
	EndNS int64 `json:"end_ns"` // since Header.StartNS
	// StealNS per CPU over the recording (/proc/stat, exact to a tick); nil means not known.
	StealNS map[int]int64 `json:"steal_ns,omitempty"`
	// UsageNS is the cgroup's own usage counter over the recording; nil means not measured.
	UsageNS *int64 `json:"usage_ns,omitempty"`
	// Counters of the container's own quota over the recording; nil means no quota or not measured.
	Periods          *uint64 `json:"periods,omitempty"`
	ThrottledPeriods *uint64 `json:"throttled_periods,omitempty"`
	ThrottledNS      *int64  `json:"throttled_ns,omitempty"`
	// WidthNS and WantedNS are the probe's own histograms over the same time, by CPUs or threads; nil means not
	// measured.
	WidthNS  []int64 `json:"width_ns,omitempty"`
	WantedNS []int64 `json:"wanted_ns,omitempty"`
	// LateNS is how far these, times their levels, may be off. It grows when a hypervisor takes CPUs away between their
	// look at the clock and their counting. The events' times are right.
	LateNS int64 `json:"late_ns,omitempty"`
	// StoppedNS is how long a quota held back at least one of its threads, in StoppedIntervals intervals, as the probe
	// counted; nil means not measured.
	StoppedNS        *int64  `json:"stopped_ns,omitempty"`
	StoppedIntervals *uint64 `json:"stopped_spells,omitempty"`
	// OnCPUNS is per CPU the time that the container held it, summed in the kernel; nil means not measured.
	OnCPUNS map[int]int64 `json:"on_cpu_ns,omitempty"`
	// Threads' user and kernel time, exact to a tick.
	Threads []ThreadTime `json:"threads,omitempty"`
	// LostEvents counts events that the probe could not store. Above 0, every figure may be off.
	LostEvents uint64 `json:"lost_events"`
	// UnseenSwitches counts switches without an event (Linux 6.18 left out one in a thousand). The next switch on the
	// same CPU corrected each. Until then the recording shows the CPU with its previous holder.
	UnseenSwitches uint64 `json:"unseen_switches,omitempty"`
	// Troubles are other faults of the probe, with their counts: figures may be off. None is expected.
	Troubles []string `json:"troubles,omitempty"`
	// Neighbours are other containers that ran on the CPUs allowed, with their own counters.
	Neighbours []Neighbour `json:"neighbours,omitempty"`
	// Frozen is Header.Target.Frozen at the end.
	Frozen bool `json:"frozen,omitempty"`
	// Levels are those of Header.Levels and Header.SubLevels as they were when the recording ended, without their weights;
	// nil means not read, or a recording before 2026-11-27.
	Levels []Level `json:"levels,omitempty"`
	// Processes began during the recording and lived long enough to be read. Recordings before 2026-11-23 have none.
	Processes []Process `json:"processes,omitempty"`
}

// ThreadTime is a thread's CPU time over the recording.
type ThreadTime struct {
	TID      uint32 `json:"tid"`
	UserNS   int64  `json:"user_ns"`
	KernelNS int64  `json:"kernel_ns"`
}

// Neighbour is another container with its own counters over the recording.
type Neighbour struct {
	Owner uint32 `json:"owner"` // its number in events
	Name  string `json:"name"`
	Path  string `json:"path"`
	// Periods and ThrottledPeriods of its own quota; nil means no quota or not measured.
	Periods          *uint64 `json:"periods,omitempty"`
	ThrottledPeriods *uint64 `json:"throttled_periods,omitempty"`
}

// Recording is a whole recording in memory.
type Recording struct {
	Header Header
	Events []Event
	Footer Footer
	// Truncated reports a cut: Footer then has only EndNS, the last event's time.
	Truncated bool
}
