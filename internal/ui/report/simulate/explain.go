package simulate

import (
	"fmt"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
	"github.com/unthrottle/unthrottle/internal/text"
)

// explainPeriod writes each step of one period's accounting as a sentence.
func explainPeriod(b *strings.Builder, a simulate.Account) {
	limit := fmt.Sprintf("%v in %v", a.Limit.Quota, a.Limit.Period)
	if a.Limit.Burst > 0 {
		limit += fmt.Sprintf(", burst %v", a.Limit.Burst)
	}
	if len(a.Steps) == 0 {
		fmt.Fprintf(b, "\n%s (%s) did not use a whole period: nothing to explain.\n", a.Cgroup, limit)
		return
	}
	fmt.Fprintf(b, "\nOne period of %s (%s), step by step:\n\n", a.Cgroup, limit)
	fmt.Fprintf(b, "%12s  %-66s %12s %12s\n", "ms", "", "pool ms", "CPU has ms")
	for _, s := range a.Steps {
		left := ""
		if perCPU(s.Kind) {
			left = milli(s.Left)
		}
		fmt.Fprintf(b, "%12s  %-66s %12s %12s\n", milli(s.At), stepText(s), milli(s.Pool), left)
	}
	if a.Dropped > 0 {
		fmt.Fprintf(b, "%12s  and %s more\n", "", text.Count(a.Dropped, "step"))
	}
}

func perCPU(k bandwidth.StepKind) bool {
	switch k {
	case bandwidth.PeriodEnd, bandwidth.Refilled, bandwidth.SlackTime, bandwidth.TimerStopped:
		return false
	}
	return true
}

func milli(d time.Duration) string { return fmt.Sprintf("%.6f", float64(d)/1e6) }

func stepText(s bandwidth.Step) string {
	cpu := fmt.Sprintf("CPU %d", s.CPU)
	switch s.Kind {
	case bandwidth.Took:
		return fmt.Sprintf("%s has nothing left and takes %v from the pool", cpu, s.Amount)
	case bandwidth.Returned:
		return fmt.Sprintf("%s has no thread to run and gives %v back", cpu, s.Amount)
	case bandwidth.Lost:
		return fmt.Sprintf("%s goes idle, and %v of an earlier period are lost", cpu, s.Amount)
	case bandwidth.Expired:
		return fmt.Sprintf("what %s has kept, %v, expires", cpu, s.Amount)
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
			return fmt.Sprintf("refill: returned slack beyond the quota, %v, is lost", -s.Amount)
		}
		return fmt.Sprintf("refill: %v into the pool", s.Amount)
	case bandwidth.Given:
		return fmt.Sprintf("%s, next in the queue, gets %v for its debt and 1ns", cpu, s.Amount)
	case bandwidth.SlackTime:
		return "what was given back goes to the CPUs that wait"
	case bandwidth.TimerStopped:
		return "nothing ran for a period: the timer stops"
	}
	return string(s.Kind)
}
