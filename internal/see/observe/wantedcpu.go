package observe

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/stats"
)

// saturatedIdle is the share of a window in which no thread wants a CPU. Above it the container does its work in time.
const saturatedIdle = 0.05

// WantedCPU returns the CPU time that the container would have used over the window without a quota. ok is false where
// it was not measured. It is never less than the CPU time used.
//
// A container that does its work in time would have used the same: a quota delays work and takes none away. It does so
// if no quota stopped it, if for a twentieth of the window no thread wanted a CPU, or if its own quota stopped it and it
// used less than 95 % of that. Any other container is saturated. Then its threads would have run where a quota held them
// back, on as many CPUs as it may use: used + what waited for quotas, at most wanted on these CPUs.
//
// The error has one direction in each case. A saturated container would have used less where its work is a queue that
// ends (work waits, and runs later too), or where others hold the CPUs. One that is not saturated would have used more
// where a faster answer brings the next request sooner.
func (o *Observation) WantedCPU() (cpu time.Duration, ok bool) {
	w, ok := o.Waiting()
	if !ok || o.UsedCPUs == nil {
		return 0, false
	}
	used := time.Duration(*o.UsedCPUs * float64(o.Window))
	if !o.saturated() {
		return used, true
	}
	most := used + w.Quota + w.Ancestor
	if cpus := o.CPUsAllowed.Size(); cpus > 0 {
		most = min(most, atMost(o.Wanted, cpus))
	}
	return max(used, most), true
}

// saturated reports whether the container may have had more work than its quotas let it do.
func (o *Observation) saturated() bool {
	if *o.StoppedHigh == 0 || o.Wanted[0].Seconds() >= saturatedIdle*sum(o.Wanted).Seconds() {
		return false
	}
	own := o.LimitCPUs != nil && o.LimitAt == o.Container.Group.Path && o.ByOwnQuota()
	return !own || *o.UsedCPUs >= stats.UsedUp**o.LimitCPUs
}

// atMost returns level x time of a histogram, each level cut to the CPUs.
func atMost(levels []time.Duration, cpus int) (area time.Duration) {
	for level, t := range levels {
		area += time.Duration(min(level, cpus)) * t
	}
	return area
}
