package bandwidth

import "time"

// StepKind names a step of the accounting.
type StepKind string

// The kinds of steps. Amount is CPU time unless the comment says otherwise.
const (
	Took         StepKind = "took"          // a CPU took Amount from the pool
	Returned     StepKind = "returned"      // a CPU that went idle returned Amount to the pool
	Lost         StepKind = "lost"          // before 5.4: a CPU that went idle lost Amount of an earlier period
	Expired      StepKind = "expired"       // before 5.4: Amount in a CPU's silo expired
	Throttled    StepKind = "throttled"     // a CPU used up its quota and is throttled
	Unthrottled  StepKind = "unthrottled"   // a CPU may run the group's threads again
	PeriodEnd    StepKind = "period_end"    // the period timer expired and found Amount (a number) throttled CPUs
	Refilled     StepKind = "refilled"      // the pool changed by Amount
	Given        StepKind = "given"         // a throttled CPU received Amount from the pool
	SlackTime    StepKind = "slack_time"    // the slack timer distributes the pool
	TimerStopped StepKind = "timer_stopped" // the period timer stopped after a period without use
)

// Step is one step of the accounting, with the state after it.
type Step struct {
	Kind   StepKind
	At     time.Duration
	CPU    int
	Amount time.Duration
	Pool   time.Duration
	Left   time.Duration // of the CPU's silo
}

func (g *Group) step(s Step) {
	if g.Trace == nil {
		return
	}
	s.Pool, s.Left = g.pool, g.silos[s.CPU].left
	g.Trace(s)
}
