package leastlimit

import "math"

// Level is for how long so many CPUs were in use, or so many threads ran or were runnable.
type Level struct {
	CPUs         int32
	Microseconds int64
}

// Demand is what is known of one container, over rows with one limit.
type Demand struct {
	// Width and Wanted are the rows' histograms, added up.
	Width, Wanted []Level
	// WidestMean is the largest mean use of a slot, in CPUs.
	WidestMean float64
	// StoppedSeconds is time in which a quota stopped it, at most.
	StoppedSeconds float64
	// AllowedCPUs bounds how many CPUs it can use; 0: that is not known.
	AllowedCPUs int32
}

// Needs are the least limits of a container, in CPUs. Low <= Safe <= High.
type Needs struct{ Low, Safe, High float64 }

// levels are the levels of CPUs that the container would use without a quota.
func (d *Demand) levels() []Level {
	if d.StoppedSeconds > 0 {
		return d.Width
	}
	return d.Wanted
}

// cpusOf is how many CPUs a level uses.
func (d *Demand) cpusOf(l Level) float64 {
	if d.AllowedCPUs > 0 {
		return float64(min(l.CPUs, d.AllowedCPUs))
	}
	return float64(l.CPUs)
}

// BusySeconds is time in which a thread ran or was runnable.
func (d *Demand) BusySeconds() float64 {
	us := 0.0
	for _, l := range d.levels() {
		if l.CPUs > 0 {
			us += float64(l.Microseconds)
		}
	}
	return us / 1e6
}

// StoppedAt is for how many seconds a limit would stop the container if each level came as one long burst. No order of
// the same demand stops it for longer.
func (d *Demand) StoppedAt(limitCPUs float64) float64 {
	us := 0.0
	for _, l := range d.levels() {
		if k := d.cpusOf(l); k > limitCPUs {
			us += float64(l.Microseconds) * (k/limitCPUs - 1)
		}
	}
	return us / 1e6
}

// Least are the least limits. bound is the share of its time to work for which a quota may stop it; it is above 0 and
// below 1. A container without demand needs nothing: all are 0.
func (d *Demand) Least(bound float64) Needs {
	busy := d.BusySeconds()
	if busy == 0 {
		return Needs{}
	}
	high := 0.0
	for _, l := range d.levels() {
		if l.Microseconds > 0 {
			high = max(high, d.cpusOf(l))
		}
	}
	// Counters and the probe read at slightly different moments: a mean may lie a little above the widest level.
	low := min(d.WidestMean, high)
	// Time to work is busy + stopped, of which stopped may be bound: stopped <= busy*bound/(1-bound).
	may := busy * bound / (1 - bound)
	// StoppedAt falls as the limit grows. 60 halvings are below the precision of a float.
	below, enough := 0.0, high
	for range 60 {
		middle := (below + enough) / 2
		if middle > 0 && d.StoppedAt(middle) <= may {
			enough = middle
		} else {
			below = middle
		}
	}
	return Needs{Low: low, Safe: max(low, enough), High: high}
}

// Tenths rounds a limit up to a tenth of a CPU, Whole to a whole CPU, as exclusive CPUs need it.
func Tenths(cpus float64) float64 { return math.Ceil(cpus*10-tiny) / 10 }

// Whole rounds up to a whole CPU.
func Whole(cpus float64) float64 { return math.Ceil(cpus - tiny) }

// tiny is what sums of floats may be above a round number by.
const tiny = 1e-6
