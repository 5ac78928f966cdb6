package diagnose

import (
	"fmt"

	"github.com/unthrottle/unthrottle/internal/text"
)

const (
	// burstUse is the mean use, as a share of the limit, below which the limit is large enough. Only the shape
	// of the work is then bad. The services of the article fell over at 40 to 50 %; 80 % leaves room for
	// the waste of waiting.
	burstUse = 0.80
	// closeUse is the mean use, as a share of the limit, from which on a burst has little unused quota to save. The shape
	// is still what stops the container, and a burst still helps: gunicorn at 82 % had a p99 of 188 ms, 61 ms with a
	// burst and 35 ms with twice the limit.
	closeUse = 0.70
	// wideExcess is the share of the CPU time in throttled periods that must come from more CPUs at once than
	// ceil(limit). A runtime's own thread that wakes up for 20 us does not make the container wide.
	wideExcess = 0.05
	// backBelow is the share of the window in which wanted must be at the limit or below.
	backBelow = 0.01
)

// shaped reports whether the mean use leaves room and wanted falls below the limit. Then the shape of the
// work is the problem, and not its amount.
func shaped(of *figures) bool {
	return of.throttled() && of.quotaKnown() && of.use() < burstUse && of.below >= backBelow
}

// quotaKnown reports whether the binding quota is known, and one of the whole container, so that a shape can be compared with it.
func (of *figures) quotaKnown() bool {
	return of.quota > 0 && of.period > 0 && of.limit > 0 && !of.binding.Inside
}

// ambiguous reports whether the container is throttled and meets the conditions of neither shape nor shortage.
// It uses 80 to 95 % of the limit, or wanted stays above the limit although it uses less. The nearer of the
// two then names the cause.
func ambiguous(of *figures) bool {
	return of.throttled() && of.quotaKnown() && !shaped(of) && !demandAboveLimit(of)
}

// nearShortage decides between the two: wanted stayed above the limit for long.
func nearShortage(of *figures) bool {
	return of.above >= shortagePeriods*of.period && of.use() >= burstUse || of.below < backBelow
}

// longRuns reports whether single threads spent the quota. Each run of the pool that spent most must be
// longer than a period's quota, and the pool no wider than the limit fills. Other pools beside it do not make
// this a burst.
func (of *figures) longRuns() bool {
	p := of.spender()
	return p != nil && of.quotaKnown() && p.cost.typical() > of.quota && p.widest <= ceilCPUs(of.limit)
}

// spentByOthers reports whether an ancestor's quota stops the container, and others below that ancestor used more of it.
func (of *figures) spentByOthers() bool {
	others := int64(0)
	for _, s := range of.siblings {
		others += s.cpu
	}
	return float64(of.ancestorStopped) >= ancestorShare*float64(of.stopped) && of.ancestorStopped > 0 && others > of.cpu
}

func burst(of *figures) (found, bool) {
	rank := rankWide
	if of.spentByOthers() {
		return found{}, false
	}
	if ambiguous(of) && !nearShortage(of) {
		rank = rankMaybe
	} else if !shaped(of) {
		return found{}, false
	}
	if of.excess() <= wideExcess || of.longRuns() {
		return found{}, false
	}
	f := found{cause: Burst, stopped: of.stopped, severity: of.quotaSeverity(), rank: rank, guilty: of.spenders(), near: rank == rankMaybe}
	f.evidence = fmt.Sprintf("mean use is %s of the limit of %s (%s), up to %d at once; %s of the CPU time in "+
		"throttled periods was wider than the limit; wanted was at or below the limit for %s of the time",
		formatCPUs(of.meanWidth), formatCPUs(of.limit), formatShare(of.use()), of.widest, formatShare(of.excess()), formatShare(of.below))
	f.verdict = fmt.Sprintf("%s; then the container %s.", spentText(of), stoppedText(of))
	if of.use() >= closeUse {
		f.verdict += fmt.Sprintf(" It is close to its limit too: it uses %s of it on average.", formatShare(of.use()))
	}
	return f, true
}

// spentText says which threads spent the quota, how wide and how fast: "32 threads of pool `x` ran 11 wide and
// spent the 200 ms quota in 19 ms".
func spentText(of *figures) string {
	s := of.sums
	if p := of.spender(); p != nil {
		who := text.Count(p.threads, "thread") + " of " + formatPool(p)
		if s.intervals == 0 || s.spentIn <= 0 {
			return fmt.Sprintf("%s ran up to %d wide against a limit of %s", who, p.widest, formatCPUs(of.limit))
		}
		wide := max(1, int(float64(s.spent)/float64(s.spentIn)+0.5))
		return fmt.Sprintf("%s ran %d wide and spent the %s quota in %s", who, wide, formatTime(of.quota),
			formatTime(s.spentIn/int64(s.intervals)))
	}
	return fmt.Sprintf("The container ran up to %d wide against a limit of %s", of.widest, formatCPUs(of.limit))
}

func tinyLimit(of *figures) (found, bool) {
	rank := rankWide
	if of.spentByOthers() {
		return found{}, false
	}
	if ambiguous(of) && !nearShortage(of) {
		rank = rankMaybe
	} else if !shaped(of) {
		return found{}, false
	}
	if of.excess() > wideExcess && !of.longRuns() {
		return found{}, false
	}
	f := found{cause: TinyLimit, stopped: of.stopped, severity: of.quotaSeverity(), rank: rank, guilty: of.spenders(),
		near: rank == rankMaybe}
	width, who, itself := "hardly ever", "", ""
	if of.excess() > wideExcess {
		width, who, itself = "its spender never", " of "+formatPool(of.spender()), " itself"
	}
	f.evidence = fmt.Sprintf("mean use is %s of the limit of %s (%s), and %s more than %s at once; wanted was at or "+
		"below the limit for %s of the time",
		formatCPUs(of.meanWidth), formatCPUs(of.limit), formatShare(of.use()), width,
		formatCPUs(float64(ceilCPUs(of.limit))), formatShare(of.below))
	run := ""
	if p := of.spender(); p != nil {
		if typical := p.cost.typical(); typical > 0 {
			f.evidence += fmt.Sprintf("; a run of %s takes %s of CPU time", formatPool(p), formatTime(typical))
			if typical > of.quota {
				run = fmt.Sprintf(": %s of CPU time per run", formatTime(typical))
			}
		}
	}
	f.verdict = fmt.Sprintf("The work of one request%s is longer than the %s quota of a period%s; never wider than %s%s, the container %s.",
		who, formatTime(of.quota), run, formatCPUs(float64(ceilCPUs(of.limit))), itself, stoppedText(of))
	return f, true
}
