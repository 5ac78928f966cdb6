package diagnose

import (
	"fmt"
	"slices"
	"time"
)

// waitingShare is the share of the demand from which on waiting for a CPU matters: all work then takes a
// tenth longer. It is so for samples too, which know what a thread's runs waited on average.
const waitingShare = 0.10

// Where no delays are known at all, as in counters, waiting matters from blindShare of the demand on if it is that of blindLeast
// threads on average: a thread that hardly runs waits as long as it runs.
const (
	blindShare = 0.25
	blindLeast = 0.1
)

// noDelay is the 99th percentile of what a pool's runs wait below which waiting for CPUs is no finding.
const noDelay = time.Millisecond

// matters reports whether waiting is a relevant part of the demand, and long enough in the window and for a single
// wake-up to be noticed.
func (recorded *figures) matters(waiting int64) bool {
	demand := float64(recorded.demand() - recorded.quotaWaiting())
	if recorded.delaysUnknown {
		return float64(waiting) >= max(blindShare*demand, blindLeast*float64(recorded.window))
	}
	return waiting > 0 && float64(waiting) >= waitingShare*demand &&
		float64(waiting) >= Negligible*float64(recorded.window) && recorded.late()
}

// late reports whether a pool that works waits for CPUs long enough to be noticed. Where pools answer clients, only they
// count. One without wake-ups may: it runs on and on. A thread waits when it is woken, and each time that its CPU is taken from
// it: where a wake-up gets a CPU at once and loses it soon, the delay alone shows nothing. Where a quota stops the container,
// waiting within a run may be for that, and only delays tell.
func (recorded *figures) late() bool {
	serves := slices.ContainsFunc(recorded.pools, func(p *pool) bool { return p.serves(recorded) })
	return slices.ContainsFunc(recorded.pools, func(p *pool) bool {
		q := p.delay.quantiles()
		if !recorded.throttled() {
			q = p.waited.quantiles()
		}
		return p.doesWork(recorded) && (p.serves(recorded) || !serves) && (q == nil || q.Count < minRuns || q.P99 >= noDelay)
	})
}

// waitingForOthers is the waiting for CPUs that others held. Clients of the container are not among them: they run by
// turns with it, and would have no work without it. Nor is the recorder.
func (recorded *figures) waitingForOthers() int64 {
	return recorded.waitingForNeighbours() + recorded.waiting[byHost] + recorded.waiting[bySteal]
}

func (recorded *figures) waitingForNeighbours() int64 {
	return max(0, recorded.waiting[byNeighbour]-recorded.blameless)
}

// neighbour is the neighbour for which the container waited longest, no client of it and not this program; nil: there is none.
func (recorded *figures) neighbour() *NeighbourUse {
	for i := range recorded.neighbours {
		if n := &recorded.neighbours[i]; n.Waited > 0 && !n.Client && !n.Recorder {
			return n
		}
	}
	return nil
}

func neighbours(recorded *figures) (found, bool) {
	waited := recorded.waitingForOthers()
	if !recorded.matters(waited) {
		return found{}, false
	}
	f := found{cause: Neighbours, wall: recorded.behind.others, waited: waited, severity: waited}
	if recorded.throttled() && recorded.quotaKnown() {
		// Of many threads that wait at once, the limit lets a few run. The rest waits for these, whichever
		// thread holds the CPUs. Without neighbours they would spend the quota sooner.
		f.severity = min(waited, recorded.allowedWaiting)
	}
	mostOfAll := "" // nobody is known by name
	if n := recorded.neighbour(); n != nil {
		mostOfAll = ", most of all " + n.Name
		f.guilty = []string{n.Name}
		f.evidence = fmt.Sprintf("its threads waited for %s, %s of thread time", n.Name, formatTime(n.Waited.Nanoseconds()))
		if n.Throttled != nil && *n.Throttled {
			f.evidence += ", and is throttled itself"
		}
		if n.Toggling != nil && *n.Toggling {
			f.evidence += ", and swings between many CPUs and none"
		}
		f.evidence += "; "
	}
	f.evidence += fmt.Sprintf("waiting for CPUs of others: %s of thread time (neighbours %s, the host's system %s, "+
		"steal %s), against %s of CPU time",
		formatTime(waited), formatTime(recorded.waitingForNeighbours()), formatTime(recorded.waiting[byHost]),
		formatTime(recorded.waiting[bySteal]), formatTime(recorded.cpu))
	f.verdict = fmt.Sprintf("Not its quota but others on the same CPUs: its threads were runnable and did not run "+
		"for %s of thread time while others held the CPUs%s; they ran for %s.",
		formatTime(waited), mostOfAll, formatTime(recorded.cpu))
	if recorded.throttled() {
		f.verdict = fmt.Sprintf("Others on the same CPUs cost more than the quota: %s of thread time waited while "+
			"others held the CPUs%s; quotas held back %s.",
			formatTime(waited), mostOfAll, formatTime(recorded.quotaWaiting()))
	}
	return f, true
}
