package simulate

import "time"

const (
	// slotLength is that of the load generator of real runs.
	slotLength = 250 * time.Millisecond
	// goodShare is how many of a second's requests must be answered in time for a
	// service to count as recovered.
	goodShare = 0.9
)

// slot counts the requests that arrived in a slot of time, and those of them
// that were answered in time.
type slot struct{ intended, good uint32 }

// slot of a time from the workload's start; one that nobody looks at where no
// account is kept.
func (c *clients) slot(at time.Duration) *slot {
	if c.slots == nil {
		return &slot{}
	}
	return &c.slots[min(int(at/slotLength), len(c.slots)-1)]
}

// recovery is how long after the load's last fall it took until every further
// second was good; nil: the load does not fall, or the last second was not good.
func (c *clients) recovery() *float64 {
	if c.slots == nil {
		return nil
	}
	const perSecond = int(time.Second / slotLength)
	all := len(c.slots) - 1 // the last one has hardly begun
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
