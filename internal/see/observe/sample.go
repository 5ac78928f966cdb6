package observe

import (
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/probe/counts"
)

// Sample is what the kernel's counters of one container said at one instant. Delta makes an Observation of two of them.
// A Sampler that fills a Sample again reuses its memory, so that repeated samples allocate nothing.
type Sample struct {
	Container container.Container
	At        time.Time
	// Gone reports that the cgroup does not exist. Then only Container and At are set.
	Gone bool
	// Levels has the container's own level first, then each ancestor up to the highest that we can see.
	Levels []LevelSample
	// Inside are the cgroups below that have or had a quota, other containers and what is below them left out.
	// InsideUnknown reports that there may be others.
	Inside        []LevelSample
	InsideUnknown bool
	// Local is the throttled time of cpu.stat.local, own and inherited, a sum over CPUs. HasLocal is false where it was
	// not read.
	Local    time.Duration
	HasLocal bool
	// Usage is the CPU time used. HasUsage is false where it was not read.
	Usage    time.Duration
	HasUsage bool
	// CPUs is the effective cpuset; empty means not read.
	CPUs cpuset.CPUSet
	// online is how many CPUs the machine has online; 0 means not known.
	online int
	// Hidden reports that quotas may exist above the highest visible level, or at a level that we could not read.
	Hidden bool
	// NotMeasured says what could not be read and why.
	NotMeasured []string
	// counts are the probe's; nil: there is no probe, or it does not watch the container yet.
	counts   *counts.Counts
	memory   *counts.Counts // of counts, kept from one filling to the next
	cgroupID uint64
	// counterpartGone reports that the container's cgroup in another hierarchy is gone, so container.Group is out of
	// date.
	counterpartGone bool
	// took is how long the reading took from At on. early is how long before At a counter was read that containers share.
	took, early time.Duration
}

// LevelSample is one level of a Sample.
type LevelSample struct {
	cgroup.Level
	// ID distinguishes two cgroups that have the same path one after the other; 0 means not known.
	ID    uint64
	Stat  Counters
	cells []reading
}

// Counters are the lines of cpu.stat that we use.
type Counters struct {
	// HasBandwidth reports that the file has nr_periods, nr_throttled and the throttled time. A v2 cgroup without the
	// cpu controller has a cpu.stat that lacks them.
	HasBandwidth              bool
	Periods, ThrottledPeriods uint64
	Throttled                 time.Duration // sum over CPUs
	// HasUsage reports that cpu.stat has usage_usec, as on v2.
	HasUsage bool
	Usage    time.Duration
}

// reading is the throttled time as read between two full samples.
type reading struct {
	at        time.Time
	throttled time.Duration // gained since the previous reading
}

// maxNotMeasured bounds the list in a sample and an observation.
const maxNotMeasured = 16

// reset empties a sample for the next filling and keeps its memory.
func (s *Sample) reset() {
	*s = Sample{Levels: s.Levels[:0], Inside: s.Inside[:0], NotMeasured: s.NotMeasured[:0], memory: s.memory}
}

// missing notes what could not be measured, once, up to maxNotMeasured notes.
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
