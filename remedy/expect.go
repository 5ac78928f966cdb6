package remedy

// Expectation is what a remedy should bring, as intervals. It is arithmetic on
// what was observed, not a simulation. Nil: nothing can be said.
type Expectation struct {
	// StoppedLow and StoppedHigh bound the stopped time per second, 0 to 1.
	StoppedLow, StoppedHigh *float64
	UsedLow, UsedHigh       *float64 // CPUs
	// From says what it rests on.
	From string
}

// expectNoQuota: without a quota nothing stops it. It uses at least what it
// did, since what was held back comes on top, and at most its CPUs.
func (p *planner) expectNoQuota(width float64) {
	zero := 0.0
	p.plan.Expected = Expectation{StoppedLow: &zero, StoppedHigh: &zero, From: "arithmetic: no quota binds it any more"}
	if len(p.plan.Skipped) > 0 {
		p.plan.Expected.StoppedHigh = nil
	}
	p.expectUse(width)
}

// expectQuota: with a quota it is stopped at most as long as it is now.
func (p *planner) expectQuota(limit, to float64) {
	zero := 0.0
	p.plan.Expected = Expectation{StoppedLow: &zero, From: "arithmetic: never stopped longer than before"}
	if o := p.r.Observed; o != nil {
		p.plan.Expected.StoppedHigh = o.StoppedHigh
	}
	p.expectUse(max(limit, to))
}

func (p *planner) expectUse(most float64) {
	o := p.r.Observed
	if o == nil || o.UsedCPUs == nil {
		return
	}
	low, high := min(*o.UsedCPUs, most), max(most, *o.UsedCPUs)
	p.plan.Expected.UsedLow, p.plan.Expected.UsedHigh = &low, &high
}
