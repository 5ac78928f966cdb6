package simulate

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// at once is so many requests of 100 ms at one moment, a thread each.
func atOnce(host string, requests int) string {
	return fmt.Sprintf("version: 1\nduration: 2s\nhost: {%s, hz: 250}\nworkloads:\n"+
		"  w: {kind: service, threads: %d, work: 100ms, arrivals: {at: [%s0s]}}\n",
		host, requests, strings.Repeat("0s, ", requests-1))
}

func longest(t testing.TB, text string, seed uint64) float64 {
	t.Helper()
	return *run(t, parseText(t, text), seed).Workloads["w"].Max
}

// Two threads on one core get 1.3 times as much done together as one alone; on two
// cores twice as much.
func TestSiblings(t *testing.T) {
	for _, test := range []struct {
		name, host string
		requests   int
		want       float64 // ms
	}{
		{"one on a core of two", "cpus: 2, topology: {threads_per_core: 2}", 1, 100},
		{"two on one core", "cpus: 2, topology: {threads_per_core: 2}", 2, 200 / 1.3},
		{"two on one core, no gain", "cpus: 2, topology: {threads_per_core: 2, sibling: 1}", 2, 200},
		{"two on one core, as two cores", "cpus: 2, topology: {threads_per_core: 2, sibling: 2}", 2, 100},
		{"two on two cores", "cpus: 4, topology: {threads_per_core: 2}", 2, 100},
		{"four on two cores", "cpus: 4, topology: {threads_per_core: 2}", 4, 200 / 1.3},
		{"four on a core of four", "cpus: 4, topology: {threads_per_core: 4}", 4, 400 / 1.9},
		{"two on two equal CPUs", "cpus: 2", 2, 100},
	} {
		for seed := uint64(1); seed <= 3; seed++ {
			near(t, test.name, longest(t, atOnce(test.host, test.requests), seed), test.want, 0.001)
		}
	}
}

// Who is alone again on its core is as fast as ever.
func TestSiblingsEndOneByOne(t *testing.T) {
	text := strings.Replace(atOnce("cpus: 2, topology: {threads_per_core: 2}", 1), "workloads:\n",
		"workloads:\n  other: {kind: service, threads: 1, work: 26ms, arrivals: {at: [0s]}}\n", 1)
	// 40 ms side by side make 26 ms of each, and 74 ms are left.
	near(t, "26 ms beside 100 ms", *run(t, parseText(t, text), 1).Workloads["other"].Max, 40, 0.001)
	near(t, "100 ms beside 26 ms", longest(t, text, 1), 114, 0.001)
}

// The kernel charges CPU time, whatever gets done in it.
func TestSiblingsCostTheSameQuota(t *testing.T) {
	text := "version: 1\nduration: 2s\nhost: {cpus: 2%s}\ncgroups: {a: {quota: 50ms}}\nworkloads: {w: {kind: burn, " +
		"cgroup: a, threads: 2}}\n"
	equal := run(t, parseText(t, fmt.Sprintf(text, "")), 1)
	siblings := run(t, parseText(t, fmt.Sprintf(text, ", topology: {threads_per_core: 2}")), 1)
	if !reflect.DeepEqual(equal.Cgroups, siblings.Cgroups) {
		t.Errorf("equal CPUs: %+v\nsiblings: %+v", equal.Cgroups, siblings.Cgroups)
	}
}

// A container that gets two hyperthreads instead of one gets 1.3 times as much
// done.
func TestTwoHyperthreadsAreNoTwoCores(t *testing.T) {
	served := func(cpus int) float64 {
		text := fmt.Sprintf("version: 1\nduration: 5s\nhost: {cpus: 8, topology: {threads_per_core: 2}}\n"+
			"cgroups: {a: {quota: 400ms, remedy: {kind: pin, cpus: %d}}}\n"+
			"workloads: {w: {kind: service, cgroup: a, threads: 8, work: 1ms, arrivals: {per_second: 10000}}}\n", cpus)
		return float64(run(t, parseText(t, text), 1).Workloads["w"].Count)
	}
	one := served(1)
	near(t, "two hyperthreads to one", served(2)/one, 1.3, 0.01)
	near(t, "four hyperthreads to one", served(4)/one, 2.6, 0.01)
}

// Threads that wake go to idle cores first, and threads that share a core while
// another is idle part.
func TestIdleCoresFirst(t *testing.T) {
	host := "cpus: 8, topology: {threads_per_core: 2}"
	near(t, "four threads on four cores", longest(t, atOnce(host, 4), 1), 100, 0.001)
	text := "version: 1\nduration: 2s\nhost: {cpus: 4, topology: {threads_per_core: 2}}\ncgroups: {left: {cpus: 0-1}}\nworkloads:\n" +
		"  first: {kind: service, cgroup: left, threads: 2, work: 100ms, arrivals: {at: [0s, 0s]}}\n" +
		"  w: {kind: service, threads: 2, work: 400ms, start: 10ms, arrivals: {at: [0s, 0s]}}\n"
	// Both begin on the right core; when the left one is idle, one goes there.
	if took := longest(t, text, 1); took < 401 || took > 570 {
		t.Errorf("400 ms beside one on the same core, then alone: %v ms", took)
	}
}

