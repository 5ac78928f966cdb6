package diagnose

import (
	"fmt"

	"github.com/unthrottle/unthrottle/internal/text"
)

const (
	// BurstUse is the mean use, as a share of the limit, below which the limit is large enough. Only the shape
	// of the work is then bad. The services of the article fell over at 40 to 50 %; 80 % leaves room for
	// the waste of waiting.
	BurstUse = 0.80
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
func shaped(recorded *figures) bool {
	return recorded.throttled() && recorded.quotaKnown() && recorded.use() < BurstUse && recorded.below >= backBelow
}

// quotaKnown reports whether the binding quota is known, and one of the whole container, so that a shape can be compared with it.
func (recorded *figures) quotaKnown() bool {
	return recorded.quota > 0 && recorded.period > 0 && recorded.limit > 0 && !recorded.binding.Inside
}

// ambiguous reports whether the container is throttled and meets the conditions of neither shape nor shortage.
// It uses 80 to 95 % of the limit, or wanted stays above the limit although it uses less. The nearer of the
// two then names the cause.
func ambiguous(recorded *figures) bool {
	return recorded.throttled() && recorded.quotaKnown() && !shaped(recorded) && !demandAboveLimit(recorded)
}

// mayBeShortage and mayBeShape say which of the two is left: without wanted both are.
func mayBeShortage(recorded *figures) bool {
	return ambiguous(recorded) && (recorded.wantedUnknown || nearShortage(recorded))
}

func mayBeShape(recorded *figures) bool {
	return ambiguous(recorded) && (recorded.wantedUnknown || !nearShortage(recorded))
}

// nearShortage decides between the two: wanted stayed above the limit for long.
func nearShortage(recorded *figures) bool {
	return recorded.above >= shortagePeriods*recorded.period && recorded.use() >= BurstUse || recorded.below < backBelow
}

// longRuns reports whether single threads spent the quota. Each run of the pool that spent most must be
// longer than a period's quota, and the pool no wider than the limit fills. Other pools beside it do not make
// this a burst.
func (recorded *figures) longRuns() bool {
	p := recorded.spender()
	return p != nil && recorded.quotaKnown() && p.cost.typical() > recorded.quota && p.widest <= ceilCPUs(recorded.limit)
}

// spentByOthers reports whether an ancestor's quota stops the container, and others below that ancestor used more of it, or may
// have.
func (recorded *figures) spentByOthers() bool {
	return float64(recorded.ancestorStopped) >= ancestorShare*float64(recorded.stopped) &&
		recorded.ancestorStopped > 0 && (recorded.siblingsUnknown || recorded.siblingsUsed() > recorded.cpu)
}

func burst(recorded *figures) (found, bool) {
	rank := rankWide
	if recorded.spentByOthers() {
		return found{}, false
	}
	if mayBeShape(recorded) {
		rank = rankMaybe
	} else if !shaped(recorded) {
		return found{}, false
	}
	if !recorded.widthUnknown && (recorded.excess() <= wideExcess || recorded.longRuns()) {
		return found{}, false
	}
	f := found{cause: Burst, stopped: recorded.stopped, severity: recorded.quotaSeverity(), rank: rank,
		guilty: recorded.spenders(), near: rank == rankMaybe}
	f.evidence = fmt.Sprintf("mean use is %s of the limit of %s (%s), up to %d at once; %s of the CPU time in "+
		"throttled periods was wider than the limit; wanted was at or below the limit for %s of the time",
		formatCPUs(recorded.meanWidth), formatCPUs(recorded.limit), formatShare(recorded.use()), recorded.widest,
		formatShare(recorded.excess()), formatShare(recorded.below))
	f.verdict = fmt.Sprintf("%s; then the container %s.", spentText(recorded), stoppedText(recorded))
	if recorded.use() >= closeUse {
		f.verdict += fmt.Sprintf(" It is close to its limit too: it uses %s of it on average.", formatShare(recorded.use()))
	}
	return f, true
}

// spentText says which threads spent the quota, how wide and how fast: "32 threads of pool `x` ran 11 wide and
// spent the 200 ms quota in 19 ms".
func spentText(recorded *figures) string {
	s := recorded.sums
	if p := recorded.spender(); p != nil {
		who := text.Count(p.threads, "thread") + " of " + formatPool(p)
		if s.intervals == 0 || s.spentIn <= 0 {
			return fmt.Sprintf("%s ran up to %d wide against a limit of %s", who, p.widest, formatCPUs(recorded.limit))
		}
		wide := max(1, int(float64(s.spent)/float64(s.spentIn)+0.5))
		return fmt.Sprintf("%s ran %d wide and spent the %s quota in %s", who, wide, formatTime(recorded.quota),
			formatTime(s.spentIn/int64(s.intervals)))
	}
	return fmt.Sprintf("The container ran up to %d wide against a limit of %s", recorded.widest, formatCPUs(recorded.limit))
}

func tinyLimit(recorded *figures) (found, bool) {
	rank := rankWide
	if recorded.spentByOthers() {
		return found{}, false
	}
	if mayBeShape(recorded) {
		rank = rankMaybe
	} else if !shaped(recorded) {
		return found{}, false
	}
	if !recorded.widthUnknown && recorded.excess() > wideExcess && !recorded.longRuns() {
		return found{}, false
	}
	f := found{cause: TinyLimit, stopped: recorded.stopped, severity: recorded.quotaSeverity(), rank: rank, guilty: recorded.spenders(),
		near: rank == rankMaybe}
	width, who, itself := "hardly ever", "", ""
	if recorded.excess() > wideExcess {
		width, who, itself = "its spender never", " of "+formatPool(recorded.spender()), " itself"
	}
	f.evidence = fmt.Sprintf("mean use is %s of the limit of %s (%s), and %s more than %s at once; wanted was at or "+
		"below the limit for %s of the time",
		formatCPUs(recorded.meanWidth), formatCPUs(recorded.limit), formatShare(recorded.use()), width,
		formatCPUs(float64(ceilCPUs(recorded.limit))), formatShare(recorded.below))
	run := ""
	if p := recorded.spender(); p != nil {
		if typical := p.cost.typical(); typical > 0 {
			f.evidence += fmt.Sprintf("; a run of %s takes %s of CPU time", formatPool(p), formatTime(typical))
			if typical > recorded.quota {
				run = fmt.Sprintf(": %s of CPU time per run", formatTime(typical))
			}
		}
	}
	f.verdict = fmt.Sprintf("The work of one request%s is longer than the %s quota of a period%s; never wider than %s%s, the container %s.",
		who, formatTime(recorded.quota), run, formatCPUs(float64(ceilCPUs(recorded.limit))), itself, stoppedText(recorded))
	return f, true
}
