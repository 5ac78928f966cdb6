package pace

import "time"

// Period is the moment in a period of the quota.
type Period struct {
	Quota, Length time.Duration
	// Elapsed is the time since the period began, Used the CPU time used in it.
	Elapsed, Used time.Duration
}

// Work is what wants to run.
type Work struct {
	// Cost is the CPU time of one task. Running is how many tasks run, without the one that asks.
	Cost    time.Duration
	Running int
	// Reserve is the CPU time kept in a whole period for other work; Slack what is kept until its end.
	Reserve, Slack time.Duration
}

// Decide reports whether a task may start now, or after which time to ask again. The wait is above 0 and at most one period.
// A period that makes no sense, with a clock that jumped, lets work run.
func Decide(p Period, w Work) (now bool, wait time.Duration) {
	if p.Quota <= 0 || p.Length <= 0 || p.Elapsed < 0 || p.Elapsed >= p.Length || p.Used < 0 || w.Cost < 0 {
		return true, 0
	}
	rest := p.Length - p.Elapsed
	threads := float64(w.Running + 1)
	left := float64(p.Quota - p.Used - w.Slack)
	reserve := float64(w.Reserve) / float64(p.Length) // CPUs
	// left = (threads + reserve) * r has the largest rest r that the quota covers whatever the cost.
	start := rest
	if left < threads*float64(min(w.Cost, rest))+reserve*float64(rest) {
		start = min(rest, time.Duration(max(0, left)/(threads+reserve)))
	}
	// What is left of the task then is of the next quota. Where that is too small, a start with a fresh one may be early enough.
	fresh := float64(p.Quota - w.Slack)
	over := func(from float64) bool { return threads*(float64(w.Cost)-from) > fresh }
	if over(float64(start)) && !over(fresh/(threads+reserve)) {
		return false, rest
	}
	return start == rest, rest - start
}
