package probe

import (
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// Bounds of the probe's memory.
const (
	// defaultContainers may be watched at one time unless Options say otherwise; MaxContainers is the largest option.
	defaultContainers = 1024
	MaxContainers     = 16384
	// Levels of the histograms of width and wanted; the last level counts higher values too.
	Levels = 256
	// MaxRecording is the longest recording.
	MaxRecording = time.Hour
)

// Options of Open.
type Options struct {
	// Containers bounds how many may be watched at one time, including those that recordings name as neighbours. 0
	// means defaultContainers.
	Containers int
	// WidthOnly leaves out wanted, stopped time and recordings, which makes the probe cheapest.
	WidthOnly bool
	// RingBytes is the size of the buffer between kernel and recorder, a power of two; 0 means 8 MiB. It takes memory
	// only while recording.
	RingBytes int
	// Proc is the path of the proc file system; "" means /proc.
	Proc string
}

// Container is a cgroup of the cpu controller with all its descendants, except those that are watched themselves.
type Container struct {
	// ID is the inode of the cgroup's folder in the cpu controller's hierarchy.
	ID uint64
	// Path in that hierarchy, and a readable name: for recordings and errors.
	Path, Name string
}

// Counts are cumulative since the container was watched.
type Counts struct {
	// SinceNS and AtNS are CLOCK_MONOTONIC: the begin of counting, and the time up to which the histograms count.
	SinceNS, AtNS uint64
	// WidthNS[i] is how long i CPUs ran the container at one instant. WantedNS[i] is how long i of its threads ran or
	// were runnable. The last of Levels counts higher values too. Each adds up to AtNS-SinceNS. WantedNS is nil with
	// WidthOnly.
	WidthNS, WantedNS []int64
	// Width and Wanted at AtNS.
	Width, Wanted int
	// StoppedNS is how long a quota held back at least one of its threads, in StoppedIntervals intervals. Both are nil
	// with WidthOnly or where the kernel does not show it.
	StoppedNS        *int64
	StoppedIntervals *uint64
	// Stopped reports whether a quota holds the container back at AtNS.
	Stopped bool
	// LateNS is by how much changes of width, wanted and stopped time together were counted too late. It grows when a
	// hypervisor takes a CPU away between its look at the clock and its counting. Each histogram, times its levels, is
	// off by at most LateNS.
	LateNS uint64
	// StoppedLateNS is the part of LateNS that belongs to stopped time: StoppedNS is off by at most that.
	StoppedLateNS uint64
	// Inexact reports that the container changed during every attempt to read it. The histograms may then be off by
	// more than LateNS.
	Inexact bool
	// OnCPUNS is the time its threads held CPUs, added up per CPU and not from the histogram, as a check on the
	// histogram. If CPUs switch faster than the probe can read them, their last stretch may be missing.
	OnCPUNS int64
	// OnCPU is the same by CPU, without CPUs that have none.
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

// RecordOptions say what to record.
type RecordOptions struct {
	// Target is the container; it need not be watched.
	Target Container
	// Others are containers that the recording names as owners of CPUs. Those beyond Options.Containers appear as
	// processes.
	Others []Container
	// For is the length, up to MaxRecording. The end of ctx also ends the recording, without error.
	For time.Duration
	// Host reads limits and counters for header and footer. With nil they stay empty, and NotMeasured says so.
	Host *cgroup.Host
	// Begin gets the header before the first event; it may be nil. Its error ends the recording.
	Begin func(*recording.Header) error
}

// Cost is the time that one program of the probe took.
type Cost struct {
	Program string
	Runs    uint64
	Total   time.Duration
	// Missed counts runs that the kernel skipped because the program already ran on that CPU.
	Missed uint64
}

// PerRun returns the mean cost of a run, 0 without runs.
func (c Cost) PerRun() time.Duration {
	if c.Runs == 0 {
		return 0
	}
	return c.Total / time.Duration(c.Runs)
}

// Unavailable says why the kernel refuses the probe, and the way out.
type Unavailable struct {
	// Refused is the refused step: "load the program sched_switch".
	Refused string
	// Err is the kernel's error.
	Err error
	// Way is the way out: "run as root, or with CAP_BPF and CAP_PERFMON".
	Way string
}

func (u *Unavailable) Error() string {
	return fmt.Sprintf("the kernel refuses to %s: %v; %s", u.Refused, u.Err, u.Way)
}

func (u *Unavailable) Unwrap() error { return u.Err }
