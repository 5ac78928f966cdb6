package diagnose

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/see/schedule"
	"github.com/unthrottle/unthrottle/internal/text"
)

// Counters is what the counters of a container and of its ancestors tell of a window, and with a probe the histograms of width
// and wanted: the part of a recording's figures that they know. [Counters.Explain] judges it by the rules for recordings. A nil
// pointer or slice means not measured.
type Counters struct {
	Target string
	Start  time.Time
	Window time.Duration
	// LimitCPUs is the effective limit; nil: there is none, or with LimitUnknown it was not measured. Quota and Period are those of
	// the level that sets it, and OwnLimitCPUs is that of the container's own level, 0: none.
	LimitCPUs     *float64
	LimitUnknown  bool
	Quota, Period time.Duration
	OwnLimitCPUs  float64
	// Periods and ThrottledPeriods are those of the container's own quota.
	Periods, ThrottledPeriods *uint64
	UsedCPUs                  *float64
	// CPUsAllowed and CPUsOnline count CPUs; 0: not known.
	CPUsAllowed, CPUsOnline int
	// StoppedLow and StoppedHigh bound the stopped time; both are nil or neither. StoppedBy are the quotas that did it.
	StoppedLow, StoppedHigh *time.Duration
	StoppedBy               []CountersShare
	// Width[i] is how long i CPUs were in use, Wanted[i] how long i threads ran or waited.
	Width, Wanted []time.Duration
	// ForOwnQuota, ForAncestor and ForCPUs are the thread time of waiting, where Width and Wanted are known.
	ForOwnQuota, ForAncestor, ForCPUs time.Duration
}

// CountersShare is the part that one quota has in the stopped time, 0 to 1.
type CountersShare struct {
	Path  string // "": an ancestor's that is not visible
	Whose Whose
	Share float64
}

// Whose says whose quota one is.
type Whose int

// A quota is the container's own, an ancestor's, or that of a cgroup in the container.
const (
	OfItself Whose = iota
	OfAncestor
	OfInside
)

// Explain judges the counters. Where they leave several causes open, Causes has each with what would tell it from the others. If
// these need different remedies Cause is "".
func (c Counters) Explain() Explanation {
	e := Explanation{
		Target: c.Target, Start: c.Start, Window: c.Window, LimitCPUs: c.LimitCPUs, LimitUnknown: c.LimitUnknown,
		Periods: c.Periods, ThrottledPeriods: c.ThrottledPeriods, MeanWidth: c.UsedCPUs,
	}
	if c.StoppedHigh == nil {
		e.Verdict = fmt.Sprintf("Whether a quota stopped %s could not be measured.", c.Target)
		return e
	}
	if *c.StoppedLow == *c.StoppedHigh {
		e.Stopped = c.StoppedHigh
	}
	recorded := c.figures()
	conclude(&e, recorded)
	open := e.Cause == Shortage && recorded.wantedUnknown && ambiguous(recorded)
	e.Verdict = c.verdict(e.Cause, open, recorded)
	for i := range e.Causes {
		one := &e.Causes[i]
		if one.Stopped != nil {
			one.Stopped, one.Wall = e.Stopped, e.Stopped
		}
		one.Evidence = c.evidence(i, e.Causes, recorded)
	}
	switch {
	case open:
		e.Cause = ""
	case e.Cause == None && recorded.throttled():
		e.Cause, e.Causes = "", nil
	}
	return e
}

