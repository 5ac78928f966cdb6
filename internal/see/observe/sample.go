package observe

import (
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/probe/counts"
)

// Sample is what the kernel's counters of one container said at one instant. Two of them make an Observation: Delta.
// A Sample that is filled again by a Sampler keeps its memory, so a steady state makes no garbage.
type Sample struct {
	Container container.Container
	At        time.Time
	// Gone: there is no such cgroup (any more); nothing else but Container and At is set.
	Gone bool
	// Levels: the container's own first, then each ancestor up to the highest that we can see.
	Levels []LevelSample
	// Local is cpu.stat.local's throttled time, own and inherited, a sum over CPUs; HasLocal false: not read.
	Local    time.Duration
	HasLocal bool
	// Usage is the CPU time used; HasUsage false: not read.
	Usage    time.Duration
	HasUsage bool
	// CPUs is the effective cpuset; empty: not read.
	CPUs cpuset.CPUSet
	// Hidden: above the highest level that we see, or at one that we could not read, there may be quotas.
	Hidden bool
	// NotMeasured: what could not be read and why.
	NotMeasured []string
	// counts are the probe's; nil: there is no probe, or it does not watch the container yet.
	counts   *counts.Counts
	cgroupID uint64
	// counterpartGone: its cgroup in another hierarchy is gone; container.Group is out of date.
	counterpartGone bool
}

// LevelSample is one level of a Sample.
type LevelSample struct {
	cgroup.Level
	// ID tells two cgroups apart that had the same path one after the other; 0: not known.
	ID    uint64
	Stat  Counters
	cells []reading
}

// Counters are the parts of cpu.stat that we use.
type Counters struct {
	// HasBandwidth: the file had nr_periods, nr_throttled and the throttled time. A v2 cgroup for which the cpu
	// controller is not enabled has a cpu.stat without them.
	HasBandwidth              bool
	Periods, ThrottledPeriods uint64
	Throttled                 time.Duration // sum over CPUs
	// HasUsage: v2, where cpu.stat has usage_usec.
	HasUsage bool
	Usage    time.Duration
}

// reading is the throttled time as read between two full samples.
type reading struct {
	at        time.Time
	throttled time.Duration // gained since the reading before
}

// maxNotMeasured bounds the list in a sample and an observation.
const maxNotMeasured = 16

// reset empties a sample for the next filling and keeps its memory.
func (s *Sample) reset() {
	*s = Sample{Levels: s.Levels[:0], NotMeasured: s.NotMeasured[:0]}
}

// missing notes what could not be measured, bounded and once.
func (s *Sample) missing(what string) { s.NotMeasured = appendNote(s.NotMeasured, what) }

func appendNote(notes []string, what string) []string {
	if len(notes) >= maxNotMeasured {
		return notes
	}
	for _, n := range notes {
		if n == what {
			return notes
		}
	}
	return append(notes, what)
}
