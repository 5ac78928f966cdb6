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

func debt(of *figures) (found, bool) {
	if !of.throttled() || of.ownStopped == 0 || of.binding == nil || !of.binding.Own || of.quota <= 0 || of.sums.over == 0 {
		return found{}, false
	}
	if float64(of.longIdleHeld) < debtShare*float64(of.stopped) && float64(of.sums.over) < overShare*float64(of.sums.used) {
		return found{}, false
	}
	// The limit is the rate at which the container pays its debt.
	paid := min(of.ownStopped, max(of.longIdleHeld, int64(float64(of.sums.over)/of.limit)))
	f := found{cause: Debt, stopped: paid, severity: of.quotaSeverity(), rank: rankDebt, guilty: of.spenders()}
	if (demandAboveLimit(of) || demandAboveOwnLimit(of)) && float64(paid) < debtLead*float64(of.stopped) {
		f.rank = rankDebtToo
	}
	f.evidence = fmt.Sprintf("up to %s used in a period of %s with a quota of %s; then nothing ran for up to %s, %s "+
		"in all in intervals of a period or more",
		formatTime(of.sums.most), formatTime(of.period), formatTime(of.quota), formatTime(of.longestIdleHeld), formatTime(of.longIdleHeld))
	if of.kernelTime >= 0 {
		f.evidence += fmt.Sprintf("; %s of its CPU time was in the kernel", formatShare(of.kernelTime))
	}
	who := "Work in the kernel"
	if p := of.spender(); p != nil {
		who += " of " + formatPool(p)
	}
	f.verdict = fmt.Sprintf("%s went on past the %s quota, up to %s in a period; the container then paid for it, "+
		"stopped for up to %s (%.1f periods).",
		who, formatTime(of.quota), formatTime(of.sums.most), formatTime(of.longestIdleHeld), float64(of.longestIdleHeld)/float64(of.period))
	return f, true
}
