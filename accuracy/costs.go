package accuracy

import (
	"math"
	"time"

	"github.com/unthrottle/unthrottle/scenario"
)

// calibration is a scenario without limits, in which a thread sleeps and runs.
const calibration = `version: 1
host: {cpus: 1}
cgroups: {a: {}}
workloads:
  a: {kind: sleep-run, cgroup: a, run: 500us, sleep: {uniform: [2ms, 30ms]}}
`

// Calibration is the scenario that tells what a sleep and a wake-up cost.
// [WakeCost] takes its outcome.
func Calibration(duration time.Duration) scenario.Scenario {
	s, err := scenario.Parse("calibration", []byte(calibration))
	if err != nil {
		panic(err)
	}
	s.Duration = duration
	return s
}

// WakeCost is the CPU time of a sleep and a wake-up that an outcome of
// [Calibration] shows. False: it counted nothing.
func WakeCost(o scenario.Outcome) (cost time.Duration, ok bool) {
	n := o.Workloads["a"].Count
	if n == 0 {
		return 0, false
	}
	each := o.Cgroups["a"].UsageSeconds/float64(n) - 500e-6
	return time.Duration(math.Max(0, each*1e9)), true
}

// Simulated is the draw as the simulator gets it: with what a wake-up costs where
// it ran for real.
func (d Draw) Simulated(duration, wakeCost time.Duration) scenario.Scenario {
	s := d.Lasting(duration)
	s.Host.WakeCost = wakeCost
	return s
}
