package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// found is a cause that the figures show.
type found struct {
	cause    Cause
	stopped  int64 // stopped time that the cause accounts for
	waited   int64 // waiting that it accounts for, summed over threads; 0: not told apart
	wall     int64 // wall time with a thread that waited, where nothing was stopped for it
	evidence string
	verdict  string
	guilty   []string // see RankedCause
	suffers  string
	// severity is the time lost to what the cause belongs to: quotas, other containers' threads, or too few
	// CPUs. rank orders causes of the same severity, the most specific first.
	severity int64
	rank     int
	// near: the conditions of this cause are met by little, so that a small difference would make another one the first.
	near bool
}

// nearShare is how near to a bound a share counts as near.
const nearShare = 0.1

// Ranks among causes of stopped time. A cause that explains others comes first. An ancestor's quota looks
// like a burst from inside the container. Waste and debt make any load look too large. A shortage holds pools
// back too, but where a pool that answers waits for one that takes what it gets, the second is the cause.
const (
	rankScheduler = iota
	rankAncestor
	rankInside
	rankWaste
	rankDebt
	rankStarved
	rankShortage
	rankDebtToo
	rankPool
	rankWide // burst, tiny-limit
	rankPoolToo
	rankAncestorToo
	rankInsideToo
	rankMaybe
)

// conclude sets the causes, and makes the first one the verdict.
func conclude(e *Explanation, recorded *figures) {
	var findings []found
	for _, judge := range []func(*figures) (found, bool){
		scheduler, ancestor, inside, sliceWaste, debt, shortage, poolStopsPool, threadStopsPool, burst, tinyLimit,
		neighbours, tooFewCPUs, realtime,
	} {
		if f, ok := judge(recorded); ok && f.evidence != "" {
			findings = append(findings, f)
		}
	}
	// Stopped time that no cause accounts for is ranked by what it cost, like all others.
	if rest, ok := unexplained(recorded); ok && !slices.ContainsFunc(findings, func(f found) bool { return f.stopped > 0 }) {
		findings = append(findings, rest)
	}
	if len(findings) == 0 {
		findings = append(findings, nothingWrong(recorded))
	}
	slices.SortStableFunc(findings, func(x, y found) int {
		return cmp.Or(cmp.Compare(y.severity, x.severity), cmp.Compare(x.rank, y.rank))
	})
	for i := range findings {
		recorded.cost(&findings[i])
	}
	// The first decides, by what all threads lost. The others follow by wall time, which is one unit for all.
	slices.SortStableFunc(findings[1:], func(x, y found) int { return cmp.Compare(y.wall, x.wall) })
	e.Causes = nil
	for _, f := range findings {
		c := RankedCause{Cause: f.cause, Evidence: f.evidence, Guilty: f.guilty, Suffers: f.suffers}
		if f.stopped > 0 {
			c.Stopped = new(time.Duration(f.stopped))
		}
		if f.wall > 0 {
			c.Wall = new(time.Duration(f.wall))
		}
		if f.waited > 0 {
			c.Waited = new(time.Duration(f.waited))
		}
		e.Causes = append(e.Causes, c)
	}
	e.Cause = findings[0].cause
	e.Verdict = findings[0].verdict
	if len(findings) > 1 && (findings[0].near || findings[1].near) && findings[0].severity == findings[1].severity &&
		findings[1].stopped > 0 {
		e.Verdict += fmt.Sprintf(" It is near to %s: %s.", findings[1].cause, findings[1].evidence)
	}
	if recorded.lost > 0 {
		e.Verdict += " " + lowConfidence(recorded.lost)
	}
}

// Undecided takes the causes back, since what was measured is of two limits at once. why is that of recording.LimitsChanged.
func (e *Explanation) Undecided(why string) {
	e.Cause, e.Causes = "", nil
	e.LimitCPUs, e.LimitUnknown, e.RunnablePerCore, e.CostOfWidth = nil, true, nil, nil
	e.NotMeasured = append(e.NotMeasured, "limit: "+why)
	e.Verdict = fmt.Sprintf("No cause can be told: %s, and the figures are of both. Look again.", why)
}

// cost completes what a cause cost in wall time and in thread time. Of stopped time that a cause accounts for in part, the
// threads' part is not known.
func (recorded *figures) cost(f *found) {
	if f.stopped <= 0 {
		return
	}
	f.wall = f.stopped
	switch {
	case f.cause == Ancestor:
		f.waited = recorded.waiting[byAncestor]
	case f.cause != Pool && f.stopped == recorded.stopped:
		f.waited = recorded.quotaWaiting()
	}
}

// spenders names the pool that spent the quota; nil: none is known.
func (recorded *figures) spenders() []string {
	if p := recorded.spender(); p != nil {
		return []string{p.key.name}
	}
	return nil
}

// quotaSeverity is the severity of causes of stopped time: the stopped time and the waiting for it.
func (recorded *figures) quotaSeverity() int64 { return recorded.stopped + recorded.quotaWaiting() }
