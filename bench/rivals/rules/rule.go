package rules

import (
	"math"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
)

// Rule is what one project does with a container: from what was observed to what is set. A value never changes; what a rule
// remembers is in the one that Next returns.
type Rule interface {
	// Cadence is how often Next is to be asked; 0: once, when the container starts.
	Cadence() time.Duration
	// Next is what the rule asks for, and the rule to ask the next time.
	Next(Observed) (Setting, Rule)
}

// Resources are the CPUs of a container's spec.
type Resources struct {
	RequestCPUs float64 // 0: none
	LimitCPUs   float64 // 0: none
}

// Setting is what a container is set to. A rule may ask for what the kernel refuses: see [bandwidth.Limit.Check].
type Setting struct {
	RequestCPUs   float64 // what the node keeps free for it, and its weight; 0: nothing
	Limit         bandwidth.Limit
	ExclusiveCPUs int // CPUs that no other container may run on, and no others for this one; 0: it shares all CPUs
}

// Observed is what a rule is told. Used, For, Periods and Throttled count from the time at which it was last asked; the first
// time, from the start of the container.
type Observed struct {
	At        time.Duration // since the container started
	Spec      Resources     // as its owner wrote them
	Now       Setting       // what is in force, not what was asked for
	Used      time.Duration // CPU time
	For       time.Duration // how long that took
	Periods   int64         // nr_periods of cpu.stat
	Throttled int64         // nr_throttled of cpu.stat
	Node      *Node         // nil: not measured
	History   []Sample      // in the order of time, as far apart as the rule's project samples
}

// Node is the node's use of the CPUs that containers share, over the last five seconds.
type Node struct {
	SharedCPUs float64 // all but those promised to containers with CPUs of their own
	UsedCPUs   float64 // by everything but such containers and those of best effort
}

// Sample is a container's mean use over the time since the one before.
type Sample struct {
	At   time.Duration // since midnight of the first day
	CPUs float64
}

// cpus is the mean use since the rule was last asked; 0: no time has passed.
func (o Observed) cpus() float64 {
	if o.For <= 0 {
		return 0
	}
	return float64(o.Used) / float64(o.For)
}

// milli is CPUs in thousandths, rounded up as Kubernetes does with quantities; what a sum of fractions is off by does not count.
func milli(cpus float64) int64 { return int64(math.Ceil(cpus*1000 - 1e-6)) }

// cpusOf is the inverse of milli.
func cpusOf(milli int64) float64 { return float64(milli) / 1000 }

// limitOf is the quota of a CPU limit in thousandths, in the period that Kubernetes sets, and at least the kernel's least; of 0
// there is none (kubelet: MilliCPUToQuota).
func limitOf(milli int64) bandwidth.Limit {
	l := bandwidth.Unlimited()
	if milli > 0 {
		l.Quota = max(bandwidth.MinQuota, time.Duration(milli)*bandwidth.DefaultPeriod/1000)
	}
	return l
}
