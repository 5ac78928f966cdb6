package latency

import (
	"errors"
	"os"
	"testing"

	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/internal/load/workload/threads"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/realrun"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// TestMain lets the test binary stand in for the program that children run.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == threads.Command {
		os.Exit(threads.Main())
	}
	os.Exit(m.Run())
}

// Every variant is a scenario that the simulator takes too, and grants what its row
// says.
func TestArmsGrantWhatTheySay(t *testing.T) {
	for _, cpus := range []int{2, 8} {
		for _, name := range remedies() {
			s, err := scenarioOf(name, cpus, 2e9)
			if err != nil {
				t.Fatal(err)
			}
			r, err := simulate.Run(s, simulate.Options{Seed: 1})
			if err != nil {
				t.Errorf("%s on %d CPUs: %v", name, cpus, err)
				continue
			}
			most := 1.1 * granted(name, cpus)
			if name == burst { // saved up before the beginning: a period's quota
				most += 0.1 * granted(name, cpus) / r.Outcome.Seconds
			}
			if used := r.Outcome.Cgroups[group].UsageSeconds / r.Outcome.Seconds; used < 0.9*granted(name, cpus) || used > most {
				t.Errorf("%s on %d CPUs: %.2f CPUs used, %.2f granted", name, cpus, used, granted(name, cpus))
			}
		}
	}
}

func TestRow(t *testing.T) {
	ms := func(v float64) *float64 { return &v }
	round := func(p90 float64, count uint64) scenario.Outcome {
		return scenario.Outcome{
			Seconds: 2, Cgroups: map[string]scenario.CgroupOutcome{group: {Periods: 20, ThrottledPeriods: 19, UsageSeconds: 2}},
			Workloads: map[string]scenario.WorkloadOutcome{
				sleeper: {Latencies: scenario.Latencies{Count: count, P50: ms(10), P90: &p90, P99: ms(99), Max: ms(100)}}},
		}
	}
	plain := []scenario.Outcome{round(80, 100), round(60, 100), round(70, 100)}
	pinned := []scenario.Outcome{round(16, 2000), round(18, 2000), round(7, 2000)}
	r := row(pin, 2, pinned, plain)
	if *r.Ratio != 0.2 || *r.RatioLow != 0.1 || *r.RatioHigh != 0.3 || r.P99 == nil || r.Periods != nil || !r.Noisy ||
		r.Granted != 1 || r.Used != 1 {
		t.Errorf("%+v", r)
	}
	if r := row(quota, 2, plain, plain); r.Ratio != nil || r.P99 != nil || *r.ThrottledPeriods != 19 || r.Noisy {
		t.Errorf("%+v", r)
	}
	if r := row(raise, 2, pinned, plain); r.Ratio != nil || r.Granted != 1.5 {
		t.Errorf("more CPUs, and a ratio: %+v", r)
	}
}

func TestCompare(t *testing.T) {
	require.CheckAll(t, "it measures for long what only `bench latency` needs")
	require.Alone(t, "the CPUs that a quota and a pin could use with those granted")
	require.CPUs(t, 2)
	h := cgrouptest.New(t).Host
	// At the top, where its cgroup has the highest weight. Other experiments beside
	// this one have the same; where they leave too little, there is nothing to see.
	o := Options{Host: h, CPUs: 2, Seconds: 1, Repeat: 1}
	var rows map[string]Row
	for try := 0; ; try++ {
		r, err := Compare(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		rows = map[string]Row{}
		for _, row := range r.Remedies {
			rows[row.Remedy] = row
		}
		if rows[quota].Used > 0.9 && rows[pin].Used > 0.9 {
			break
		}
		if try == 1 {
			t.Skipf("needs idle CPUs: %.2f of 1 could be had; runs on a quiet host", rows[quota].Used)
		}
	}
	if len(rows) != len(remedies()) {
		t.Fatalf("%d rows", len(rows))
	}
	if q := rows[quota]; q.ThrottledPeriods == nil || *q.ThrottledPeriods == 0 || q.Count == 0 {
		t.Errorf("the plain quota does not throttle: %+v", q)
	}
	if p := rows[pin]; p.Used > 1.1 {
		t.Errorf("pinned to one CPU, and %.2f used", p.Used)
	}
}

func TestNotMeasurable(t *testing.T) {
	h := cgrouptest.New(t).Host
	if _, err := Compare(t.Context(), Options{Host: h, CPUs: 1, Seconds: 1, Repeat: 1}); !errors.As(err, new(*realrun.NotMeasurable)) {
		t.Errorf("one CPU: %v", err)
	}
}
