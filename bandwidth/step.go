package bandwidth

import "time"

// StepKind is what happened in one step of the accounting.
type StepKind string

// The kinds of steps. Amount is CPU time unless said otherwise.
const (
	Took         StepKind = "took"          // a CPU took Amount from the pool
	Returned     StepKind = "returned"      // a CPU that went idle gave Amount back
	Lost         StepKind = "lost"          // before 5.4: a CPU that went idle dropped Amount of an earlier period
	Expired      StepKind = "expired"       // before 5.4: Amount in a CPU's silo expired
	Throttled    StepKind = "throttled"     // a CPU ran out
	Unthrottled  StepKind = "unthrottled"   // a CPU may run again
	PeriodEnd    StepKind = "period_end"    // the period timer fired and found Amount (a number) CPUs throttled
	Refilled     StepKind = "refilled"      // the pool changed by Amount
	Given        StepKind = "given"         // a throttled CPU got Amount from the pool
	SlackTime    StepKind = "slack_time"    // the slack timer hands out what the pool has
	TimerStopped StepKind = "timer_stopped" // nothing ran for a period
)

// Step of the accounting, with the state after it.
type Step struct {
	Kind   StepKind
	At     time.Duration
	CPU    int
	Amount time.Duration
	Pool   time.Duration
	Left   time.Duration // in the CPU's silo
}

func (g *Group) step(s Step) {
	if g.Trace == nil {
		return
	}
	s.Pool, s.Left = g.pool, g.silos[s.CPU].left
	g.Trace(s)
}
