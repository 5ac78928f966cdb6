package simulate

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/scenario"
)

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.Abs(got-want) > within*math.Abs(want) {
		t.Errorf("%s: %.4g, want %.4g within %.0f %%", what, got, want, 100*within)
	}
}

func file(host, cgroups, workloads string) string {
	return fmt.Sprintf("version: 1\nduration: 4s\nhost: {%s}\ncgroups: {%s}\nworkloads: {%s}\n", host, cgroups, workloads)
}

// Without quotas all CPUs are used, and shared by weight.
func TestSharing(t *testing.T) {
	for _, kernel := range []string{"5.15", "6.12"} {
		host := `kernel: "` + kernel + `", cpus: `
		o := run(t, parseText(t, file(host+"4", "a: {}", "w: {kind: burn, cgroup: a, threads: 3}")), 1)
		near(t, kernel+": 3 threads on 4 CPUs", o.Cgroups["a"].UsageSeconds, 12, 0.001)
		o = run(t, parseText(t, file(host+"4", "a: {}", "w: {kind: burn, cgroup: a, threads: 9}")), 1)
		near(t, kernel+": 9 threads on 4 CPUs", o.Cgroups["a"].UsageSeconds, 16, 0.001)
		o = run(t, parseText(t, file(host+"1", "a: {weight: 300}, b: {}",
			"w: {kind: burn, cgroup: a, threads: 2}, v: {kind: burn, cgroup: b}")), 1)
		near(t, kernel+": weight 300 of 400", o.Cgroups["a"].UsageSeconds, 3, 0.03)
		o = run(t, parseText(t, file(host+"1", "a: {}, b: {parent: a}, c: {parent: a, weight: 200}",
			"w: {kind: burn, cgroup: b}, v: {kind: burn, cgroup: c}, u: {kind: burn}")), 1)
		near(t, kernel+": half of the CPU for a", o.Cgroups["a"].UsageSeconds, 2, 0.03)
		near(t, kernel+": two thirds of that for c", o.Cgroups["c"].UsageSeconds, 4.0/3, 0.04)
	}
}

// A parent's quota throttles its children, and counts only at the parent. (On
// 6.18: parent 20 in 100 ms, a spinner in the child: 11 of 11 periods.)
func TestNestedQuota(t *testing.T) {
	o := run(t, parseText(t, file(`cpus: 2, kernel: "6.18"`, "pod: {quota: 20ms}, app: {parent: pod, quota: 80ms}",
		"w: {kind: burn, cgroup: app}")), 1)
	pod, app := o.Cgroups["pod"], o.Cgroups["app"]
	near(t, "usage", app.UsageSeconds, 0.8, 0.03)
	if pod.ThrottledPeriods < 39 || app.ThrottledPeriods != 0 || app.ThrottledSeconds != 0 {
		t.Errorf("pod %+v\napp %+v", pod, app)
	}
	near(t, "the app's stopped time", *app.StoppedSeconds, *pod.StoppedSeconds, 1e-9)
	near(t, "stopped", *pod.StoppedSeconds, 3.2, 0.02)
}

// What was measured on a 6.18 kernel at 250 Hz on two CPUs.
func TestAgainstMeasured(t *testing.T) {
	host := `cpus: 2, kernel: "6.18"`
	two := strings.Replace(file(host, "a: {quota: 50ms}", "w: {kind: fib, cgroup: a, threads: 2, fast: 2}"), "4s", "2s", 1)
	o := run(t, parseText(t, two), 1).Cgroups["a"]
	// A window of 2 s has one refill of 20 more or less, by its phase.
	near(t, "two pinned spinners at 0.5 CPUs, CPUs used (0.5034)", o.UsageSeconds/2, 0.5034, 0.06)
	near(t, "their throttled time in 2 s (2.94)", o.ThrottledSeconds, 2.94, 0.04)
	if o.ThrottledPeriods < 19 {
		t.Errorf("throttled in %d of %d periods, measured 20 of 21", o.ThrottledPeriods, o.Periods)
	}
	// 38 ms of work after every 350 ms, at 20 ms in 100 ms, 8 times.
	burst := func(more string) scenario.Outcome {
		at := "0s, 388ms, 776ms, 1164ms, 1552ms, 1940ms, 2328ms, 2716ms"
		return run(t, parseText(t, file(host, "a: {quota: 20ms"+more+"}",
			"w: {kind: service, cgroup: a, threads: 1, work: 38ms, start: 350ms, arrivals: {at: ["+at+"]}}")), 3)
	}
	without, with := burst(""), burst(", burst: 20ms")
	if without.Cgroups["a"].ThrottledPeriods < 4 || *without.Workloads["w"].Max < 60 {
		t.Errorf("without burst: %+v", without.Cgroups["a"])
	}
	if max := *with.Workloads["w"].Max; with.Cgroups["a"].ThrottledPeriods != 0 || max > 42 {
		t.Errorf("with burst: %v ms, %+v", max, with.Cgroups["a"])
	}
}

