package top

import (
	"math"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/explain/live"
	"github.com/unthrottle/unthrottle/internal/see/observe"
)

const (
	// waitsShare is the share of wanted threads that did not run from which waiting is a cause although no quota
	// throttled. It must be waitsLeast threads on average too: a thread that hardly runs waits as long as it runs.
	waitsShare = 0.25
	waitsLeast = 0.1
	// noise is stopped time per second below which a container counts as fine. The kernel's own timers throttle a
	// container with just enough quota for a millisecond now and then.
	noise = 0.005
)

// causeOf is the likeliest cause of one window, as far as counters and the histograms of width and wanted tell; which
// pool it was, and whether kernel work was to blame, only a recording tells. "": not told.
func causeOf(o *observe.Observation) diagnose.Cause {
	width, known := observe.Mean(o.Width)
	wanted, wantedKnown := observe.Mean(o.Wanted)
	_, high, measured := o.StoppedPerSecond()
	switch {
	case !measured:
		return ""
	case high < noise && known && wantedKnown:
		return waiting(o, width, wanted)
	case high < noise:
		return diagnose.None
	}
	cause := live.FromCounters(*o, "").Cause
	if cause == diagnose.Burst && known && o.LimitCPUs != nil && observe.Most(o.Width) <= int(math.Ceil(*o.LimitCPUs)) {
		return diagnose.TinyLimit
	}
	return cause
}

// waiting judges a container that no quota held back.
func waiting(o *observe.Observation, width, wanted float64) diagnose.Cause {
	switch {
	case wanted-width < max(waitsLeast, waitsShare*wanted):
		return diagnose.None
	case o.CPUsAllowed.Size() > 0 && width >= 0.9*float64(o.CPUsAllowed.Size()):
		return diagnose.Cpuset
	}
	return diagnose.Neighbours
}
