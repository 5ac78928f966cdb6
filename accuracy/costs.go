package accuracy

import (
	"math"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/scenario"
)

// Costs are what real runs have beside their scenario on this machine.
type Costs struct {
	// Wake is the CPU time of a sleep and a wake-up of a thread.
	Wake time.Duration `json:"wake_ns"`
	// Runtime is the same of a thread that every real process has besides: its
	// language's runtime looks after it every RuntimeEvery.
	Runtime time.Duration `json:"runtime_ns"`
}

// RuntimeEvery is how often the runtime of a process that has something to do
// wakes up (sysmon of Go's runtime/proc.go, which sleeps 10 ms at most).
const RuntimeEvery = 10 * time.Millisecond

// calibration is a scenario without limits: in one cgroup a thread that sleeps and
// runs, in the other one that does nothing.
const calibration = `version: 1
host: {cpus: 1}
cgroups: {busy: {}, idle: {}}
workloads:
  busy: {kind: sleep-run, cgroup: busy, run: 500us, sleep: 4ms}
  idle: {kind: sleep-run, cgroup: idle, run: 1us, sleep: 1h}
`

// Calibration is the scenario that tells the costs. [CostsOf] takes its outcome.
func Calibration(duration time.Duration) scenario.Scenario {
	s, err := scenario.Parse("calibration", []byte(calibration))
	if err != nil {
		panic(err)
	}
	s.Duration = duration
	return s
}

// CostsOf are the costs that an outcome of [Calibration] shows. False: it counted
// nothing.
func CostsOf(o scenario.Outcome) (c Costs, ok bool) {
	busy := o.Workloads["busy"]
	if busy.Count == 0 || o.Seconds <= 0 {
		return c, false
	}
	idle := o.Cgroups["idle"].UsageSeconds
	wake := (o.Cgroups["busy"].UsageSeconds-idle)/float64(busy.Count) - 500e-6
	runtime := idle * RuntimeEvery.Seconds() / o.Seconds
	return Costs{Wake: nanoseconds(wake), Runtime: nanoseconds(runtime)}, true
}

func nanoseconds(seconds float64) time.Duration { return time.Duration(math.Max(0, seconds*1e9)) }

// runtimeSuffix marks the workloads that Simulated adds.
const runtimeSuffix = "-runtime"

// Simulated is the draw as the simulator gets it: as it runs for real, with the
// costs that it has there.
func (d Draw) Simulated(duration time.Duration, c Costs) scenario.Scenario {
	s := d.Lasting(duration)
	s.Host.WakeCost = c.Wake
	s.Workloads = append([]scenario.Workload(nil), s.Workloads...)
	for _, w := range d.scenario.Workloads {
		s.Workloads = append(s.Workloads, scenario.Workload{
			Name: w.Name + runtimeSuffix, Kind: scenario.SleepRun, Cgroup: w.Cgroup, Threads: 1,
			Run: scenario.Fixed(max(time.Microsecond, c.Runtime-c.Wake)), Sleep: scenario.Fixed(RuntimeEvery),
		})
	}
	return s
}

// drawn tells workloads of the draw from those that Simulated adds.
func drawn(workload string) bool { return !strings.HasSuffix(workload, runtimeSuffix) }
