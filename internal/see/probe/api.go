package probe

import (
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/probe/counts"
	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// Bounds of what the probe keeps.
const (
	// DefaultContainers may be watched at once unless Options say more, MaxContainers at most.
	DefaultContainers = 1024
	MaxContainers     = 16384
	// Levels of the histograms of width and wanted; the last one holds that many and more.
	Levels = 256
	// MaxRecording is the longest recording.
	MaxRecording = time.Hour
)

// Options of Open.
type Options struct {
	// Containers that may be watched at once, with those that recordings name as neighbours; 0: DefaultContainers.
	Containers int
	// WidthOnly leaves out wanted, stopped time and recordings: the cheapest form.
	WidthOnly bool
	// RingBytes of the buffer between kernel and recorder, a power of two; 0: 8 MiB. It is taken only while recording.
	RingBytes int
	// Proc is the proc file system; "": /proc.
	Proc string
}

// Container is what is watched.
type Container = counts.Container

// Counts are cumulative since the container was watched.
type Counts = counts.Counts

// PeriodRow is one container over one period of its quota. A container without one has a row per tenth of a second
// while an ancestor's quota stops it, and for some seconds after.
type PeriodRow struct {
	// Cgroup is the container's id.
	Cgroup uint64
	// EndNS is CLOCK_MONOTONIC; LengthNS since the row before, longer than a period after idling.
	EndNS, LengthNS uint64
	// MeanWidth and MostWidth are CPUs in use, on average and at most.
	MeanWidth    float64
	MostWidth    int
	StoppedShare float64 // 0 to 1
	// Throttled: a CPU was throttled when the period ended; without a quota of its own: the container was stopped.
	Throttled bool
	// Lost: rows before this one were lost, of whichever container.
	Lost bool
}

// RecordOptions say what to record.
type RecordOptions struct {
	// Target is the container, watched already or not.
	Target Container
	// Others are told apart as owners of CPUs; those beyond Options.Containers are told as processes.
	Others []Container
	// For is how long, up to MaxRecording. The recording also ends, without error, when ctx does.
	For time.Duration
	// Host reads limits and counters for header and footer; nil: they stay empty, and NotMeasured says so.
	Host *cgroup.Host
	// Begin gets the header before the first event; nil: not wanted. Its error ends the recording.
	Begin func(*recording.Header) error
}

// Cost is what one program of the probe took.
type Cost struct {
	Program string
	Runs    uint64
	Total   time.Duration
	// Missed runs: the kernel left the program out because it ran already on that CPU.
	Missed uint64
}

// PerRun is the mean cost of a run, 0 without runs.
func (c Cost) PerRun() time.Duration {
	if c.Runs == 0 {
		return 0
	}
	return c.Total / time.Duration(c.Runs)
}

// Unavailable is why the kernel does not let us look, and what to do.
type Unavailable struct {
	// Refused is what was refused: "load the program sched_switch".
	Refused string
	// Err is what the kernel said.
	Err error
	// Way is the way out: "run as root, or with CAP_BPF and CAP_PERFMON".
	Way string
}

func (u *Unavailable) Error() string {
	return fmt.Sprintf("the kernel refuses to %s: %v; %s", u.Refused, u.Err, u.Way)
}

func (u *Unavailable) Unwrap() error { return u.Err }
