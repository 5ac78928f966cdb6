package observe

import (
	"slices"
	"time"
)

// Waiting is for how long a container's threads waited for a CPU over one window, by cause. All of it is thread time:
// two threads that wait for a second each waited for two. Quota, Ancestor and Contention add up to all waiting.
type Waiting struct {
	// Quota and Ancestor are waits for the next refill of the container's own quota, or of an ancestor's. Together they
	// are an upper bound.
	Quota, Ancestor time.Duration
	// Contention are waits for a CPU that others held, or other threads of the container. It is a lower bound.
	Contention time.Duration
	// Unclear is the part of Quota and Ancestor that may be contention: the width of both bounds.
	Unclear time.Duration
}

// Waiting returns the waits of the window, from the probe's histograms and the stopped time. ok is false where one of
// them was not measured.
//
// All waiting is exact: wanted less width, over the window. A quota's part is not, because the histograms do not say what
// wanted and width were while the container was stopped. At most it is wanted at its highest levels less width at its
// lowest, for as long as it was stopped. That is what happens: threads that are held back add up, and fewer run. At least
// it is the stopped time, since one thread waits then, or what the same rule leaves for the time in which it was not
// stopped. The two are equal where at most one thread wants a CPU, without a stop, and where it was stopped all the time.
//
// The levels share a quota's part as they share the throttled time (ThrottledByAll). Where no counter has gained yet it
// is the own quota's if there is one.
func (o *Observation) Waiting() (w Waiting, ok bool) {
	if len(o.Wanted) == 0 || len(o.Width) == 0 || o.StoppedLow == nil || o.StoppedHigh == nil {
		return Waiting{}, false
	}
	window := sum(o.Wanted)
	all := o.excess(window)
	held := min(all, o.excess(min(*o.StoppedHigh, window)))
	certain := max(*o.StoppedLow, all-o.excess(window-min(*o.StoppedLow, window)))
	w.Quota = time.Duration(float64(held) * o.ownShare())
	w.Ancestor, w.Contention, w.Unclear = held-w.Quota, all-held, held-min(certain, held)
	return w, true
}

// excess is the most that wanted can have been above width in a part of the window of length d.
func (o *Observation) excess(d time.Duration) time.Duration {
	return max(0, highest(o.Wanted, d)-lowest(o.Width, d))
}

// ownShare is the container's own share of the throttled time, 0 to 1.
func (o *Observation) ownShare() float64 {
	own, all := 0.0, 0.0
	for _, s := range o.ThrottledByAll {
		all += s.Seconds
		if s.Path == o.Container.Group.Path {
			own += s.Seconds
		}
	}
	switch {
	case all > 0:
		return own / all
	case len(o.Levels) > 0 && o.Levels[0].Limit.Limited():
		return 1
	}
	return 0
}

// highest returns level x time of the part of a histogram of length d that has the highest levels.
func highest(levels []time.Duration, d time.Duration) (area time.Duration) {
	for level, t := range slices.Backward(levels) {
		t = min(t, d)
		area, d = area+time.Duration(level)*t, d-t
	}
	return area
}

// lowest returns level x time of the part of a histogram of length d that has the lowest levels.
func lowest(levels []time.Duration, d time.Duration) (area time.Duration) {
	for level, t := range levels {
		t = min(t, d)
		area, d = area+time.Duration(level)*t, d-t
	}
	return area
}

func sum(levels []time.Duration) (all time.Duration) {
	for _, t := range levels {
		all += t
	}
	return all
}
