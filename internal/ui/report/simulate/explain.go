package simulate

import (
	"fmt"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/table"
)

// explainPeriod writes each step of one period's accounting as a sentence.
func explainPeriod(b *strings.Builder, a simulate.Account, style page.Style) {
	limit := text.ExactDuration(a.Limit.Quota) + " in " + text.ExactDuration(a.Limit.Period)
	if a.Limit.Burst > 0 {
		limit += ", burst " + text.ExactDuration(a.Limit.Burst)
	}
	if len(a.Steps) == 0 {
		fmt.Fprintf(b, "\n%s (%s) did not use a whole period: nothing to explain.\n", a.Cgroup, limit)
		return
	}
	fmt.Fprintf(b, "\nOne period of %s (%s), step by step:\n\n", a.Cgroup, limit)
	t := table.Of([]table.Field[bandwidth.Step]{
		{Column: table.Column{Name: "ms", Right: true}, Text: func(s bandwidth.Step) string { return milli(s.At) }},
		{Column: table.Column{Name: "pool ms", Right: true}, Text: func(s bandwidth.Step) string { return milli(s.Pool) }},
		{Column: table.Column{Name: "CPU has ms", Right: true},
			Text: func(s bandwidth.Step) string { return text.Either(perCPU(s.Kind), milli(s.Left), "") }},
		{Column: table.Column{Fill: true, Least: leastStep}, Text: stepText},
	}, a.Steps)
	if a.Dropped > 0 {
		t.Add([]table.Cell{{}, {}, {}, {Text: "and " + text.Count(a.Dropped, "step") + " more"}})
	}
	p := page.New(style, 0, 0)
	t.Fitted(p)
	b.WriteString(p.String())
}

// leastStep is the least width of the text of a step.
const leastStep = 28

func perCPU(k bandwidth.StepKind) bool {
	switch k {
	case bandwidth.PeriodEnd, bandwidth.Refilled, bandwidth.SlackTime, bandwidth.TimerStopped:
		return false
	}
	return true
}

func milli(d time.Duration) string { return fmt.Sprintf("%.6f", float64(d)/1e6) }

func stepText(s bandwidth.Step) string {
	cpu, amount := fmt.Sprintf("CPU %d", s.CPU), text.ExactDuration(s.Amount)
	switch s.Kind {
	case bandwidth.Took:
		return fmt.Sprintf("%s has nothing left and takes %s from the pool", cpu, amount)
	case bandwidth.Returned:
		return fmt.Sprintf("%s has no thread to run and gives %s back", cpu, amount)
	case bandwidth.Lost:
		return fmt.Sprintf("%s goes idle, and %s of an earlier period are lost", cpu, amount)
	case bandwidth.Expired:
		return fmt.Sprintf("what %s has kept, %s, expires", cpu, amount)
	case bandwidth.Throttled:
		return fmt.Sprintf("%s is throttled: it has nothing left, nor has the pool", cpu)
	case bandwidth.Unthrottled:
		return cpu + " may run again"
	case bandwidth.PeriodEnd:
		if s.Amount == 0 {
			return "the period ends, and no CPU waits"
		}
		return fmt.Sprintf("the period ends, counted as throttled: %s waiting", text.Count(int(s.Amount), "CPU"))
	case bandwidth.Refilled:
		if s.Amount < 0 {
			return fmt.Sprintf("refill: returned slack beyond the quota, %s, is lost", text.ExactDuration(-s.Amount))
		}
		return "refill: " + amount + " into the pool"
	case bandwidth.Given:
		return fmt.Sprintf("%s, next in the queue, gets %s, 1 ns above its debt", cpu, amount)
	case bandwidth.SlackTime:
		return "what was given back goes to the CPUs that wait"
	case bandwidth.TimerStopped:
		return "nothing ran for a period: the timer stops"
	}
	return string(s.Kind)
}
