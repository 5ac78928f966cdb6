package simulate

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/test/lab/require"
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
		// the bucket holds a quarter of a period
		"": 2, ", remedy: {kind: narrow}": 1, ", remedy: {kind: narrow, credit: 200ms}": 2, ", remedy: {kind: narrow, credit: 50ms}": 1.5,
	} {
		o := run(t, parseText(t, file("cpus: 16", "a: {quota: 200ms"+remedy+"}",
			"n: {kind: neighbour, cgroup: a, threads: 8, on: 50ms, off: 50ms}")), 1).Cgroups["a"]
		near(t, "half of the time"+remedy, o.UsageSeconds/4, want, 0.08)
		if strings.Contains(remedy, "credit") && (widestOf(o) != 8 || *o.StoppedSeconds != 0) {
			t.Errorf("%s: %+v", remedy, o)
		}
	}
	// All the time: credit gives nothing that the limit has not.
	o := run(t, parseText(t, file("cpus: 16", "a: {quota: 200ms, remedy: {kind: narrow, credit: 200ms}}",
		"n: {kind: burn, cgroup: a, threads: 8}")), 1).Cgroups["a"]
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

// A limit of any size is kept by width alone, with or without a limit above it, and only one below 1 CPU waits for
// short turns.
func TestNarrowKeepsAnyLimit(t *testing.T) {
	for _, test := range []struct {
		quota, above string
		own, want    float64
	}{
		{"250ms", "", 2.5, 2.5}, {"50ms", "", 0.5, 0.5}, {"5ms", "", 0.05, 0.05}, {"130ms", "", 1.3, 1.3},
		{"350ms", "quota: 150ms, remedy: {kind: narrow, credit: 20ms}", 3.5, 1.5},
		{"150ms", "quota: 350ms, remedy: {kind: narrow, credit: 20ms}", 1.5, 1.5},
	} {
		text := file("cpus: 16", "pod: {"+test.above+"}, a: {parent: pod, quota: "+test.quota+", remedy: {kind: narrow, credit: 40ms}}",
			"n: {kind: burn, cgroup: a, threads: 12}")
		o := run(t, parseText(t, text), 1).Cgroups["a"]
		near(t, test.quota+" below "+test.above, o.UsageSeconds/4, test.want, 0.02)
		wide := 0.0
		for _, w := range o.Width {
			if float64(w.CPUs) >= test.own+1 {
				wide += w.Seconds
			}
		}
		if wide > 0.2 { // the credit, once
			t.Errorf("%s below %s: %.2f s wider than the limit: %+v", test.quota, test.above, wide, o.Width)
		}
		if test.above == "" && test.want > 1 && *o.StoppedSeconds > 0 {
			t.Errorf("%s: stopped for %v s", test.quota, *o.StoppedSeconds)
		}
	}
}

// A sleeper beside burners below 1 CPU waits for a turn of some ms, where a quota lets it wait for tens.
func TestNarrowWaitsShortBelowOneCPU(t *testing.T) {
	p99 := func(remedy string) float64 {
		s := parseText(t, file("cpus: 2", "a: {quota: 50ms"+remedy+"}",
			"b: {kind: burn, cgroup: a, threads: 4}, s: {kind: sleeper, cgroup: a, sleep: 10ms}"))
		return *run(t, s, 1).Workloads["s"].P99
	}
	quota, narrow := p99(""), p99(", remedy: {kind: narrow, credit: 10ms}")
	if narrow > quota/2 {
		t.Errorf("p99 %v ms with turns, %v with a quota", narrow, quota)
	}
}

