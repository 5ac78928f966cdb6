package simulate

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/sim/scenario"
)

// widestOf is the most CPUs that a cgroup used at once.
func widestOf(c scenario.CgroupOutcome) int { return c.Width[len(c.Width)-1].CPUs }

// Never wider than the limit, never throttled, and the limit used.
func TestNarrow(t *testing.T) {
	for _, kernel := range []string{"5.15", "6.12", "6.18"} {
		o := run(t, parse(t, "cgroup-lat-quota", "5.15", kernel, "period: 100ms", "period: 100ms, remedy: {kind: narrow}"), 1)
		lat := o.Cgroups["lat"]
		if widestOf(lat) != 2 || lat.ThrottledPeriods != 0 || *lat.StoppedSeconds != 0 {
			t.Errorf("%s: %+v", kernel, lat)
		}
		near(t, kernel+": CPU", lat.UsageSeconds, 2*16, 0.01)
		if p99 := *o.Workloads["sleeper"].P99; p99 > 60 {
			t.Errorf("%s: p99 %v ms", kernel, p99)
		}
	}
	o := run(t, parse(t, "cgroup-lat-quota", "quota: 200ms, period: 100ms", "quota: 150ms, remedy: {kind: narrow}"), 1).Cgroups["lat"]
	if widestOf(o) != 2 || o.Periods < 1500 {
		t.Errorf("1.5 CPUs: %+v", o)
	}
	near(t, "1.5 CPUs: CPU", o.UsageSeconds, 1.5*16, 0.02)
}

// Who asks for nothing in the first half of a period and for all in the second
// gets the limit from a quota, half of it from the plain patch, and the limit
// again with credit (seed "The container throttling problem", results).
func TestNarrowWithCredit(t *testing.T) {
	for remedy, want := range map[string]float64{
		"": 2, ", remedy: {kind: narrow}": 1, ", remedy: {kind: narrow, credit: 200ms}": 2, ", remedy: {kind: narrow, credit: 50ms}": 1.6, // 1.5 and what a tick is late
	} {
		o := run(t, parseText(t, file("cpus: 16", "a: {quota: 200ms"+remedy+"}", "n: {kind: neighbour, cgroup: a, threads: 8, on: 50ms, off: 50ms}")), 1).Cgroups["a"]
		near(t, "half of the time"+remedy, o.UsageSeconds/4, want, 0.08)
		if strings.Contains(remedy, "credit") && (widestOf(o) != 8 || *o.StoppedSeconds != 0) {
			t.Errorf("%s: %+v", remedy, o)
		}
	}
	// All the time: credit gives nothing that the limit has not.
	o := run(t, parseText(t, file("cpus: 16", "a: {quota: 200ms, remedy: {kind: narrow, credit: 200ms}}", "n: {kind: burn, cgroup: a, threads: 8}")), 1).Cgroups["a"]
	near(t, "all the time", o.UsageSeconds/4, 2, 0.03)
}

// A shorter period makes the longest stop shorter.
func TestPeriodRemedy(t *testing.T) {
	o := run(t, parse(t, "cgroup-lat-quota", "period: 100ms", "period: 100ms, remedy: {kind: period, period: 20ms}"), 1)
	if p50 := *o.Workloads["sleeper"].P50; p50 < 15 || p50 > 25 || o.Cgroups["lat"].Periods < 780 {
		t.Errorf("p50 %v ms, %d periods", p50, o.Cgroups["lat"].Periods)
	}
	near(t, "CPU", o.Cgroups["lat"].UsageSeconds, 2*16, 0.03)
}

// Whatever runs: never more CPUs at once than the limit, rounded up; with credit
// no more CPU time than the limit and the credit.
func TestNarrowAlways(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := func(least, most int, name string) int { return rapid.IntRange(least, most).Draw(t, name) }
		cpus, quota, credit := n(1, 12, "cpus"), n(10, 700, "quota"), 0
		if rapid.Bool().Draw(t, "credit") {
			quota, credit = (quota+99)/100*100, n(1, 300, "saved")
		}
		var b strings.Builder
		fmt.Fprintf(&b, "version: 1\nduration: 500ms\nhost: {cpus: %d, kernel: %q, hz: %s}\n", cpus,
			rapid.SampledFrom([]string{"4.14", "5.15", "6.12", "6.18", "7.2"}).Draw(t, "kernel"),
			rapid.SampledFrom([]string{"100", "1000", "continuous"}).Draw(t, "hz"))
		fmt.Fprintf(&b, "cgroups: {a: {quota: %dms, remedy: {kind: narrow, credit: %dms}}, b: {parent: a}, o: {weight: %d}}\nworkloads:\n", quota, credit, n(1, 1000, "weight"))
		fmt.Fprintf(&b, "  burn: {kind: burn, cgroup: a, threads: %d}\n", n(1, 20, "burners"))
		fmt.Fprintf(&b, "  web: {kind: service, cgroup: b, threads: %d, work: {uniform: [1ms, 5ms]}, arrivals: {per_second: %d}}\n", n(1, 20, "web"), n(1, 2000, "rate"))
		fmt.Fprintf(&b, "  other: {kind: neighbour, cgroup: o, threads: %d, on: %dms, off: %dms}\n", n(1, 12, "other"), n(1, 40, "on"), n(1, 40, "off"))
		s, err := scenario.Parse("random", []byte(b.String()))
		if err != nil {
			t.Fatal(err)
		}
		r, err := Run(s, Options{Seed: rapid.Uint64().Draw(t, "seed")})
		if err != nil {
			t.Fatal(err)
		}
		a := r.Outcome.Cgroups["a"]
		if most := int(math.Ceil(float64(quota) / 100)); credit == 0 && widestOf(a) > most {
			t.Fatalf("%d CPUs at once, the limit is %d ms in 100", widestOf(a), quota)
		}
		tick := 0.01 * float64(cpus)
		if bound := float64(quota)/100*0.5 + float64(credit)/1000 + 2*tick; a.UsageSeconds > bound+0.01 {
			t.Fatalf("used %v s, more than %v", a.UsageSeconds, bound)
		}
	})
}
