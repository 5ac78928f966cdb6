package diagnose

import (
	"fmt"

	"github.com/unthrottle/unthrottle/internal/text"
)

const (
	// burstUse: below this share of the limit in use on average, the limit is large enough for the work and its
	// shape is what hurts. Seed 000's services fell over at 40 to 50 %; 80 % leaves room for the waste of waiting.
	burstUse = 0.80
	// wideExcess is the share of the CPU time in throttled periods by which more CPUs than ceil(limit) must have
	// been in use at once: a runtime's own thread that looks in for 20 us is not yet a width.
	wideExcess = 0.05
	// backBelow is the share of the window in which wanted must be back at the limit or below.
	backBelow = 0.01
)

// shaped says whether the mean use leaves room and wanted comes back below the limit: then it is not the amount of
// work that is too large but its shape.
func shaped(of *figures) bool {
	return of.throttled() && of.ownsStop() && of.use() < burstUse && of.below >= backBelow
}

// ownsStop says whether the quota that binds is known, so that a shape can be held against it.
func (of *figures) ownsStop() bool { return of.quota > 0 && of.period > 0 && of.limit > 0 }

// between says whether the container is throttled and meets the conditions of neither shape nor shortage: more than
// 80 % of the limit used and less than 95 %, or wanted that stays above the limit though less is used. It is then
// called by which of the two it is nearer to.
func between(of *figures) bool {
	return of.throttled() && of.ownsStop() && !shaped(of) && !short(of)
}

// nearShortage decides between the two: wanted stayed above the limit for long.
func nearShortage(of *figures) bool {
	return of.above >= shortagePeriods*of.period && of.use() >= burstUse || of.below < backBelow
}

// longRuns says whether single threads spent the quota: each run of the pool that spent most is longer than a period's
// quota, and as many at once as the limit fills spent it. What other pools do beside them does not make it a burst.
func (of *figures) longRuns() bool {
	p := of.spender()
	return p != nil && of.ownsStop() && p.cost.typical() > of.quota && p.widest <= ceilCPUs(of.limit)
}

func burst(of *figures) (found, bool) {
	rank := rankWide
	if between(of) && !nearShortage(of) {
		rank = rankMaybe
	} else if !shaped(of) {
		return found{}, false
	}
	if of.excess() <= wideExcess || of.longRuns() {
		return found{}, false
	}
	f := found{cause: Burst, stopped: of.stopped, severity: of.quotaSeverity(), rank: rank}
	f.evidence = fmt.Sprintf("mean use is %s of the limit of %s (%s), up to %d at once; %s of the CPU time in throttled periods was wider than the limit; wanted was at or below the limit for %s of the time",
		cpuWords(of.meanWidth), cpuWords(of.limit), shareWords(of.use()), of.widest, shareWords(of.excess()), shareWords(of.below))
	f.verdict = fmt.Sprintf("%s; the container then %s.", spent(of), stoodStill(of))
	return f, true
}

// spent says who spent the quota, how wide and how fast: "32 threads of pool `x` ran 11 wide and spent the 200 ms quota
// in 19 ms".
func spent(of *figures) string {
	s := of.sums
	if p := of.spender(); p != nil {
		who := text.Count(p.threads, "thread") + " of " + poolWords(p)
		if s.spells == 0 || s.spentIn <= 0 {
			return fmt.Sprintf("%s ran up to %d wide against a limit of %s", who, p.widest, cpuWords(of.limit))
		}
		wide := max(1, int(float64(s.spent)/float64(s.spentIn)+0.5))
		return fmt.Sprintf("%s ran %d wide and spent the %s quota in %s", who, wide, timeWords(of.quota), timeWords(s.spentIn/int64(s.spells)))
	}
	return fmt.Sprintf("The container ran up to %d wide against a limit of %s", of.widest, cpuWords(of.limit))
}

func tinyLimit(of *figures) (found, bool) {
	rank := rankWide
	if between(of) && !nearShortage(of) {
		rank = rankMaybe
	} else if !shaped(of) {
		return found{}, false
	}
	if of.excess() > wideExcess && !of.longRuns() {
		return found{}, false
	}
	f := found{cause: TinyLimit, stopped: of.stopped, severity: of.quotaSeverity(), rank: rank}
	width, who, itself := "hardly ever", "", ""
	if of.excess() > wideExcess {
		width, who, itself = "its spender never", " of "+poolWords(of.spender()), " itself"
	}
	f.evidence = fmt.Sprintf("mean use is %s of the limit of %s (%s), and %s more than %s at once; wanted was at or below the limit for %s of the time",
		cpuWords(of.meanWidth), cpuWords(of.limit), shareWords(of.use()), width, cpuWords(float64(ceilCPUs(of.limit))), shareWords(of.below))
	run := ""
	if p := of.spender(); p != nil {
		if typical := p.cost.typical(); typical > 0 {
			f.evidence += fmt.Sprintf("; a run of %s takes %s of CPU time", poolWords(p), timeWords(typical))
			if typical > of.quota {
				run = fmt.Sprintf(": %s of CPU time per run", timeWords(typical))
			}
		}
	}
	f.verdict = fmt.Sprintf("The work of one request%s is longer than the %s quota of a period%s; never wider than %s%s, the container %s.",
		who, timeWords(of.quota), run, cpuWords(float64(ceilCPUs(of.limit))), itself, stoodStill(of))
	return f, true
}
