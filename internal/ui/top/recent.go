package top

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
)

// recentFor is the time by which a row's cause is judged: the cause of a single look changes from one to the next.
const recentFor = 10 * time.Second

// maxRecent bounds the looks kept per container, however short they are.
const maxRecent = 120

// look is the cause of one look at a container, and how much it cost.
type look struct {
	at      time.Time
	cause   diagnose.Cause
	stopped float64 // share of the window; below 0: not measured
}

// recent is the looks at one container within recentFor, the newest last.
type recent []look

// with appends a look and forgets those that are too old.
func (r recent) with(l look) recent {
	kept := make(recent, 0, len(r)+1)
	for _, old := range r {
		if l.at.Sub(old.at) < recentFor {
			kept = append(kept, old)
		}
	}
	kept = append(kept, l)
	return kept[max(0, len(kept)-maxRecent):]
}

// waits is what a look without stopped time counts for, against a second that was stopped: a cause such as neighbours
// costs no stopped time.
const waits = 0.01

// cause is the one that cost most within the time, the newest of those that cost the same. None counts only where
// nothing else does; "": never told, or most was stopped when it was not told.
func (r recent) cause() diagnose.Cause {
	cost := map[diagnose.Cause]float64{}
	var most diagnose.Cause
	known := false
	for _, l := range r {
		switch {
		case l.cause == "" && l.stopped <= 0: // nothing measured
			continue
		case l.cause != diagnose.None:
			cost[l.cause] += max(0, l.stopped) + waits
		}
		if !known || cost[l.cause] >= cost[most] {
			most, known = l.cause, true
		}
	}
	return most
}
