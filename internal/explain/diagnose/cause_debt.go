package diagnose

import "fmt"

const (
	// debtShare is the share of the stopped time that must lie in intervals of a whole period or more in
	// which nothing ran. In such an interval a refill came and went to a debt.
	debtShare = 0.25
	// overShare is the share of CPU time beyond the quota in throttled periods that is a debt, even if a part
	// of a refill pays it.
	overShare = 0.10
	// debtLead is the share of the stopped time that the debt must account for if the demand is too large as
	// well. The demand would stay too large without the debt.
	debtLead = 0.5
)

func debt(recorded *figures) (found, bool) {
	if !recorded.throttled() || recorded.ownStopped == 0 || !recorded.ownQuota ||
		recorded.quota <= 0 || recorded.sums.over == 0 {
		return found{}, false
	}
	if float64(recorded.longIdleHeld) < debtShare*float64(recorded.stopped) &&
		float64(recorded.sums.over) < overShare*float64(recorded.sums.used) {
		return found{}, false
	}
	// A debt is paid by the refills of the quota that it is of, whatever limit another level has.
	rate := float64(recorded.quota) / float64(max(1, recorded.period))
	paid := min(recorded.ownStopped, max(recorded.longIdleHeld, int64(float64(recorded.sums.over)/rate)))
	f := found{cause: Debt, stopped: paid, severity: recorded.quotaSeverity(), rank: rankDebt, guilty: recorded.spenders()}
	if (demandAboveLimit(recorded) || demandAboveOwnLimit(recorded)) && float64(paid) < debtLead*float64(recorded.stopped) {
		f.rank = rankDebtToo
	}
	f.evidence = fmt.Sprintf("up to %s used in a period of %s with a quota of %s; then nothing ran for up to %s, %s "+
		"in all in intervals of a period or more",
		formatTime(recorded.sums.most), formatTime(recorded.period), formatTime(recorded.quota),
		formatTime(recorded.longestIdleHeld), formatTime(recorded.longIdleHeld))
	if recorded.kernelTime >= 0 {
		f.evidence += fmt.Sprintf("; %s of its CPU time was in the kernel", formatShare(recorded.kernelTime))
	}
	who := "Work in the kernel"
	if p := recorded.spender(); p != nil {
		who += " of " + formatPool(p)
	}
	f.verdict = fmt.Sprintf("%s went on past the %s quota, up to %s in a period; the container then paid for it, "+
		"stopped for up to %s (%.1f periods).",
		who, formatTime(recorded.quota), formatTime(recorded.sums.most), formatTime(recorded.longestIdleHeld),
		float64(recorded.longestIdleHeld)/float64(recorded.period))
	return f, true
}
