package simulate

import (
	"fmt"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/scenario"
)

// sharedRuns is a feeder that wakes two threads twice each at once, whose runs take 10 ms, on so many CPUs.
func sharedRuns(t *testing.T, cpus int, order WakeOrder) ReplayTimes {
	t.Helper()
	s := parseText(t, fmt.Sprintf("version: 1\nduration: 1s\nhost: {cpus: %d}\ncgroups: {app: {}}\nworkloads: "+
		"{feeder: {kind: burn, cgroup: app}, pool: {kind: burn, cgroup: app, threads: 2}}\n", cpus))
	s.Workloads[0].Kind, s.Workloads[1].Kind = Replayed, Replayed
	const ms = time.Millisecond
	wake := func(thread int32, nth int) ReplayStep {
		return ReplayStep{Kind: StepWake, Thread: thread, Idle: true, For: time.Duration(nth)}
	}
	pool := []ReplayStep{
		{Kind: StepAwait, Idle: true}, {Kind: StepRun, For: 10 * ms}, {Kind: StepAwait, Idle: true},
		{Kind: StepRun, For: 10 * ms}, {Kind: StepAwait, Idle: true},
	}
	r := Replay{
		Threads: []ReplayThread{
			{Steps: []ReplayStep{{Kind: StepUntil, For: 100 * ms}, wake(1, 0), wake(2, 0), wake(1, 1), wake(2, 1), {Kind: StepEnd}}},
			{Steps: pool}, {Steps: pool},
		},
		WakeOrders: []WakeOrder{NotShared, order},
	}
	result, err := RunReplay(s, &r, Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if used := result.Outcome.Cgroups["app"].UsageSeconds; used < 0.0399 || used > 0.0401 {
		t.Errorf("%d CPUs, order %d: %.4f s of CPU time, want 0.04", cpus, order, used)
	}
	return result.Times[1]
}

// Threads that share a queue go on with what has come, without a sleep between: two responses and not four.
func TestQueueSharesWork(t *testing.T) {
	for _, cpus := range []int{1, 2} {
		for order, want := range map[WakeOrder]uint64{NotShared: 4, OldestFirst: 2, NewestFirst: 2} {
			times := sharedRuns(t, cpus, order)
			if n := times.Response.Count(); n != want {
				t.Errorf("%d CPUs, order %d: %d responses, want %d", cpus, order, n, want)
			}
			if longest := *times.Response.Max(); longest < 39/float64(cpus) || longest > 41/float64(cpus) {
				t.Errorf("%d CPUs, order %d: the longest response took %.1f ms", cpus, order, longest)
			}
			if times.Unfinished > 0 {
				t.Errorf("%d CPUs, order %d: %v left", cpus, order, times.Unfinished)
			}
		}
	}
}

// What one thread cannot begin, another thread that shares its queue does: the runs of one thread, that come while it is busy.
func TestQueueRelievesTheBusy(t *testing.T) {
	s := parseText(t, "version: 1\nduration: 1s\nhost: {cpus: 2}\ncgroups: {app: {}}\nworkloads: {pool: {kind: burn, "+
		"cgroup: app, threads: 2}}\n")
	s.Workloads[0].Kind = Replayed
	const ms = time.Millisecond
	busy := []ReplayStep{
		{Kind: StepUntil, For: 100 * ms, Idle: true}, {Kind: StepRun, For: 50 * ms},
		{Kind: StepUntil, For: 110 * ms, Idle: true}, {Kind: StepRun, For: 10 * ms},
		{Kind: StepUntil, For: 500 * ms, Idle: true},
	}
	for order, want := range map[WakeOrder]float64{NotShared: 50, OldestFirst: 10} {
		r := Replay{Threads: []ReplayThread{
			{Steps: busy}, {Steps: []ReplayStep{{Kind: StepUntil, For: 900 * ms, Idle: true}}}}, WakeOrders: []WakeOrder{order}}
		result, err := RunReplay(s, &r, Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		if p50 := *result.Times[0].Response.Quantile(0.5); p50 < want-1 || p50 > want+1 {
			t.Errorf("order %d: the median response took %.1f ms, want %.0f", order, p50, want)
		}
	}
}

// A thread that repeats its steps does not bring the work of a queue again: what was recorded is done once.
func TestWorkIsBroughtOnce(t *testing.T) {
	s := parseText(t, "version: 1\nduration: 1s\nhost: {cpus: 2}\ncgroups: {app: {}}\nworkloads: {reader: {kind: burn, cgroup: app}, "+
		"pool: {kind: burn, cgroup: app, threads: 2}}\n")
	s.Workloads[0].Kind, s.Workloads[1].Kind = Replayed, Replayed
	const ms = time.Millisecond
	r := Replay{
		Threads: []ReplayThread{
			{Again: true, Steps: []ReplayStep{{Kind: StepSleep, For: 100 * ms}, {Kind: StepWake, Thread: 1, Idle: true},
				{Kind: StepSleep, For: 10 * ms}, {Kind: StepWake, Thread: 1, For: 1}}},
			{Steps: []ReplayStep{{Kind: StepAwait, Idle: true}, {Kind: StepRun, For: 2 * ms}, {Kind: StepAwait},
				{Kind: StepRun, For: 3 * ms}, {Kind: StepAwait, Idle: true}}},
			{Steps: []ReplayStep{{Kind: StepAwait, Idle: true}}},
		},
		WakeOrders: []WakeOrder{NotShared, OldestFirst},
	}
	result, err := RunReplay(s, &r, Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if used := result.Outcome.Cgroups["app"].UsageSeconds; used < 0.0049 || used > 0.0051 {
		t.Errorf("%.4f s of CPU time, want 0.005", used)
	}
}

// A replay that does not fit says so.
func TestReplayIsChecked(t *testing.T) {
	s := parseText(t, "version: 1\nduration: 1s\nhost: {cpus: 2}\ncgroups: {app: {}}\nworkloads: {pool: {kind: burn, cgroup: app}}\n")
	s.Workloads[0].Kind = Replayed
	for name, r := range map[string]Replay{
		"no threads":           {},
		"a bad step":           {Threads: []ReplayThread{{Steps: []ReplayStep{{Kind: StepEnd + 1}}}}},
		"no thread woken":      {Threads: []ReplayThread{{Steps: []ReplayStep{{Kind: StepWake, Thread: 1}}}}},
		"no such sleep":        {Threads: []ReplayThread{{Steps: []ReplayStep{{Kind: StepWake, Idle: true}}}}},
		"too many wake orders": {Threads: []ReplayThread{{}}, WakeOrders: make([]WakeOrder, 2)},
		"a CPU too far":        {Threads: []ReplayThread{{CPU: 2}}},
	} {
		if _, err := RunReplay(s, &r, Options{Seed: 1}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	s.Workloads[0].Kind = scenario.Burn
	if _, err := RunReplay(s, &Replay{Threads: []ReplayThread{{}}}, Options{}); err == nil {
		t.Error("a workload of its own kind: no error")
	}
}

// What is replayed began long before, so that a credit is saved: four threads run at once for as long as it lasts.
func TestCreditIsSavedInAReplay(t *testing.T) {
	s := parseText(t, "version: 1\nduration: 1s\nhost: {cpus: 4}\ncgroups: {app: {quota: 100ms, period: 100ms}}\n"+
		"workloads: {pool: {kind: burn, cgroup: app, threads: 4}}\n")
	s.Workloads[0].Kind = Replayed
	var r Replay
	for range 4 {
		r.Threads = append(r.Threads, ReplayThread{Steps: []ReplayStep{
			{Kind: StepUntil, For: time.Millisecond}, {Kind: StepRun, For: 40 * time.Millisecond}, {Kind: StepEnd}}})
	}
	longest := func(credit time.Duration) float64 {
		s.Cgroups[0].Remedy = &scenario.Remedy{Kind: scenario.Narrow, Credit: credit}
		result, err := RunReplay(s, &r, Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		return *result.Times[0].Response.Max()
	}
	if long, short := longest(time.Second), longest(time.Millisecond); long > 45 || short < 120 {
		t.Errorf("with a credit of a second %.1f ms, of a millisecond %.1f ms", long, short)
	}
}
