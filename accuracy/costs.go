package accuracy

import (
	"math"
	"time"

	"github.com/unthrottle/unthrottle/scenario"
)

// Calibrations are scenarios without limits, in which a thread sleeps and runs: they
// tell what a sleep and a wake-up cost after long idling, after short idling, and on
// a busy CPU. [WakeCosts] takes their outcomes.
func Calibrations(duration time.Duration) []scenario.Scenario {
	var all []scenario.Scenario
	for _, c := range []struct{ sleep, more string }{
		{"{uniform: [8ms, 30ms]}", ""},
		{"{uniform: [1ms, 3ms]}", ""},
		{"{uniform: [2ms, 30ms]}", "  b: {kind: burn, cgroup: b, threads: 1}\n"},
	} {
		s, err := scenario.Parse("calibration", []byte("version: 1\nhost: {cpus: 1}\ncgroups: {a: {}, b: {}}\nworkloads:\n"+
			"  a: {kind: sleep-run, cgroup: a, run: 500us, sleep: "+c.sleep+"}\n"+c.more))
		if err != nil {
			panic(err)
		}
		s.Duration = duration
		all = append(all, s)
	}
	return all
}

// WakeCosts are what the outcomes of [Calibrations] show. False: one of them counted
// nothing.
func WakeCosts(outcomes []scenario.Outcome) (costs scenario.WakeCosts, ok bool) {
	for i, cost := range parts(&costs) {
		if *cost, ok = wakeCost(outcomes[i]); !ok {
			return costs, false
		}
	}
	return costs, true
}

// parts are the costs in the order of [Calibrations].
func parts(c *scenario.WakeCosts) [3]*time.Duration {
	return [3]*time.Duration{&c.Long, &c.Short, &c.Busy}
}

func wakeCost(o scenario.Outcome) (cost time.Duration, ok bool) {
	n := o.Workloads["a"].Count
	if n == 0 {
		return 0, false
	}
	each := o.Cgroups["a"].UsageSeconds/float64(n) - 500e-6
	return time.Duration(math.Max(0, each*1e9)), true
}

// Simulated is the draw as the simulator gets it: with what a wake-up costs where
// it ran for real.
func (d Draw) Simulated(duration time.Duration, costs scenario.WakeCosts) scenario.Scenario {
	s := d.Lasting(duration)
	s.Host.WakeCosts = costs
	return s
}
