package pace

import "time"

const (
	// own is the part of the quota that is this process's however much the rest of the container uses: the kernel shares a quota
	// among all that want it. It is more than [Slack] keeps at most, so that a task starts.
	own = 0.25
	// half is how long a look counts as much as all that was seen before it.
	half = time.Second
)

// Others learns which part of a quota the rest of the container uses. The zero value knows of none.
type Others struct{ used time.Duration }

// Learn takes the CPU time per period that the rest used within a span. The longer the span, the more it counts. Counters of CPU time are
// late by up to a tick, so that a figure may be below 0, and only the mean of many is what the rest uses.
func (o *Others) Learn(perPeriod, span time.Duration) {
	if span > 0 {
		o.used += time.Duration(float64(perPeriod-o.used) * float64(span) / float64(span+half))
	}
}

// Left is the part of a quota with which the process may plan. When in the period the others use theirs is not known, so that it is not for
// this process at any time.
func (o *Others) Left(quota time.Duration) time.Duration {
	return max(time.Duration(own*float64(quota)), quota-max(0, o.used))
}

// Busy learns which part of the tasks' wall time is CPU time. [Busy.Restart] begins.
type Busy struct{ part float64 }

// Restart begins with all of it.
func (b *Busy) Restart() { b.part = 1 }

// Learn takes the CPU time that the process used while its tasks ran for a time. More than theirs is of IO and the collector.
func (b *Busy) Learn(used, taskTime time.Duration) {
	b.part += (min(1, float64(used)/float64(taskTime)) - b.part) / 4
}

// Cost is the CPU time of a task that takes so long.
func (b *Busy) Cost(wall time.Duration) time.Duration { return time.Duration(float64(wall) * b.part) }
