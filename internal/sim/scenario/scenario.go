package scenario

import (
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/bandwidth"
)

// Version is the format that Parse reads.
const Version = 1

// Scenario is one experiment.
type Scenario struct {
	About    string        // what it shows
	Duration time.Duration // how long it runs
	Host     Host
	// Cgroups, each after its parent.
	Cgroups   []Cgroup
	Workloads []Workload
}

// Host is the machine.
type Host struct {
	CPUs int
	// HZ is ticks per second; 0: continuous, a used-up silo is noticed at once.
	HZ int
	// SpreadTicks: each CPU ticks at a phase of its own (skew_tick=1); else all
	// tick together.
	SpreadTicks   bool
	CgroupVersion int // 1 or 2: decides what nested quotas are refused
	// Rules of the kernel's bandwidth control, constants included.
	Rules bandwidth.Rules
	// ClockSkew is the most by which one CPU's clock is ahead of another's; it
	// matters before 4.18.
	ClockSkew time.Duration
	// TimerSlack is how late a sleep ends (50 µs).
	TimerSlack time.Duration
	// BaseSlice is the fair scheduler's slice (base_slice_ns; before 6.6 the
	// least time between preemptions). 0: the kernel's, by number of CPUs.
	BaseSlice time.Duration
	// UnthrottleIPI is how much later a CPU other than the timer's is
	// unthrottled, from 6.3 on (2 µs, a guess: no figure is published).
	UnthrottleIPI time.Duration
	// WakeCosts are 0 unless they are given: machines differ tenfold.
	WakeCosts WakeCosts
	// LineOwn and LineOther are the CPU time of reading and writing a cache line
	// of a service's shared data that the same CPU wrote last, or another one.
	LineOwn, LineOther time.Duration
	// Topology tells which CPUs share what.
	Topology Topology
	// ColdCache is the CPU time that a thread's work takes longer after it moved to a
	// CPU of another last-level cache.
	ColdCache time.Duration
	// Reserved CPUs belong to pinned cgroups: workloads in the root cgroup stay
	// off them ([Scenario.CPUsOf] has those of every workload). Set by Remedied.
	Reserved cpuset.CPUSet
}

// WakeCosts are the CPU time of a sleep and a wake-up, which the thread that wakes
// has beside its work: on a CPU that idles while nobody woke up for 6 ms and longer beside
// the same cache; where somebody did 2.5 ms ago (0: as Long; before and after less and more,
// in proportion); and on a busy CPU where somebody just did, and more later. Delay is
// no CPU time: how much later than its timer a CPU that idles wakes up.
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
	Remedy *Remedy       // nil: leave it
	// Width is the most CPUs in use at once, 0: any. While some of Credit is saved
	// up, CPU time within the limit that was not used, any. Set by Remedied.
	Width  int
	Credit time.Duration
	// Alone: its CPUs are its own and those of cgroups below it, nobody else's. Set by
	// Remedied.
	Alone bool
}

// RemedyKind is what is done about a throttled cgroup.
type RemedyKind string

// The remedies that a scenario can have; package remedy applies them for real.
const (
	Pin    RemedyKind = "pin"    // CPUs of its own, quota off, its ancestors' too
	Burst  RemedyKind = "burst"  // the quota kept, with a burst
	Weight RemedyKind = "weight" // no quota, weight only
	Raise  RemedyKind = "raise"  // a larger quota
	Narrow RemedyKind = "narrow" // never more CPUs at once than the limit has
	Period RemedyKind = "period" // the same limit in another period
)

// Remedy of one cgroup.
type Remedy struct {
	Kind   RemedyKind
	CPUs   int           // Pin
	Burst  time.Duration // Burst
	Factor float64       // Raise
	Credit time.Duration // Narrow
	Period time.Duration // Period
}

// Kind of a workload.
type Kind string

// The kinds of workloads.
const (
	Burn      Kind = "burn"      // threads that never stop
	SleepRun  Kind = "sleep-run" // threads that sleep and run in turn
	Fib       Kind = "fib"       // fibtest: one thread per CPU, pinned; fast ones burn, slow ones run a little and sleep
	Sleeper   Kind = "sleeper"   // threads that sleep, and measure how long that took
	Service   Kind = "service"   // requests that arrive whether or not earlier ones are done
	Neighbour Kind = "neighbour" // threads that burn for a while, all at once, and then rest
	GC        Kind = "gc"        // threads that run all at once while a service waits
	JVM       Kind = "jvm"       // a real JVM that allocates; measured are its pauses
	Kernel    Kind = "kernel"    // threads in long system calls
)

// Workload is a set of threads.
type Workload struct {
	Name    string
	Kind    Kind
	Cgroup  int           // index in Scenario.Cgroups; -1: the root
	Threads int           // of a service: of all its pools
	Start   time.Duration // from the scenario's start
	// Run and Sleep of SleepRun, Fib, Sleeper and Kernel: CPU time between two
	// sleeps, and the sleep. JVM has a Sleep only.
	Run, Sleep Duration
	Fast       int           // Fib: threads that burn
	On, Off    time.Duration // Neighbour; On 0: always
	// Phases of Service and SleepRun, whose sleeps they divide; none: the load
	// does not change.
	Phases []Phase

	Server    *Server    // Service
	Shards    *Shards    // Service: what this is one of, or nil
	Shard     int        // which, from 0 on
	Collector *Collector // GC
	Java      *Java      // JVM
}

// AllThreads is how many threads it has, the I/O threads of a service too.
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

// Fixed is always d.
func Fixed(d time.Duration) Duration { return Duration{Shape: Constant, Mean: d} }