// figures are those that the causes judge. What is not known has the value with which no cause rests on it, unless figures has a
// field that says so.
func (c *Counters) figures() *figures {
	recorded := &figures{
		window: int64(c.Window), measured: true, limitUnknown: c.LimitUnknown, target: c.Target, kernelTime: -1,
		allowed: c.CPUsAllowed, online: c.CPUsOnline, stopped: int64(*c.StoppedHigh), periods: c.Periods,
		throttledPeriods: c.ThrottledPeriods, ownLimit: c.OwnLimitCPUs, below: 1, belowOwn: 1, siblingsUnknown: true,
		wantedUnknown: c.Wanted == nil, widthUnknown: c.Width == nil, delaysUnknown: true,
	}
	for _, by := range c.StoppedBy {
		l := level{Level: schedule.Level{Level: recording.Level{Path: by.Path}, Own: by.Whose != OfAncestor, Inside: by.Whose == OfInside},
			stopped: int64(by.Share * float64(*c.StoppedHigh))}
		switch longer := func(than *level) bool { return than == nil || l.stopped > than.stopped }; by.Whose {
		case OfItself:
			recorded.ownStopped += l.stopped
		case OfAncestor:
			if recorded.ancestorStopped += l.stopped; longer(recorded.ancestor) {
				recorded.ancestor = &l
			}
		case OfInside:
			if recorded.insideStopped += l.stopped; longer(recorded.innermost) {
				recorded.innermost = &l
			}
		}
	}
	if c.LimitCPUs != nil && c.UsedCPUs != nil {
		recorded.limit, recorded.quota, recorded.period = *c.LimitCPUs, int64(c.Quota), int64(c.Period)
		recorded.binding, recorded.ownQuota = &level{}, recorded.ownStopped > 0
	}
	if c.UsedCPUs != nil {
		recorded.meanWidth, recorded.cpu = *c.UsedCPUs, int64(*c.UsedCPUs*float64(c.Window))
	}
	c.setWanted(recorded)
	c.setWidth(recorded)
	return recorded
}

// setWanted fills in what the histogram of wanted tells. Above is the most that it can be: all time above the limit in a row. Threads
// beyond the allowed CPUs wait for each other, whatever others do.
func (c *Counters) setWanted(recorded *figures) {
	if recorded.wantedUnknown {
		recorded.above = math.MaxInt64
		return
	}
	wanted := timeHistogram{time: nanoseconds(c.Wanted)}
	recorded.meanWanted, recorded.mostWanted = wanted.mean(), wanted.most()
	above, aboveOwn, crowd := int64(0), int64(0), int64(0)
	for i, d := range wanted.time {
		if float64(i) > recorded.limit {
			above += d
		}
		if float64(i) > recorded.ownLimit {
			aboveOwn += d
		}
		if c.CPUsAllowed > 0 {
			crowd += int64(max(0, i-c.CPUsAllowed)) * d
		}
	}
	all := max(1, total(wanted.time))
	recorded.above, recorded.below, recorded.belowOwn = above, 1-float64(above)/all, 1-float64(aboveOwn)/all
	recorded.waiting.add(byOwnQuota, int64(c.ForOwnQuota))
	recorded.waiting.add(byAncestor, int64(c.ForAncestor))
	own := min(crowd, int64(c.ForCPUs))
	recorded.waiting.add(byOwnThreads, own)
	recorded.waiting.add(byNeighbour, int64(c.ForCPUs)-own)
}

// setWidth fills in how wide it was beyond what the limit fills, as far as the histogram or the CPUs that it may use tell. A throttled
// period has used its quota; the histogram does not say which time was in one, and all excess counts.
func (c *Counters) setWidth(recorded *figures) {
	filled := ceilCPUs(recorded.limit)
	if recorded.widthUnknown {
		recorded.widthUnknown = c.CPUsAllowed == 0 || c.CPUsAllowed > filled
		return
	}
	recorded.widest = max(0, len(c.Width)-1)
	for i, d := range c.Width {
		recorded.sums.excess += int64(max(0, i-filled)) * int64(d)
	}
	recorded.sums.used = recorded.cpu
	if c.ThrottledPeriods != nil && *c.ThrottledPeriods > 0 && recorded.ownQuota {
		recorded.sums.used = min(recorded.cpu, int64(*c.ThrottledPeriods)*recorded.quota)
	}
}

func nanoseconds(of []time.Duration) (all []int64) {
	for _, d := range of {
		all = append(all, int64(d))
	}
	return all
}

