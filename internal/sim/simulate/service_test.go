package simulate

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/scenario"
)

// service is a scenario of one service without a limit.
func serviceOn(cpus int, keys string) string {
	return fmt.Sprintf("version: 1\nduration: 4s\nhost: {cpus: %d}\nworkloads:\n  w: {kind: service, %s}\n", cpus, keys)
}

const longJobs = "job: {%s work: 50ms, arrivals: {per_second: 10}}"

// A class with a pool of its own does not wait for another; served by the one
// I/O thread, long jobs keep it from reading, and everybody waits.
func TestOffload(t *testing.T) {
	p99 := func(jobs string) float64 {
		keys := "pools: {http: {threads: 4}, jobs: {threads: 4}}, classes: {get: {pool: http, work: 100us, arrivals: {per_second: 200}}, " +
			fmt.Sprintf(longJobs, jobs) + "}"
		return *run(t, parseText(t, serviceOn(16, keys)), 1).Workloads["w"].Classes["get"].P99
	}
	if own, io := p99("pool: jobs,"), p99(""); own > 1 || io < 30 {
		t.Errorf("get's p99 is %v ms with a pool for jobs, %v ms with jobs on the I/O thread", own, io)
	}
	two := serviceOn(16, "io: 2, classes: {get: {work: 20ms, arrivals: {per_second: 60}}}")
	one := strings.Replace(two, "io: 2", "io: 1", 1)
	a, b := run(t, parseText(t, two), 1).Workloads["w"], run(t, parseText(t, one), 1).Workloads["w"]
	near(t, "two I/O threads at 60 % each: CPU", *a.CPUSeconds, 4*1.2, 0.15)
	near(t, "one I/O thread is full: CPU", *b.CPUSeconds, 4, 0.01)
}

// A queue per thread makes requests wait behind long ones although other threads
// rest; and a full one sheds at once.
func TestQueues(t *testing.T) {
	keys := "pools: {p: {threads: 4, queue: 8QUEUES}}, classes: {get: {pool: p, work: {exponential: 5ms}, arrivals: {per_second: 560}}}"
	shared := run(t, parseText(t, serviceOn(4, strings.Replace(keys, "QUEUES", "", 1))), 1).Workloads["w"]
	each := run(t, parseText(t, serviceOn(4, strings.Replace(keys, "QUEUES", ", queues: per-thread", 1))), 1).Workloads["w"]
	if *each.P90 < 1.1**shared.P90 || each.Refused < 2*shared.Refused {
		t.Errorf("shared: %v ms, %d refused; per thread: %v ms, %d refused", *shared.P90, shared.Refused, *each.P90, each.Refused)
	}
	// No request waits longer than 8 others take.
	if *each.Max > 100 {
		t.Errorf("max %v ms behind a queue of 2 per thread", *each.Max)
	}
}

// Work under one lock runs on one CPU, whatever there is.
func TestLock(t *testing.T) {
	keys := "pools: {p: {threads: 8, queue: 10}}, classes: {get: {pool: p, work: 4ms, locked: 0.5, arrivals: {per_second: 1000}}}"
	w := run(t, parseText(t, serviceOn(8, keys)), 1).Workloads["w"]
	near(t, "requests through a lock of 2 ms in 4 s", float64(w.Count), 2000, 0.02)
}

// What requests touch costs more the more CPUs have the lines.
func TestCostOfWidth(t *testing.T) {
	keys := "shared: 8MiB, pools: {p: {threads: 8, queue: 1}}, classes: {get: {pool: p, work: 1ms, touches: 10000, " +
		"arrivals: {per_second: %d}}}"
	each := func(cpus int) float64 {
		w := run(t, parseText(t, serviceOn(cpus, fmt.Sprintf(keys, 1500*cpus))), 1).Workloads["w"]
		return *w.CPUSeconds / float64(w.Count)
	}
	one, eight := each(1), each(8)
	near(t, "1 ms and 10,000 own lines of 5 ns", one*1000, 1.05, 0.05)
	near(t, "1 ms and 10,000 lines, 7 of 8 of 60 ns", eight*1000, 1+0.05+0.55*7/8, 0.05)
}

