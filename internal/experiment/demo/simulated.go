package demo

import (
	"fmt"
	"strconv"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/load/workload"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

// The simulated host: seed 003 gives no number of CPUs; with 32 each burner has one.
const (
	simulatedCPUs   = 32
	simulatedKernel = "6.18"
	simulatedQuota  = 2
)

// maxSimulatedSeconds bounds the simulated time of a variant.
const maxSimulatedSeconds = 600.0

// Simulated runs the four variants in the simulator. It needs no rights and runs no
// load on this host. seconds is the simulated time of each variant, 0:
// DefaultSeconds. The same seconds give the same result.
func Simulated(seconds float64) (Result, error) {
	if seconds == 0 {
		seconds = DefaultSeconds
	}
	if !(seconds >= MinSeconds && seconds <= maxSimulatedSeconds) {
		return Result{}, fmt.Errorf("demo: --for %gs: outside %gs to %gs", seconds, MinSeconds, maxSimulatedSeconds)
	}
	pinned := cpuset.New(0, 1)
	r := Result{
		RunID: "simulated", Simulated: true, Kernel: simulatedKernel, CPUs: simulatedCPUs, Cgroups: "v2", Scope: "/",
		Quota: simulatedQuota, Period: period.Seconds(), Burners: burners(simulatedCPUs / 2), Sleep: millis(sleepLength),
		Pinned: pinned.String(), Seconds: seconds,
	}
	set := cpuset.New()
	for cpu := range simulatedCPUs {
		set = set.Union(cpuset.New(cpu))
	}
	windows := make([]window, 4)
	variants := []*Variant{&r.Before, &r.Threads, &r.CPUSet, &r.After}
	for i, p := range []plan{
		{"quota", true, set, r.Burners}, {"threads", true, set, r.Quota},
		{"cpuset", true, pinned, r.Burners}, {"pin", false, pinned, r.Burners},
	} {
		var err error
		if *variants[i], windows[i], err = simulatedVariant(p, seconds); err != nil {
			return Result{}, fmt.Errorf("demo: variant %s: %w", p.name, err)
		}
	}
	fillHistograms(variants, windows, sleepLength)
	r.Verdict = judge(r)
	return r, nil
}

func simulatedVariant(p plan, seconds float64) (Variant, window, error) {
	a := Variant{Name: p.name, Burners: p.burners, CPUs: p.cpus.String()}
	limit := ""
	if p.quota {
		a.Quota = ptr(simulatedQuota)
		limit = fmt.Sprintf("quota: %v, period: %v, ", simulatedQuota*period, period)
	}
	// The host's own threads take a little of each CPU, as some always do.
	text := fmt.Sprintf(`version: 1
duration: %v
host: {cpus: %d, hz: 250, kernel: %q}
cgroups:
  app: {%scpus: %q}
workloads:
  burners: {kind: burn, cgroup: app, threads: %d}
  sleeper: {kind: sleeper, cgroup: app, sleep: %v}
  host: {kind: fib, threads: %d, fast: 0, run: {exponential: 20us}, sleep: 10ms}
`, time.Duration(seconds*float64(time.Second)), simulatedCPUs, simulatedKernel, limit, a.CPUs, p.burners, sleepLength, simulatedCPUs)
	s, err := scenario.Parse("demo", []byte(text))
	if err != nil {
		return a, window{}, err
	}
	var w window
	at := time.Duration(0)
	result, err := simulate.Run(s, simulate.Options{Seed: 1, Times: func(name string, took time.Duration) {
		if name == "sleeper" {
			w.records = append(w.records, workload.Record{Start: at, Took: took})
			at += took
		}
	}})
	if err != nil {
		return a, w, err
	}
	app := result.Outcome.Cgroups["app"]
	a.Window = seconds
	a.Periods = ptr(app.Periods)
	if p.quota {
		a.ThrottledPeriods, a.ThrottledSeconds = ptr(app.ThrottledPeriods), ptr(round3(app.ThrottledSeconds))
	}
	a.CPUSeconds, a.UsedCPUs = ptr(round3(app.UsageSeconds)), ptr(round3(app.UsageSeconds/seconds))
	a.sleeps(w.took())
	return a, w, nil
}

// Instead is how the simulated demo names itself, and why it stands in for the real one.
func Instead(why error) string {
	return why.Error() + ": simulated instead, on " + strconv.Itoa(simulatedCPUs) + " CPUs with Linux " + simulatedKernel
}