// One thread and Poisson arrivals are M/M/1: the response is exponential with
// rate mu - lambda.
func TestServiceIsAQueue(t *testing.T) {
	text := strings.Replace(file("cpus: 1, hz: 1000", "", "w: {kind: service, threads: 1, work: {exponential: 1ms}, "+
		"arrivals: {per_second: 700}}"), "4s", "60s", 1)
	w := run(t, parseText(t, text), 1).Workloads["w"]
	near(t, "requests", float64(w.Count), 42_000, 0.02)
	near(t, "median", *w.P50, math.Ln2/0.3, 0.1)
	near(t, "p99", *w.P99, math.Log(100)/0.3, 0.2)
	text = file("cpus: 1", "", "w: {kind: service, threads: 1, work: 10ms, queue: 5, arrivals: {per_second: 500}}")
	w = run(t, parseText(t, text), 1).Workloads["w"]
	if w.Refused < 1400 || *w.Max > 70 || w.Unfinished > 6 {
		t.Errorf("a full queue: %+v", w)
	}
}

func TestNeighbourToggles(t *testing.T) {
	outcome := run(t, parseText(t, file("cpus: 2", "a: {}", "n: {kind: neighbour, cgroup: a, threads: 2, on: 30ms, off: 70ms}")), 1)
	if n := outcome.Workloads["n"].Unfinished; n != 0 {
		t.Errorf("%d runs are unfinished, and there are none", n)
	}
	o := outcome.Cgroups["a"]
	// All but the first time they wake up by a timer, 50 us late.
	near(t, "mean", o.UsageSeconds, 2*(4*0.3-39*50e-6), 0.0001)
	if len(o.Width) != 2 || o.Width[1].CPUs != 2 {
		t.Errorf("all or nothing, but: %+v", o.Width)
	}
}

// CPUs of a pinned cgroup are its own, also before workloads of the cgroup above it.
func TestPinnedBelowOthers(t *testing.T) {
	o := run(t, parseText(t, file("cpus: 4", "p: {quota: 400ms}, a: {parent: p, quota: 200ms, remedy: {kind: pin, cpus: 2}}",
		"own: {kind: burn, cgroup: a, threads: 2}, beside: {kind: burn, cgroup: p, threads: 6}, fib: {kind: fib, "+
			"cgroup: p, threads: 4, fast: 4}, root: {kind: burn}")), 1)
	near(t, "two threads on two CPUs of their own", *o.Workloads["own"].CPUSeconds, 8, 1e-6)
	near(t, "everybody else", o.Cgroups["p"].UsageSeconds-o.Cgroups["a"].UsageSeconds+*o.Workloads["root"].CPUSeconds, 8, 1e-6)
}

func TestRemedies(t *testing.T) {
	for remedy, most := range map[string]float64{"{kind: pin, cpus: 2}": 30, "{kind: weight}": 20, "{kind: raise, factor: 20}": 20} {
		o := run(t, parse(t, "cgroup-lat-quota", "period: 100ms", "period: 100ms, remedy: "+remedy), 1)
		if *o.Workloads["sleeper"].P99 > most || o.Cgroups["lat"].ThrottledPeriods != 0 {
			t.Errorf("%s: p99 %v ms, %+v", remedy, *o.Workloads["sleeper"].P99, o.Cgroups["lat"])
		}
	}
}

