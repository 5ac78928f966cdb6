package simulate

import "time"

const (
	// slotLength is that of the load generator of real runs.
	slotLength = 250 * time.Millisecond
	// goodShare is the share of a second's requests with a timely answer from which on a service counts as
	// recovered.
	goodShare = 0.9
)

// slot counts the requests that arrived in a slot of time, and those with a timely answer.
type slot struct{ intended, good uint32 }

// slot returns the slot of a time from the workload's start. Without an account it is one that no code reads.
func (c *clients) slot(at time.Duration) *slot {
	if c.slots == nil {
		return &slot{}
	}
	return &c.slots[min(int(at/slotLength), len(c.slots)-1)]
}

// recovery returns the time from the load's last fall until every further second was good. nil: the load does
// not fall, or the last second was not good.
func (c *clients) recovery() *float64 {
	if c.slots == nil {
		return nil
	}
	const perSecond = int(time.Second / slotLength)
	all := len(c.slots) - 1 // the last slot has hardly begun
	first := int(fall(c.work.Phases) / slotLength)
	recovered := all
	for from := all - perSecond; from >= first; from-- {
		var sum slot
		for _, one := range c.slots[from : from+perSecond] {
			sum.intended += one.intended
			sum.good += one.good
		}
		if float64(sum.good) < goodShare*float64(sum.intended) {
			break
		}
		recovered = from
	}
	if recovered >= all {
		return nil
	}
	seconds := float64(recovered-first) * slotLength.Seconds()
	return &seconds
}
