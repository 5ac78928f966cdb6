package scenario

import "time"

// WakeAfter is when a sleep ends that begins at a moment, both from the workload's
// start: the phase divides it, if there are any, and no sleep is longer than two
// scenarios. One that a phase without load meets lasts to that phase's end, and then
// begins. false: it does not end, for nothing comes any more.
func WakeAfter(phases []Phase, at, sleep time.Duration) (time.Duration, bool) {
	from := time.Duration(0)
	for i, p := range phases {
		to, last := from+p.For, i == len(phases)-1
		if at < to || last {
			if p.Factor > 0 {
				return at + time.Duration(min(float64(sleep)/p.Factor, float64(2*MaxDuration))), true
			}
			if last {
				return 0, false
			}
			at = to
		}
		from = to
	}
	return at + sleep, true
}
