// Package counts holds what the probe counts of a container, as values: packages that judge counts do not load BPF.
package counts

// Container is what is watched: a cgroup of the cpu controller and all below it, down to cgroups watched themselves.
type Container struct {
	// ID is the cgroup's: the inode of its folder in the cpu controller's hierarchy.
	ID uint64
	// Path in that hierarchy, and what people call it: for recordings and errors.
	Path, Name string
}

// Counts are cumulative since the container was watched.
type Counts struct {
	// SinceNS and AtNS are CLOCK_MONOTONIC: when watching began and up to when the histograms count.
	SinceNS, AtNS uint64
	// WidthNS[i] is how long i CPUs ran the container at once, WantedNS[i] how long i of its threads ran or were
	// runnable; the last of probe.Levels holds more as well. Both sum to AtNS-SinceNS. WantedNS is nil with WidthOnly.
	WidthNS, WantedNS []int64
	// Width and Wanted at AtNS.
	Width, Wanted int
	// StoppedNS is how long at least one of its threads was held back by a quota, in StoppedIntervals stretches; nil: the
	// kernel does not show it, or WidthOnly.
	StoppedNS        *int64
	StoppedIntervals *uint64
	// IdleNS is for how long before AtNS none of its threads has run, wanted a CPU or been held back by a quota, and no
	// period of its quota has ended; 0: one does so at AtNS, or it is not known.
	IdleNS uint64
	// Stopped: it is stopped at AtNS.
	Stopped bool
	// LateNS is how far changes of width, wanted and stopped time together were counted too late: a hypervisor took a CPU
	// away between its look at the clock and its counting. Each histogram, times its levels, is off by no more.
	LateNS uint64
	// StoppedLateNS is the part of LateNS that changes of stopped time have: StoppedNS is off by no more.
	StoppedLateNS uint64
	// Inexact: no moment was found at which the histograms were exact, so that they may be off by more than LateNS. The
	// container changed all the time while it was read.
	Inexact bool
	// OnCPUNS is the time its threads held CPUs, summed per CPU and not from the histogram: a check on it. Where CPUs
	// change hands faster than it can be read, what they did while it was read may be missing.
	OnCPUNS int64
	// OnCPU is the same by CPU, only those with any.
	OnCPU map[int]int64
}

// PeriodRow is one container over one period of its quota. A container without a quota has a row per tenth of a second
// while an ancestor's quota stops it, and for some seconds after.
type PeriodRow struct {
	// Cgroup is the container's id.
	Cgroup uint64
	// EndNS is CLOCK_MONOTONIC. LengthNS is the time since the previous row, longer than a period after idle time.
	EndNS, LengthNS uint64
	// MeanWidth and MostWidth are CPUs in use, mean and maximum.
	MeanWidth    float64
	MostWidth    int
	StoppedShare float64 // 0 to 1
	// Throttled reports that a CPU was throttled when the period ended. Without an own quota it reports that the
	// container was stopped.
	Throttled bool
	// Lost reports that rows before this one were lost, of any container.
	Lost bool
}
