package forecast

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/see/recording"
	rt "github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

const ms = time.Millisecond

// loadOf returns the Load of a recording in memory.
func loadOf(t rapid.TB, r recording.Recording) *Load {
	t.Helper()
	b, err := newBuilder(r.Header)
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Events {
		b.add(&r.Events[i])
	}
	l, err := b.finish(r.Footer)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// bursts is a pool whose threads wake together and spend the quota.
func bursts() recording.Recording { return burstsOf("http-worker", 8*ms) }

// burstsOf is that with works of a length, in threads of a name.
func burstsOf(name string, work time.Duration) recording.Recording { return burstsFor(8, name, work) }

// burstsFor is that of so many bursts.
func burstsFor(n int, name string, work time.Duration) recording.Recording {
	s := rt.New(8).Limit(50*ms, 100*ms).Process("java")
	w := s.Threads(name, 8)
	s.Repeat(n, 250*ms, func(at time.Duration) { s.Work(at, work, w...) })
	return s.Run(time.Duration(n) * 250 * ms)
}

func TestChains(t *testing.T) {
	l := loadOf(t, bursts())
	if len(l.Pools) != 2 || l.Pools[1].Name != "http-worker-*" {
		t.Fatalf("pools %+v %+v", l.Pools[0], l.Pools[1])
	}
	runs, used := 0, time.Duration(0)
	for _, th := range l.replay.Threads {
		for _, s := range th.Steps {
			if s.Kind == simulate.StepRun {
				runs++
				used += s.For
			}
		}
	}
	if want := 64 * 8 * ms; used != want || runs != 64 {
		t.Errorf("%v of CPU time in %d runs, and %v in 64 are wanted", used, runs, want)
	}
	if l.limit != 0.5 || !l.recordedScenario.Cgroups[l.binding].Limit.Limited() || l.binding != l.container {
		t.Errorf("limit %v of cgroup %d, container %d", l.limit, l.binding, l.container)
	}
}

func TestReplayAsRecorded(t *testing.T) {
	l := loadOf(t, bursts())
	s := l.recordedScenario
	r, err := simulate.RunReplay(s, &l.replay, simulate.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	c := r.Outcome.Cgroups[s.Cgroups[l.container].Name]
	if c.ThrottledPeriods != *l.recorded.throttledPeriods || seconds(c.UsageSeconds) != l.recorded.cpu {
		t.Errorf("%d throttled periods and %v s of CPU time, recorded %d and %v", c.ThrottledPeriods, c.UsageSeconds,
			*l.recorded.throttledPeriods, l.recorded.cpu)
	}
	// The ideal host of the recording stops all CPUs at once, the kernel's rules stop silo by silo: the
	// longest wait is the same.
	now, was := *r.Times[l.Pools[1].workloads[0]].Response.Max(), *l.Pools[1].recorded.Response.Max()
	if math.Abs(now-was) > 5 {
		t.Errorf("the longest response took %.1f ms, recorded %.1f", now, was)
	}
}

// A thread that another thread of the container wakes waits for that thread. A regular timer's sleep begins
// when the thread goes to sleep.
func TestCauses(t *testing.T) {
	s := rt.New(2).Limit(100*ms, 100*ms).Process("app")
	tids := s.Threads("w", 2)
	feeder, worker := tids[0], tids[1]
	// The feeder sleeps 10 ms after each run, however long that took, and wakes the worker in the middle of
	// the run.
	at := func(d time.Duration, e recording.Event) { e.AtNS = d.Nanoseconds(); s.Add(e) }
	now := 10 * ms
	for i := range 20 {
		run := 4*ms + time.Duration(i)*ms/2
		at(now, recording.Event{Kind: recording.Wakeup, Thread: feeder, Owner: recording.Kernel})
		at(now, recording.Event{Kind: recording.Switch, NextThread: feeder})
		at(now+2*ms, recording.Event{Kind: recording.Wakeup, Thread: worker, CPU: 1, Waker: feeder})
		at(now+2*ms, recording.Event{Kind: recording.Switch, NextThread: worker, CPU: 1})
		at(now+3*ms, recording.Event{Kind: recording.Switch, Thread: worker, CPU: 1})
		at(now+run, recording.Event{Kind: recording.Switch, Thread: feeder})
		now += run + 10*ms
	}
	l := loadOf(t, s.Run(now-ms))
	kinds := func(tid int) map[simulate.StepKind]int {
		n := map[simulate.StepKind]int{}
		for _, step := range l.replay.Threads[tid].Steps {
			n[step.Kind]++
		}
		return n
	}
	// The first sleep began before the recording, so its length is unknown.
	if got := kinds(1); got[simulate.StepSleep] < 19 || got[simulate.StepWake] != 20 || got[simulate.StepRun] != 40 {
		t.Errorf("the feeder: %v", got)
	}
	// As many shards, and other threads that take the work, change nothing.
	r, err := l.run(trial{remedy: Remedy{Name: Shards, Factor: 1}, load: 1, seed: 1})
	if err != nil || r.refused != nil {
		t.Fatal(err, r.refused)
	}
	if times := l.mergedTimes([]result{r}, "").Response; times.Count() < 38 || *times.Max() > 14 || r.unfinished > 0 ||
		r.cpu != l.recorded.cpu {
		t.Errorf("the same shards: %d responses up to %.1f ms, %v of CPU time and %v left", times.Count(), *times.Max(),
			r.cpu, r.unfinished)
	}
	if got := kinds(2); got[simulate.StepAwait] != 20 || got[simulate.StepRun] != 20 {
		t.Errorf("the worker: %v", got)
	}
}

// At half of the load a replay takes twice as long, and the neighbours are there all the time.
func TestNeighboursOutlastTheRecording(t *testing.T) {
	sched := rt.New(2).Limit(50*ms, 100*ms).Process("server")
	w := sched.Threads("server", 1)
	other := sched.Neighbour("batch", "/batch", nil, nil)
	sched.Repeat(10, 100*ms, func(at time.Duration) {
		sched.Work(at, 8*ms, w...)
		sched.Occupy(at, at+20*ms, 1, other)
	})
	l := loadOf(t, sched.Run(time.Second))
	for _, factor := range []float64{0.5, 1, 2} {
		s, r := l.recordedScenario, l.replay
		l.scaleArrivals(&s, &r, l.own, factor)
		var last, ran time.Duration
		first, n := l.threadsOf(l.own)
		for _, th := range r.Threads[first : first+n] {
			for i, step := range th.Steps {
				switch step.Kind {
				case simulate.StepUntil:
					last = max(last, step.For)
				case simulate.StepRun:
					ran += step.For
				case simulate.StepEnd:
					if i != len(th.Steps)-1 {
						t.Errorf("at %g times the load a thread ends at step %d of %d", factor, i, len(th.Steps))
					}
				}
			}
		}
		if times := time.Duration(max(1, 1/factor)); last < (times*1000-150)*ms || ran < times*190*ms || ran > times*210*ms {
			t.Errorf("at %g times the load neighbours run %v, last from %v on", factor, ran, last)
		}
	}
}
