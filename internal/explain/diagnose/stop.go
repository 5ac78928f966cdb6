package diagnose

import "time"

// Stop is a stretch of time in which the quota of one cgroup held back at least one of the container's threads.
type Stop struct {
	From, To time.Duration // since Explanation.Start
	Cgroup   string
	Own      bool // the container's own cgroup, or one below it
}

// endStop tells that a level holds no thread back any longer, or that the recording ends.
func (a *Analysis) endStop(l *level) {
	if a.o.Stops != nil && l.heldAt < a.now {
		a.o.Stops(Stop{From: span(l.heldAt), To: span(a.now), Cgroup: l.Path, Own: l.Own})
	}
}

// endStops tells of those that go on.
func (a *Analysis) endStops() {
	for i := range a.levels.all {
		if l := &a.levels.all[i]; l.held > 0 {
			a.endStop(l)
		}
	}
}