// The service works on what its clients gave up; a budget bounds the retries.
func TestTimeoutsAndRetries(t *testing.T) {
	keys := "pools: {p: {threads: 1, queue: 1000}}, classes: {get: {pool: p, work: 10ms, arrivals: {per_second: 150}}}, timeout: 50ms"
	outcome := func(retries string) scenario.WorkloadOutcome {
		return run(t, parseText(t, serviceOn(2, keys+retries)), 1).Workloads["w"]
	}
	none, two := outcome(""), outcome(", retries: {max: 2}")
	near(t, "CPU of a full thread", *none.CPUSeconds, 4, 0.02)
	if *none.Failed < 400 || *none.Max > 50.001 {
		t.Errorf("without retries: %d of 600 failed, given up after %v ms", *none.Failed, *none.Max)
	}
	if *two.P50 < 149 || *two.Max > 180.001 { // three timeouts and two delays of 5 to 15 ms
		t.Errorf("with two retries: p50 %v ms, max %v ms", *two.P50, *two.Max)
	}
	few := outcome(", retries: {max: 2, budget: 0.05}")
	if *few.P50 > 51 || *few.P99 < 100 {
		t.Errorf("with a budget of 5 %%: p50 %v ms, p99 %v ms", *few.P50, *few.P99)
	}
}

// A rate limit lets in what it says, refuses the rest at once, and keeps those that it lets in fast. Seed 000 has such a limit
// before each shard.
func TestRateLimit(t *testing.T) {
	for _, form := range []string{
		"threads: 2, work: 5ms, queue: 1000, arrivals: {per_second: 600}",
		"pools: {p: {threads: 2, queue: 1000}}, classes: {get: {pool: p, work: 5ms, arrivals: {per_second: 600}}}",
		"io: 2, classes: {get: {work: 5ms, arrivals: {per_second: 600}}}",
	} {
		outcome := func(keys string) scenario.WorkloadOutcome {
			return run(t, parseText(t, serviceOn(4, form+keys)), 1).Workloads["w"]
		}
		limited, open := outcome(", rate_limit: {per_second: 200, burst: 10}"), outcome("")
		near(t, "answered", float64(limited.Count), 4*200+10, 0.02)
		if limited.Count+limited.Refused < open.Count || *open.P99 < 5**limited.P99 {
			t.Errorf("%s: %d answered and %d refused, p99 %v ms; without a limit p99 %v ms", form, limited.Count,
				limited.Refused, *limited.P99, *open.P99)
		}
	}
}

// What I/O threads have not read is bounded, however many of them there are.
func TestUnreadIsBounded(t *testing.T) {
	for _, io := range []int{1, 3, 1000} {
		text := serviceOn(1, fmt.Sprintf("io: %d, timeout: 1ms, classes: {a: {work: 1s, arrivals: {per_second: 1000000}}}", io))
		s := parseText(t, text)
		h, err := newHost(&s, 1)
		if err != nil {
			t.Fatal(err)
		}
		service, sum := h.works[0].service, 0
		for _, l := range service.lines[service.io:] {
			sum += l.bound
		}
		if len(service.lines) != io || sum > maxFlights || sum < maxFlights*9/10 {
			t.Errorf("%d I/O threads leave %d requests unread, want about %d", len(service.lines), sum, maxFlights)
		}
	}
}

// Bursts come together, and equal gaps are equal.
func TestArrivals(t *testing.T) {
	keys := "pools: {p: {threads: 8}}, classes: {get: {pool: p, work: 10ms, arrivals: {per_second: 80, MORE}}}"
	width := func(more string) scenario.Outcome {
		text := strings.Replace(serviceOn(8, strings.Replace(keys, "MORE", more, 1)+", cgroup: a"), "workloads",
			"cgroups: {a: {}}\nworkloads", 1)
		return run(t, parseText(t, text), 1)
	}
	if o := width("burst: 8"); o.Cgroups["a"].Width[len(o.Cgroups["a"].Width)-1].CPUs != 8 {
		t.Errorf("bursts of 8: %+v", o.Cgroups["a"].Width)
	}
	o := width("gaps: equal")
	if last := o.Cgroups["a"].Width[len(o.Cgroups["a"].Width)-1]; last.CPUs > 2 || o.Workloads["w"].Count != 319 {
		t.Errorf("equal gaps: %+v, %d requests", last, o.Workloads["w"].Count)
	}
}

