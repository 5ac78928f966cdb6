package diagnose

import "fmt"

const (
	// debtShare of the stopped time must be in spells of at least a whole period in which nothing ran: a refill came
	// and went to a debt.
	debtShare = 0.25
	// overShare of the CPU time in throttled periods beyond the quota is a debt too, though a part of a refill pays it.
	overShare = 0.10
	// debtLead of the stopped time must be the debt's where the demand is too large as well: without the debt that
	// would still be so.
	debtLead = 0.5
)

func debt(of *figures) (found, bool) {
	if !of.throttled() || of.ownStopped == 0 || of.binding == nil || !of.binding.own || of.quota <= 0 || of.sums.over == 0 {
		return found{}, false
	}
	if float64(of.stills) < debtShare*float64(of.stopped) && float64(of.sums.over) < overShare*float64(of.sums.used) {
		return found{}, false
	}
	// What is over is paid at the rate of the limit.
	paid := min(of.ownStopped, max(of.stills, int64(float64(of.sums.over)/of.limit)))
	f := found{cause: Debt, stopped: paid, severity: of.quotaSeverity(), rank: rankDebt}
	if (short(of) || shortAnyhow(of)) && float64(paid) < debtLead*float64(of.stopped) {
		f.rank = rankDebtToo
	}
	f.evidence = fmt.Sprintf("up to %s used in a period of %s with a quota of %s; then nothing ran for up to %s, %s in all in spells of a period or more",
		timeWords(of.sums.most), timeWords(of.period), timeWords(of.quota), timeWords(of.longestStill), timeWords(of.stills))
	if of.kernelTime >= 0 {
		f.evidence += fmt.Sprintf("; %s of its CPU time was in the kernel", shareWords(of.kernelTime))
	}
	who := "Work in the kernel"
	if p := of.spender(); p != nil {
		who += " of " + poolWords(p)
	}
	f.verdict = fmt.Sprintf("%s went on past the %s quota, up to %s in a period; the container then paid for it by standing still for up to %s (%.1f periods).",
		who, timeWords(of.quota), timeWords(of.sums.most), timeWords(of.longestStill), float64(of.longestStill)/float64(of.period))
	return f, true
}
