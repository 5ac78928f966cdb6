package scenario

import (
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/bandwidth"
)

// formatVersion is the format that Parse reads.
const formatVersion = 1

// Scenario is one experiment.
type Scenario struct {
	About    string        // its purpose, as free text
	Duration time.Duration // length of the run
	Host     Host
	// Cgroups, each after its parent.
	Cgroups   []Cgroup
	Workloads []Workload
}

// Host is the machine.
type Host struct {
	CPUs int
	// HZ is ticks per second; 0: continuous, so that a CPU notices a used-up silo at once.
	HZ int
	// SpreadTicks gives each CPU a tick phase of its own (skew_tick=1); else all tick together.
	SpreadTicks   bool
	CgroupVersion int // 1 or 2: decides which nested quotas the kernel refuses
	// Rules of the kernel's bandwidth control, with its constants.
	Rules bandwidth.Rules
	// ClockSkew is the most by which one CPU's clock is ahead of another's. It matters before 4.18.
	ClockSkew time.Duration
	// TimerSlack is how late a sleep ends (50 µs).
	TimerSlack time.Duration
	// BaseSlice is the fair scheduler's slice (base_slice_ns; before 6.6 the least time between preemptions).
	// 0: the kernel's, by number of CPUs.
	BaseSlice time.Duration
	// UnthrottleIPI is the delay after which a CPU other than the timer's is unthrottled, from 6.3 on (2 µs,
	// a guess: there is no published figure).
	UnthrottleIPI time.Duration
	// WakeCosts are 0 unless the file has them: machines differ tenfold.
	WakeCosts WakeCosts
	// LineOwn and LineOther are the CPU time of reading and writing a cache line of a service's shared data.
	// The same CPU wrote the line last, or another one.
	LineOwn, LineOther time.Duration
	// Topology says which CPUs share cores, caches and memory.
	Topology Topology
	// ColdCache is the extra CPU time of a thread's work after it moved to a CPU of another last-level cache.
	ColdCache time.Duration
	// Reserved CPUs belong to pinned cgroups, and workloads in the root cgroup do not use them
	// ([Scenario.CPUsOf] has the CPUs of every workload). Remedied sets it.
	Reserved cpuset.CPUSet
}

// WakeCosts are the CPU time of a sleep and a wake-up, which the thread that wakes uses beside its work. Long
// holds on an idle CPU if no thread woke up for 6 ms or longer beside the same cache. Short holds if one did
// 2.5 ms ago (0: as Long); before and after, the cost is less and more, in proportion. Busy holds on a busy
// CPU where a thread just woke up, and the cost is more later. Delay is no CPU time: it is how much later
// than its timer an idle CPU wakes up.
type WakeCosts struct {
	Long  time.Duration `json:"long_ns"`
	Short time.Duration `json:"short_ns"`
	Busy  time.Duration `json:"busy_ns"`
	Delay time.Duration `json:"delay_ns"`
}

// Cgroup is one cgroup of the scenario.
type Cgroup struct {
	Name   string
	Parent int // index in Scenario.Cgroups; -1: below the root
	Limit  bandwidth.Limit
	Weight int           // cpu.weight, 1 to 10000
	CPUs   cpuset.CPUSet // cpuset.cpus; empty: the parent's
	Mems   cpuset.CPUSet // cpuset.mems, memory nodes; empty: the parent's
	Remedy *Remedy       // nil: none
	// Width is the most CPUs in use at once, 0: any. Remedied sets it.
	Width int
	// Credit is the CPU time that the cgroup can save below Cap, which is its limit in CPUs; 0: none. While it
	// has some it may use Widest CPUs at once (0: any), without it Cap. Remedied sets them.
	Credit time.Duration
	Cap    float64
	Widest int
	// Alone says that only the cgroup and its descendants use its CPUs. Remedied sets it.
	Alone bool
}

// RemedyKind names a remedy of a throttled cgroup.
type RemedyKind string

// The remedies that a scenario can have. The commands of `unthrottle` apply them for real.
const (
	Pin    RemedyKind = "pin"    // exclusive CPUs, without the quotas of the cgroup and its ancestors
	Burst  RemedyKind = "burst"  // the same quota, with a burst
	Weight RemedyKind = "weight" // no quota, weight only
	Raise  RemedyKind = "raise"  // a larger quota
	Narrow RemedyKind = "narrow" // never more CPUs at once than the limit has
	Period RemedyKind = "period" // the same limit in another period
)

// Remedy of one cgroup.
type Remedy struct {
	Kind   RemedyKind
	CPUs   int           // of Pin
	Burst  time.Duration // of Burst, and of a Narrow that keeps its period (0: it does not)
	Factor float64       // of Raise
	Credit time.Duration // of Narrow: CPU time that it can save; 0: none
	Widest int           // of Narrow: CPUs at once while it has credit; 0: any
	Period time.Duration // of Period
}

// Kind of a workload.
type Kind string

// The kinds of workloads.
const (
	Burn      Kind = "burn"      // threads that never stop
	SleepRun  Kind = "sleep-run" // threads that sleep and run in turn
	Fib       Kind = "fib"       // fibtest: one thread per CPU, pinned; fast threads burn, slow threads run a little and sleep
	Sleeper   Kind = "sleeper"   // threads that sleep, and measure how long the sleep took
	Service   Kind = "service"   // requests that arrive whether or not earlier ones are done
	Neighbour Kind = "neighbour" // threads that burn for a while, all at once, and are then idle
	GC        Kind = "gc"        // threads that run all at once while a service waits
	JVM       Kind = "jvm"       // a real JVM that allocates; the measurements are its pauses
	Kernel    Kind = "kernel"    // threads in long system calls
)

// Workload is a set of threads.
type Workload struct {
	Name    string
	Kind    Kind
	Cgroup  int           // index in Scenario.Cgroups; -1: the root
	Threads int           // of a service: of all its pools
	Start   time.Duration // from the scenario's start
	// Run and Sleep of SleepRun, Fib, Sleeper and Kernel: CPU time between two sleeps, and the sleep. JVM has
	// a Sleep only.
	Run, Sleep Duration
	Fast       int           // of Fib: threads that burn
	On, Off    time.Duration // of Neighbour; On 0: always
	// Phases of Service and SleepRun, whose sleeps they divide; none: the load does not change.
	Phases []Phase

	Server    *Server    // of a Service
	Shards    *Shards    // of a Service: the sharded service that this is a part of, or nil
	Shard     int        // its number, from 0 on
	Collector *Collector // of GC
	Java      *Java      // of JVM
}

// AllThreads is how many threads it has, with the I/O threads of a service.
func (w *Workload) AllThreads() int {
	if w.Server == nil {
		return w.Threads
	}
	return w.Threads + w.Server.IO
}

// Shape of a distribution.
type Shape string

// The shapes.
const (
	Constant    Shape = "constant"
	Exponential Shape = "exponential"
	Uniform     Shape = "uniform"
)

// Duration is a distribution of times.
type Duration struct {
	Shape Shape
	// Mean of Constant and Exponential.
	Mean time.Duration
	// Low and High of Uniform.
	Low, High time.Duration
}

// Average of the distribution.
func (d Duration) Average() time.Duration {
	if d.Shape == Uniform {
		return d.Low + (d.High-d.Low)/2
	}
	return d.Mean
}

// Fixed returns a distribution that is always d.
func Fixed(d time.Duration) Duration { return Duration{Shape: Constant, Mean: d} }
