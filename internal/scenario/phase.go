package scenario

import "time"

// WakeAfter returns when a sleep ends that begins at a time, both from the workload's start. The factor of a
// phase divides the sleep, and no sleep is longer than two scenarios. A sleep that meets a phase without load
// lasts to that phase's end, and then begins. false: the sleep does not end, because no load comes any more.
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