// What the simulator says of service-pools at twice its load: narrow without credit waits as long as under the quota, and
// credit ends most of it, the more the better. The bucket of credit is empty when a run begins.
func TestNarrowOfServicePools(t *testing.T) {
	seeds := uint64(require.Cases(t, 3, 1))
	p99 := func(remedy string) float64 {
		s := loaded(t, 2, `"4.14"`, `"6.18"`, "quota: 2s", "quota: 2s"+remedy)
		s.Duration /= 2
		var runs []scenario.Outcome
		for seed := 4 - seeds; seed <= 3; seed++ {
			runs = append(runs, run(t, s, seed))
		}
		return *scenario.Quantile(runs, 0.5).Workloads["web"].Classes["get"].P99
	}
	all := map[string]float64{}
	for _, row := range []struct{ name, remedy string }{
		{"quota", ""}, {"narrow, cpuset", ", remedy: {kind: narrow}"}, {"narrow, credit 2s", ", remedy: {kind: narrow, credit: 2s}"},
		{"narrow, credit 20s", ", remedy: {kind: narrow, credit: 20s}"},
	} {
		all[row.name] = p99(row.remedy)
		t.Logf("| %s | %.0f |", row.name, all[row.name])
	}
	if short := all["narrow, credit 2s"]; all["quota"] < 1.5*short || all["narrow, cpuset"] < 1.5*short ||
		all["narrow, credit 20s"] > short {
		t.Errorf("%v", all)
	}
}

// Whatever runs: never more CPUs at once than the limit, rounded up; with credit never more than the bound, and no more
// CPU time than the limit and the credit.
func TestNarrowAlways(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := func(least, most int, name string) int { return rapid.IntRange(least, most).Draw(t, name) }
		cpus, quota, credit, widest, pod := n(1, 12, "cpus"), n(10, 700, "quota"), 0, 0, ""
		most := int(math.Ceil(float64(quota) / 100))
		if rapid.Bool().Draw(t, "credit") {
			credit, widest = n(1, 300, "saved"), most+n(0, 5, "wider")
		}
		if credit > 0 && rapid.Bool().Draw(t, "nested") {
			pod = fmt.Sprintf("quota: %dms, remedy: {kind: narrow, credit: %dms}", n(10, 700, "pod"), n(1, 300, "saved of the pod"))
		}
		remedy := "kind: narrow"
		if credit > 0 {
			remedy = fmt.Sprintf("kind: narrow, credit: %dms, widest: %d", credit, widest)
		}
		var b strings.Builder
		fmt.Fprintf(&b, "version: 1\nduration: 500ms\nhost: {cpus: %d, kernel: %q, hz: %s}\n", cpus,
			rapid.SampledFrom([]string{"4.14", "5.15", "6.12", "6.18", "7.2"}).Draw(t, "kernel"),
			rapid.SampledFrom([]string{"100", "1000", "continuous"}).Draw(t, "hz"))
		fmt.Fprintf(&b, "cgroups: {p: {%s}, a: {parent: p, quota: %dms, remedy: {%s}}, b: {parent: a}, o: {weight: "+
			"%d}}\nworkloads:\n", pod, quota, remedy, n(1, 1000, "weight"))
		fmt.Fprintf(&b, "  burn: {kind: burn, cgroup: a, threads: %d}\n", n(1, 20, "burners"))
		fmt.Fprintf(&b, "  web: {kind: service, cgroup: b, threads: %d, work: {uniform: [1ms, 5ms]}, arrivals: "+
			"{per_second: %d}}\n", n(1, 20, "web"), n(1, 2000, "rate"))
		fmt.Fprintf(&b, "  other: {kind: neighbour, cgroup: o, threads: %d, on: %dms, off: %dms}\n", n(1, 12, "other"),
			n(1, 40, "on"), n(1, 40, "off"))
		s, err := scenario.Parse("random", []byte(b.String()))
		if err != nil {
			t.Fatal(err)
		}
		r, err := Run(s, Options{Seed: rapid.Uint64().Draw(t, "seed")})
		if err != nil {
			t.Fatal(err)
		}
		a := r.Outcome.Cgroups["a"]
		if credit == 0 && widestOf(a) > most || credit > 0 && widestOf(a) > widest {
			t.Fatalf("%d CPUs at once, the limit is %d ms in 100, with credit %d CPUs", widestOf(a), quota, widest)
		}
		bound := float64(quota)/100*0.5 + float64(credit)/1000
		if credit == 0 { // a quota that stays is charged at ticks
			bound += 0.02 * float64(cpus)
		}
		if a.UsageSeconds > bound+0.01 {
			t.Fatalf("used %v s, more than %v", a.UsageSeconds, bound)
		}
	})
}
