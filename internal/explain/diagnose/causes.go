package diagnose

import (
	"cmp"
	"slices"
	"time"
)

// found is a cause that the figures show.
type found struct {
	cause    Cause
	stopped  int64 // stopped time, or waiting, that it accounts for
	evidence string
	verdict  string
	// severity ranks what a cause belongs to: time lost to quotas, to other's threads, to too few CPUs. rank orders
	// causes of the same severity, the most telling first.
	severity int64
	rank     int
}

// Ranks among causes of stopped time. The more a cause explains of the others, the earlier: what an ancestor's quota
// does looks like a burst from inside; waste and debt make any load look too large; a shortage holds pools back too.
const (
	rankScheduler = iota
	rankAncestor
	rankWaste
	rankDebt
	rankShortage
	rankDebtToo
	rankPool
	rankWide // burst, tiny-limit
	rankPoolToo
	rankAncestorToo
	rankMaybe
)

// conclude names the causes and says the first in a sentence.
func conclude(e *Explanation, of *figures) {
	var all []found
	for _, judge := range []func(*figures) (found, bool){
		scheduler, ancestor, sliceWaste, debt, shortage, poolStopsPool, burst, tinyLimit, neighbours, tooFewCPUs,
	} {
		if f, ok := judge(of); ok && f.evidence != "" {
			all = append(all, f)
		}
	}
	slices.SortStableFunc(all, func(x, y found) int {
		return cmp.Or(cmp.Compare(y.severity, x.severity), cmp.Compare(x.rank, y.rank))
	})
	if len(all) == 0 {
		all = append(all, nothing(of))
	}
	e.Causes = nil
	for _, f := range all {
		c := RankedCause{Cause: f.cause, Evidence: f.evidence}
		if f.stopped > 0 {
			c.Stopped = new(time.Duration(f.stopped))
		}
		e.Causes = append(e.Causes, c)
	}
	e.Cause = all[0].cause
	e.Verdict = all[0].verdict
	if of.lost > 0 {
		e.Verdict += " " + confidence(of.lost)
	}
}

// quotaSeverity of causes of stopped time: the stopped time and the waiting for it.
func (of *figures) quotaSeverity() int64 { return of.stopped + of.quotaWaiting() }
