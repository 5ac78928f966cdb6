package probe

import (
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/probe/counts"
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

// Work is what the probe does in goroutines of its own.
type Work int

// The kinds of work.
const (
	WorkRows      Work = iota // rows per period
	WorkRecording             // a recording's events, and its end
)

// Container is what is watched.
type Container = counts.Container

// Counts are cumulative since the container was watched.
type Counts = counts.Counts

// PeriodRow is one container over one period of its quota.
type PeriodRow = counts.PeriodRow

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
