package budget

import "time"

// Snapshot is what the budget knows at a moment.
type Snapshot struct {
	// LimitCPUs is the limit in force; nil: there is none, or it is not known.
	LimitCPUs *float64
	// UsedCPUs is what the process used in the last quarter of a second or more; nil: not measured.
	UsedCPUs *float64
	// WantedCPUs is UsedCPUs and one CPU for each task that waits, a bound of what would be used without the budget; nil: not measured.
	WantedCPUs *float64
	// Periods and Stopped are the kernel's nr_periods and nr_throttled of the cgroup with the limit; nil: not measured.
	Periods, Stopped *uint64
	// Paced reports that App and Background hold back now: the phase of the period is known.
	Paced bool
	// GOMAXPROCS is the value that the budget set; 0: it left Go's or the user's.
	GOMAXPROCS int
	// Classes are the classes by their value.
	Classes [classes]ClassSnapshot
}

// ClassSnapshot is a class at a moment. Counts are since the start.
type ClassSnapshot struct {
	// Permits is how many tasks may run at once; 0: as many as come.
	Permits int
	// Running and Waiting are tasks now. Overdue are those of Running that lost their permit, since they do not return.
	Running, Waiting, Overdue int
	Started, Finished         uint64
	// Held counts how many times pacing made the next task wait; Late counts tasks rejected with [ErrLate].
	Held, Late uint64
	// Expected is how long one more task would wait.
	Expected time.Duration
}

// Snapshot returns what the budget knows now.
func (b *Budget) Snapshot() Snapshot {
	b.mu.Lock()
	s := b.seen
	b.mu.Unlock()
	b.pacer.mu.Lock()
	s.Paced = b.pacer.on.Load() && b.pacer.phase.Known()
	b.pacer.mu.Unlock()
	waiting := 0
	for i := range b.queues {
		q := &b.queues[i]
		q.mu.Lock()
		s.Classes[i] = ClassSnapshot{q.permits, q.running, q.waiting, q.overdue, q.started, q.finished, q.held, q.late, q.expected()}
		q.mu.Unlock()
		waiting += s.Classes[i].Waiting
	}
	if s.UsedCPUs != nil {
		wanted := *s.UsedCPUs + float64(waiting)
		s.WantedCPUs = &wanted
	}
	return s
}
