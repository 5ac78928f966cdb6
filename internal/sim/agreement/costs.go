package agreement

import (
	"math"
	"time"

	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/stats"
)

// Calibrations are scenarios without limits, in which a thread sleeps and runs. They
// measure the cost and the lateness of a sleep and a wake-up after long idling. They
// measure the cost after short idling too, and on a CPU that other such threads keep
// busy. [WakeCosts] takes their outcomes.
func Calibrations(duration time.Duration) []scenario.Scenario {
	var scenarios []scenario.Scenario
	for _, c := range []struct{ sleep, threads string }{
		{"{uniform: [8ms, 30ms]}", "1"},
		{"{uniform: [1ms, 3ms]}", "1"},
		{"{exponential: 3ms}", "8"},
	} {
		s, err := scenario.Parse("calibration", []byte("version: 1\nhost: {cpus: 1}\ncgroups: {a: {}}\nworkloads:\n"+
			"  a: {kind: sleep-run, cgroup: a, threads: "+c.threads+", run: "+calibrationRun.String()+", sleep: "+c.sleep+"}\n"))
		if err != nil {
			panic(err)
		}
		s.Duration = duration
		scenarios = append(scenarios, s)
	}
	return scenarios
}

// WakeCosts are what the outcomes of [Calibrations] show. False: one of them counted
// nothing.
func WakeCosts(outcomes []scenario.Outcome) (costs scenario.WakeCosts, ok bool) {
	for i, cost := range []*time.Duration{&costs.Long, &costs.Short, &costs.Busy} {
		if *cost, ok = wakeCost(outcomes[i]); !ok {
			return costs, false
		}
	}
	// What half of the runs after long idling took, beyond what they worked and waited for by themselves.
	took := time.Duration(*outcomes[0].Workloads["a"].P50 * float64(time.Millisecond))
	costs.Delay = max(0, took-calibrationRun-costs.Long-Calibrations(0)[0].Host.TimerSlack)
	return costs, true
}

// MedianCosts are the medians of each figure; 0 of none.
func MedianCosts(all []scenario.WakeCosts) (middle scenario.WakeCosts) {
	for i, part := range Parts(&middle) {
		var of []float64
		for _, c := range all {
			of = append(of, float64(*Parts(&c)[i]))
		}
		if len(of) > 0 {
			*part = time.Duration(stats.Median(of))
		}
	}
	return middle
}

// Parts are all figures of costs.
func Parts(c *scenario.WakeCosts) [4]*time.Duration {
	return [4]*time.Duration{&c.Long, &c.Short, &c.Busy, &c.Delay}
}

// calibrationRun is how long the calibrations' thread works.
const calibrationRun = 500 * time.Microsecond

func wakeCost(o scenario.Outcome) (cost time.Duration, ok bool) {
	n := o.Workloads["a"].Count
	if n == 0 {
		return 0, false
	}
	each := o.Cgroups["a"].UsageSeconds/float64(n) - calibrationRun.Seconds()
	return time.Duration(math.Max(0, each*1e9)), true
}

// Simulated is the draw as the simulator gets it: with what a wake-up costs where
// it ran for real.
func (d Draw) Simulated(duration time.Duration, costs scenario.WakeCosts) scenario.Scenario {
	s := d.Lasting(duration)
	s.Host.WakeCosts = costs
	return s
}