// verdict says the first cause in words. open: it is one of those that the mean use leaves open.
func (c *Counters) verdict(cause Cause, open bool, recorded *figures) string {
	stopped := c.stopped()
	used := fmt.Sprintf("used %s of its limit", formatShare(recorded.use()))
	switch {
	case open:
		return fmt.Sprintf("%s %s and was stopped for %s: counters do not tell bursts from a shortage here; how long its threads "+
			"want more CPUs than the limit would tell.", c.Target, used, stopped)
	case cause == Inside:
		return fmt.Sprintf("The quota of a cgroup in it, %s, held threads of %s back for %s: explain that cgroup.",
			text.EscapePath(recorded.innermost.Path), c.Target, stopped)
	case cause == Ancestor && recorded.ancestor.Path == "":
		return fmt.Sprintf("A quota of an ancestor that is not visible here held %s back for %s.", c.Target, stopped)
	case cause == Ancestor:
		return fmt.Sprintf("The quota of %s held %s back for %s.", text.EscapePath(recorded.ancestor.Path), c.Target, stopped)
	case cause == Shortage:
		return fmt.Sprintf("%s %s and was stopped for %s: it wants more CPU than it has.", c.Target, used, stopped)
	case cause == Burst && recorded.widthUnknown:
		return fmt.Sprintf("%s used only %s of its limit on average and yet was stopped for %s: it is wide for short times, or its work "+
			"comes in pieces longer than the quota; counters do not tell which; how many CPUs it uses at once would tell.", c.Target,
			formatShare(recorded.use()), stopped)
	case cause == Burst, cause == TinyLimit:
		return fmt.Sprintf("%s %s on average and yet was stopped for %s: %s.", c.Target, used, stopped, text.Either(cause == Burst,
			"it is wide for short times", "its work comes in pieces longer than the quota"))
	case cause == Neighbours, cause == Cpuset:
		return fmt.Sprintf("Not its quota: threads of %s waited for CPUs for %s of thread time, %s.", c.Target, text.Duration(c.ForCPUs),
			text.Either(cause == Cpuset, "most of it behind each other", "most of it behind others"))
	case *c.StoppedHigh == 0:
		return fmt.Sprintf("No quota held %s back; %s.", c.Target, text.Either(recorded.wantedUnknown,
			"counters do not show whether its threads waited for CPUs", "its threads hardly waited for CPUs"))
	case !recorded.throttled():
		return fmt.Sprintf("Nothing wrong: a quota held %s back for only %s.", c.Target, stopped)
	}
	return fmt.Sprintf("%s was stopped for %s; without its %s counters do not tell why.", c.Target, stopped,
		text.Either(c.UsedCPUs == nil, "CPU use", "limit"))
}

// toldBy says what would tell the causes from each other that counters leave open.
var toldBy = map[Cause]string{
	Burst:     "if more CPUs ran at once than the limit fills",
	TinyLimit: "if no more CPUs ran at once than the limit fills",
	Shortage:  "if its threads wanted more CPUs than the limit for three periods in a row",
}

// evidence is that of one of the causes. The first has all figures.
func (c *Counters) evidence(i int, causes []RankedCause, recorded *figures) string {
	of := causes[i].Cause
	said := ""
	switch {
	case of == Ancestor && i > 0:
		said = "an ancestor's quota did " + formatShare(float64(recorded.ancestorStopped)/float64(recorded.stopped)) + " of it"
	case of == Inside && i > 0:
		said = "the quota of a cgroup in it did " + formatShare(float64(recorded.insideStopped)/float64(recorded.stopped)) + " of it"
	case slices.ContainsFunc(causes, func(other RankedCause) bool { return other.Cause != of && toldBy[other.Cause] != "" }):
		said = toldBy[of]
	}
	if i > 0 && said != "" {
		return said
	}
	all := "counters only"
	if c.Periods != nil && c.ThrottledPeriods != nil && *c.Periods > 0 {
		all += fmt.Sprintf("; %d of %d periods throttled", *c.ThrottledPeriods, *c.Periods)
	}
	if c.UsedCPUs != nil {
		all += fmt.Sprintf("; %.2f CPUs used on average", *c.UsedCPUs)
		if c.LimitCPUs != nil {
			all += fmt.Sprintf(" of %.4g", *c.LimitCPUs)
		}
	}
	if *c.StoppedHigh > 0 {
		all += "; stopped for " + c.stopped()
	}
	if said != "" {
		all += "; it is this " + said
	}
	return all
}

// stopped describes the stopped time with its bounds.
func (c *Counters) stopped() string {
	low, high, window := text.Duration(*c.StoppedLow), text.Duration(*c.StoppedHigh), text.Duration(c.Window)
	if low == high {
		return high + " of " + window
	}
	return low + " to " + high + " of " + window
}
