package verdict

import (
	"math"
	"time"

	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/txn"
)

// longerStopped is by how much of the time a container must be stopped longer than before to be worse off, at the least that it can be
// now against the most that it was.
const longerStopped = 0.01

// leastSince is for how long a remedy must have been in force for its stops to tell.
const leastSince = 10 * time.Second

// StoppedLonger reports whether a container is surely stopped longer than before a change: now is the least that it can be, in seconds per
// second. Where before was not measured it is not known, and false.
func StoppedLonger(before *txn.Figures, now float64) bool {
	return before != nil && before.StoppedPerSecondHigh != nil && now > *before.StoppedPerSecondHigh+longerStopped
}

// StopsSince are the stops of a container between two readings of its counters, by observe.Stopped, on so many CPUs; nil: the readings
// are of different cgroups, or too little time lies between them.
//
// Worked example: throttled for 400 ms more after 10 s, on 4 CPUs: stopped for 10 to 40 ms a second.
func StopsSince(was, is *txn.Counted, before *txn.Figures, cpus int) *txn.Stops {
	if was == nil || is == nil || len(was.Levels) == 0 || len(is.Levels) < len(was.Levels) {
		return nil
	}
	window := is.At.Sub(was.At)
	if window < leastSince {
		return nil
	}
	t := observe.Throttle{Window: window, CPUs: cpus, Hidden: len(is.Levels) > len(was.Levels)}
	for i, then := range was.Levels {
		now := is.Levels[i]
		gained := seconds(now.ThrottledSeconds - then.ThrottledSeconds)
		if now.CgroupID != then.CgroupID || now.Periods < then.Periods || now.ThrottledPeriods < then.ThrottledPeriods || gained < 0 {
			return nil
		}
		limited := then.Limited || now.Limited
		switch {
		case i == 0:
			t.OwnQuota, t.Own = limited, &gained
			t.Periods, t.ThrottledPeriods = now.Periods-then.Periods, now.ThrottledPeriods-then.ThrottledPeriods
			if then.LocalSeconds != nil && now.LocalSeconds != nil {
				t.Local = new(max(0, seconds(*now.LocalSeconds-*then.LocalSeconds)))
			}
		case limited:
			t.Ancestors = append(t.Ancestors, observe.LevelThrottle{Throttled: gained})
		}
	}
	v := observe.Stopped(t)
	if v.Low == nil || v.High == nil {
		return nil
	}
	s := &txn.Stops{Seconds: window.Seconds(), StoppedPerSecondLow: v.Low.Seconds() / window.Seconds(),
		StoppedPerSecondHigh: v.High.Seconds() / window.Seconds()}
	s.Longer = StoppedLonger(before, s.StoppedPerSecondLow)
	return s
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s * float64(time.Second))) }