// TestConservation: whatever runs, time is neither made nor lost.
func TestConservation(t *testing.T) {
	kernels := []string{"4.14", "4.19", "5.4", "5.10", "5.15", "6.3", "6.12", "6.18", "7.2"}
	rapid.Check(t, func(t *rapid.T) {
		cpus := rapid.IntRange(1, 12).Draw(t, "cpus")
		hz := rapid.SampledFrom([]string{"100", "250", "1000", "continuous"}).Draw(t, "hz")
		kernel := rapid.SampledFrom(kernels).Draw(t, "kernel")
		ms := func(most int, name string) int { return rapid.IntRange(1, most).Draw(t, name) }
		quota, period := ms(300, "quota"), ms(200, "period")
		var b strings.Builder
		fmt.Fprintf(&b, "version: 1\nduration: 500ms\nhost: {cpus: %d, hz: %s, kernel: %q, clock_skew: %dms}\n", cpus,
			hz, kernel, ms(5, "skew"))
		fmt.Fprintf(&b, "cgroups: {p: {quota: %dms, period: %dms}, c: {parent: p, quota: %dms, weight: %d}, f: {}}\n",
			quota, period, ms(150, "inner"), ms(1000, "weight"))
		fmt.Fprintf(&b, "workloads:\n  burn: {kind: burn, cgroup: c, threads: %d}\n", ms(20, "burners"))
		fmt.Fprintf(&b, "  pool: {kind: sleep-run, cgroup: p, threads: %d, run: {exponential: %dms}, sleep: %dms}\n",
			ms(20, "pool"), ms(8, "run"), ms(30, "sleep"))
		fmt.Fprintf(&b, "  web: {kind: service, cgroup: c, threads: %d, work: {uniform: [1ms, 5ms]}, arrivals: "+
			"{per_second: %d}}\n", ms(20, "web"), ms(2000, "rate"))
		fmt.Fprintf(&b, "  other: {kind: neighbour, cgroup: f, threads: %d, on: %dms, off: %dms}\n", ms(12, "other"),
			ms(40, "on"), ms(40, "off"))
		s, err := scenario.Parse("random", []byte(b.String()))
		if err != nil {
			t.Fatal(err)
		}
		r, err := Run(s, Options{Seed: rapid.Uint64().Draw(t, "seed")})
		if err != nil {
			t.Fatal(err)
		}
		o := r.Outcome
		used := 0.0
		for _, w := range o.Workloads {
			used += *w.CPUSeconds
		}
		if used > 0.5*float64(cpus)+1e-6 {
			t.Fatalf("%v CPU-seconds on %d CPUs in 0.5 s", used, cpus)
		}
		for name, c := range o.Cgroups {
			total, cpuTime := 0.0, 0.0
			for _, w := range c.Width {
				total += w.Seconds
				cpuTime += float64(w.CPUs) * w.Seconds
			}
			if math.Abs(total-0.5) > 1e-6 || math.Abs(cpuTime-c.UsageSeconds) > 1e-6 {
				t.Fatalf("%s: widths of %v s and %v CPU-seconds, used %v", name, total, cpuTime, c.UsageSeconds)
			}
			if c.ThrottledPeriods > *c.ActivePeriods || *c.ActivePeriods > c.Periods || *c.StoppedSeconds > 0.5+1e-6 {
				t.Fatalf("%s: %+v", name, c)
			}
		}
		p := o.Cgroups["p"]
		tick := 0.0
		if s.Host.HZ > 0 {
			tick = 1 / float64(s.Host.HZ)
		}
		bound := float64(p.Periods+1)*float64(quota)/1000 + float64(cpus)*(tick+1e-5)
		if p.UsageSeconds > bound {
			t.Fatalf("used %v s, more than %d refills of %d ms and a tick per CPU", p.UsageSeconds, p.Periods+1, quota)
		}
	})
}

// The inner loop allocates nothing: five times as long is as many allocations.
func TestNoAllocationPerEvent(t *testing.T) {
	s := parse(t, "cgroup-lat-quota")
	allocations := func(d time.Duration) float64 {
		s.Duration = d
		return testing.AllocsPerRun(3, func() { run(t, s, 1) })
	}
	if short, long := allocations(time.Second), allocations(5*time.Second); long > short+10 {
		t.Errorf("%v allocations in 1 s, %v in 5 s", short, long)
	}
}
