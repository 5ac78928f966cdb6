package diagnose

import "fmt"

const (
	// debtTicks bounds what is an everyday overshoot: a CPU notices at its next tick that the quota is used up, and
	// may have let a tick pass already.
	debtTicks = 2
	// debtShare of the stopped time must be in spells of at least a whole period in which nothing ran: a refill came
	// and went to a debt.
	debtShare = 0.25
)

func debt(of *figures) (found, bool) {
	if !of.throttled() || of.ownStopped == 0 || of.binding == nil || !of.binding.own || of.quota <= 0 {
		return found{}, false
	}
	tick := unknownTick
	if of.hz > 0 {
		tick = 1e9 / int64(of.hz)
	}
	everyday := of.quota + of.binding.BurstNS + debtTicks*tick*int64(max(1, of.sums.mostWide))
	if of.sums.most <= everyday || float64(of.stills) < debtShare*float64(of.stopped) {
		return found{}, false
	}
	f := found{cause: Debt, stopped: of.stills, severity: of.quotaSeverity(), rank: rankDebt}
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