// A load that changes: the same requests per unit of load, phase by phase.
func TestPhases(t *testing.T) {
	keys := "pools: {p: {threads: 8}}, classes: {get: {pool: p, work: 1ms, arrivals: {per_second: 100, gaps: " +
		"equal}}}, phases: [{for: 1s, factor: 1}, {for: 1s, factor: 0}, {for: 1s, factor: 3}]"
	near(t, "1 s at 1, 1 s at 0, 2 s at 3", float64(run(t, parseText(t, serviceOn(8, keys)), 1).Workloads["w"].Count), 700, 0.003)
	sleepers := file("cpus: 2", "", "w: {kind: sleep-run, run: 1ms, sleep: 9ms, phases: [{for: 1s, factor: 1}, {for: "+
		"1s, factor: 0}, {for: 2s, factor: 3}]}")
	near(t, "sleeps of 9, none, and 3 ms", float64(run(t, parseText(t, sleepers), 1).Workloads["w"].Count), 100+500, 0.03)
	rapid.Check(t, func(t *rapid.T) {
		var phases []scenario.Phase
		for range rapid.IntRange(1, 5).Draw(t, "phases") {
			phases = append(phases, scenario.Phase{
				For: ms(rapid.IntRange(1, 50).Draw(t, "for")), Factor: float64(rapid.IntRange(0, 4).Draw(t, "factor")),
			})
		}
		p, load := newPace(phases, 0), ms(rapid.IntRange(0, 200).Draw(t, "load"))
		got := p.spend(load)
		if got == never {
			if phases[len(phases)-1].Factor > 0 {
				t.Fatal("never, but the last phase has a load")
			}
			return
		}
		spent, at := 0.0, ms(0)
		for i, phase := range phases {
			end := at + phase.For
			if i == len(phases)-1 {
				end = max(end, got)
			}
			spent += max(0, float64(min(got, end)-at)) * phase.Factor
			at = end
		}
		if math.Abs(spent-float64(load)) > 10 {
			t.Fatalf("%v of load by %v, want %v", spent, got, load)
		}
	})
}

// Each request has one end, whatever the service and its clients do, and nothing
// is counted twice.
func TestEveryRequestEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := func(most int, name string) int { return rapid.IntRange(1, most).Draw(t, name) }
		var b strings.Builder
		fmt.Fprintf(&b, "version: 1\nduration: 1s\nhost: {cpus: %d, kernel: %q}\ncgroups: {a: {quota: %dms}}\nworkloads:\n", n(8, "cpus"),
			rapid.SampledFrom([]string{"4.14", "5.15", "6.12", "6.18", "7.2"}).Draw(t, "kernel"), n(200, "quota"))
		fmt.Fprintf(&b, "  w:\n    kind: service\n    cgroup: a\n    io: %d\n    shared: 1MiB\n    inflate: 0.0%d\n  "+
			"  timeout: %dms\n    retries: {max: %d, backoff: %dms}\n",
			n(3, "io"), n(9, "inflate"), n(100, "timeout"), n(3, "retries"), n(20, "backoff"))
		fmt.Fprintf(&b, "    pools: {p: {threads: %d, queue: %d}, q: {threads: 4, queue: %d, queues: per-thread}}\n",
			n(9, "threads"), n(50, "queue"), 3+n(50, "queue"))
		fmt.Fprintf(&b, "    classes:\n      x: {pool: p, work: {exponential: 2ms}, locked: 0.%d, arrivals: "+
			"{per_second: %d, gaps: equal, burst: %d}}\n", n(9, "locked"), n(2000, "rate"), n(4, "burst"))
		b.WriteString("      y: {pool: q, work: {uniform: [1us, 9ms]}, touches: 100, arrivals: {at: [0s, 1ms, 1ms, " +
			"500ms]}}\n      z: {work: 300us, arrivals: {per_second: 100}}\n")
		fmt.Fprintf(&b, "  g: {kind: gc, cgroup: a, of: w, threads: %d, work: %dms, every: %dms}\n",
			n(20, "collectors"), n(30, "work"), n(300, "every"))
		s, err := scenario.Parse("random", []byte(b.String()))
		if err != nil {
			t.Fatal(err)
		}
		times := map[string]uint64{}
		r, err := Run(s, Options{Seed: rapid.Uint64().Draw(t, "seed"), Times: func(w string, _ duration) { times[w]++ }})
		if err != nil {
			t.Fatal(err)
		}
		w := r.Outcome.Workloads["w"]
		if sum := w.Count + *w.Failed + w.Unfinished; sum != times["w"] {
			t.Fatalf("%d answered, %d failed, %d unfinished, %d times", w.Count, *w.Failed, w.Unfinished, times["w"])
		}
		classes := uint64(0)
		for _, c := range w.Classes {
			classes += c.Count
		}
		if classes != w.Count {
			t.Fatalf("%d answers, %d of all classes", w.Count, classes)
		}
		if used := r.Outcome.Cgroups["a"].UsageSeconds; math.Abs(used-*w.CPUSeconds) > 1e-6 {
			t.Fatalf("the service and its collector used %v s, their cgroup %v s", *w.CPUSeconds, used)
		}
		most := float64(s.Workloads[0].Server.Retries.Max+1)*ms(100).Seconds()*1000 + float64(s.Workloads[0].Server.Retries.Max)*30 + 1
		if *w.Max > most {
			t.Fatalf("a client waited %v ms", *w.Max)
		}
	})
}