// Work takes longer where its memory is on another node; without mems memory lies
// where a thread first ran.
func TestRemoteMemory(t *testing.T) {
	on := func(cpus, mems string) float64 {
		text := fmt.Sprintf("version: 1\nduration: 2s\nhost: {cpus: 4, topology: {nodes: 2, remote: 1.5}}\ncgroups: {a: {cpus: %s%s}}\n"+
			"workloads:\n  w: {kind: service, cgroup: a, threads: 1, work: 100ms, arrivals: {at: [0s]}}\n", cpus, mems)
		return longest(t, text, 1)
	}
	for _, test := range []struct {
		cpus, mems string
		want       float64
	}{
		{"0-1", "", 100}, {"2-3", "", 100}, {"0-1", `, mems: "0"`, 100}, {"0-1", `, mems: "1"`, 150},
		{"2-3", `, mems: "0"`, 150}, {"2-3", ", mems: 0-1", 100},
	} {
		near(t, test.cpus+test.mems, on(test.cpus, test.mems), test.want, 0.001)
	}
}

// A thread that moves to another cache finds it cold; within a cache it does not.
func TestColdCache(t *testing.T) {
	moved := func(caches int, seed uint64) float64 {
		// A burner comes to the thread's CPU for good: the thread moves to the idle one.
		text := fmt.Sprintf("version: 1\nduration: 2s\nhost: {cpus: 2, topology: {caches: %d}, constants: {cold_cache: 7ms}}\n"+
			"cgroups: {one: {cpus: \"0\", weight: 10000}, two: {cpus: \"1\", weight: 10000}}\n"+
			"workloads:\n  w: {kind: service, threads: 1, work: 10ms, arrivals: {at: [0s, 100ms]}}\n"+
			"  b: {kind: burn, cgroup: %s, threads: 1, start: 50ms}\n", caches, map[bool]string{true: "one", false: "two"}[seed%2 == 0])
		return longest(t, text, seed/2)
	}
	cold := 0
	for seed := range uint64(12) {
		warm, other := moved(1, seed), moved(2, seed)
		near(t, "one cache", warm, 10, 0.001)
		if other > 16 {
			near(t, "another cache", other, 17, 0.001)
			cold++
		}
	}
	if cold == 0 || cold == 12 {
		t.Errorf("in %d of 12 cases the thread's CPU was taken; half are wanted", cold)
	}
}

// No core does more than its two threads can, and none less than one would; the
// same seed repeats exactly.
func TestWorkIsConserved(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		per := rapid.SampledFrom([]int{1, 2, 4}).Draw(r, "threads per core")
		cores := rapid.SampledFrom([]int{2, 4}).Draw(r, "cores")
		sibling := rapid.SampledFrom([]float64{1, 1.3, 1.8}).Draw(r, "sibling")
		nodes := rapid.SampledFrom([]int{1, 2}).Draw(r, "nodes")
		threads := rapid.IntRange(1, 3*per*cores).Draw(r, "threads")
		quota := rapid.SampledFrom([]string{"{}", "{quota: 60ms}", "{quota: 150ms}"}).Draw(r, "cgroup")
		text := fmt.Sprintf("version: 1\nduration: 300ms\nhost: {cpus: %d, topology: {threads_per_core: %d, nodes: "+
			"%d, sibling: %g}, constants: {cold_cache: 0}}\n"+
			"cgroups: {a: %s}\nworkloads:\n  w: {kind: service, cgroup: a, threads: %d, work: {exponential: 1ms}, "+
			"arrivals: {per_second: %d}}\n"+
			"  s: {kind: sleep-run, threads: 2, run: 3ms, sleep: 5ms}\n",
			per*cores, per, nodes, sibling, quota, threads, rapid.IntRange(10, 3000).Draw(r, "per second"))
		s := parseText(t, text)
		o := run(t, s, 1)
		w := o.Workloads["w"]
		// Requests are of 1 ms on average at full speed: CPU time is as much at least
		// (but for chance), and per request at most what slow siblings and remote
		// memory make of it.
		if n := float64(w.Count); n > 200 {
			slowest := 1.3 * float64(per) / min(float64(per), 1+(sibling-1)*float64(per-1))
			if each := 1000 * *w.CPUSeconds / n; each < 0.8 || each > 1.25*slowest+0.1 {
				r.Fatalf("%s\n%.3f ms of CPU per request, slowest %.2f", text, each, slowest)
			}
		}
		if again := run(t, s, 1); !reflect.DeepEqual(o, again) {
			r.Fatal("two runs differ")
		}
	})
}

func TestSiblingsScenario(t *testing.T) {
	near(t, "beside a neighbour", *run(t, parse(t, "siblings"), 1).Workloads["web"].P50, 4/1.3, 0.02)
	near(t, "on a core of its own", *run(t, parse(t, "siblings", "pin, cpus: 1", "pin, cpus: 2"), 1).Workloads["web"].P50, 2, 0.02)
}
