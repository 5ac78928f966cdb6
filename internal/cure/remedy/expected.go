package remedy

import (
	"github.com/unthrottle/unthrottle/internal/cure/txn"
)

// expectNoQuota: without a quota nothing stops it. It uses at least what it
// did, since what was held back comes on top, and at most its CPUs.
func (p *planner) expectNoQuota(width float64) {
	low, high := 0.0, 0.0
	p.plan.Expected = &txn.Expected{StoppedPerSecondLow: &low, StoppedPerSecondHigh: &high}
	if len(p.plan.Skipped) > 0 {
		// A quota was left that may bind now and then.
		p.plan.Expected.StoppedPerSecondHigh = p.stoppedHigh()
	}
	p.expectUse(width)
}

// expectQuota: with a quota of at least the old one it is stopped at most as
// long as it was.
func (p *planner) expectQuota(limit float64) {
	low := 0.0
	p.plan.Expected = &txn.Expected{StoppedPerSecondLow: &low, StoppedPerSecondHigh: p.stoppedHigh()}
	p.expectUse(limit)
}

func (p *planner) stoppedHigh() *float64 {
	if p.r.Observed == nil {
		return nil
	}
	return p.r.Observed.StoppedHigh
}

// expectUse: between what it used and the most it can use.
func (p *planner) expectUse(most float64) {
	o := p.r.Observed
	if o == nil || o.UsedCPUs == nil {
		return
	}
	low, high := min(*o.UsedCPUs, most), most
	p.plan.Expected.UsedCPUsLow, p.plan.Expected.UsedCPUsHigh = &low, &high
}
