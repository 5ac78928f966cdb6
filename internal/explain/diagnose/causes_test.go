package diagnose_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	rt "github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
)

const ms = time.Millisecond

// explain runs a whole recording through an analysis.
func explain(r recording.Recording) diagnose.Explanation {
	a := diagnose.New(r.Header, diagnose.Options{})
	for i := range r.Events {
		a.Add(&r.Events[i])
	}
	return a.Finish(r.Footer)
}

// besideNeighbours is work of 4 ms in 10 that each time waits so long for others.
func besideNeighbours(wait time.Duration) *rt.Schedule {
	s := rt.New(2)
	w := s.Threads("worker", 2)
	n := s.Neighbour("batch/etl", "/batch/etl", nil, nil)
	s.Repeat(100, 10*ms, func(at time.Duration) {
		s.Work(at, 4*ms, w...)
		s.Occupy(at, at+wait, 0, n)
		s.Occupy(at, at+wait, 1, n)
	})
	return s
}

// besideAReport is a child that compresses for longer than a quota, beside threads that wake now and then. They answer, or
// the child does.
func besideAReport(serverAnswers bool) *rt.Schedule {
	s := rt.New(4).Limit(40*ms, 100*ms)
	server := s.Threads("server", 2)
	long := s.Child("gzip")
	s.Client(recording.Kernel, server...)
	s.Repeat(20, 200*ms, func(at time.Duration) { s.Work(at, 55*ms, long) })
	s.Repeat(60, 64*ms, func(at time.Duration) { s.Work(at, ms/5, server...) })
	if s.Answers(long); serverAnswers {
		s.Answers(server...)
	}
	return s
}

// stoppedByPod are bursts that spend a pod's quota before that of its only container, which is as many CPUs.
func stoppedByPod() *rt.Schedule {
	s := rt.New(4).Limit(40*ms, 200*ms).ParentLimit(20*ms, 100*ms)
	w := s.Threads("w", 3)
	s.Repeat(3, 400*ms, func(at time.Duration) { s.Work(at, 10*ms, w...) })
	return s
}

// cases has a schedule for each cause that an ideal host can show.
var cases = map[string]struct {
	first           diagnose.Cause
	next            diagnose.Cause // "": any cause
	says            []string       // parts of the verdict
	guilty, suffers string         // "": any
	length          time.Duration
	build           func() *rt.Schedule
}{
	"burst": {first: diagnose.Burst, guilty: "http-worker-*",
		says: []string{"8 threads of pool `http-worker-*` ran 8 wide and spent the 50 ms quota in 6.3 ms",
			"was stopped for"}, build: func() *rt.Schedule {
			s := rt.New(8).Limit(50*ms, 100*ms).Process("java")
			w := s.Threads("http-worker", 8)
			s.Repeat(5, 200*ms, func(at time.Duration) { s.Work(at+10*ms, 8*ms, w...) })
			return s
		}},
	"pool": {first: diagnose.Pool, guilty: "gc-*", suffers: "request-*",
		says: []string{"Pool `gc-*` spent", "stopped pool `request-*`"}, build: func() *rt.Schedule {
			s := rt.New(8).Limit(50*ms, 100*ms).Process("java")
			gc, requests := s.Threads("gc", 6), s.Threads("request", 2)
			s.Repeat(5, 200*ms, func(at time.Duration) { s.Work(at, 10*ms, gc...) })
			s.Repeat(100, 10*ms, func(at time.Duration) { s.Work(at, ms, requests...) })
			return s
		}},
	"pool, though the one that waits once took most of a quota itself": {first: diagnose.Pool, guilty: "gc-*",
		suffers: "request-*", length: 4 * time.Second, build: func() *rt.Schedule {
			s := rt.New(8).Limit(50*ms, 100*ms).Process("java")
			gc, requests := s.Threads("gc", 6), s.Threads("request", 2)
			s.Repeat(20, 200*ms, func(at time.Duration) { s.Work(at, 10*ms, gc...) })
			s.Repeat(400, 10*ms, func(at time.Duration) { s.Work(at, ms/4, requests...) })
			s.Work(2100*ms, 20*ms, requests...)
			return s
		}},
	"shortage, with the sleeper as the article has it": {first: diagnose.Shortage, next: diagnose.Pool,
		guilty: "burner-*", says: []string{"needs more CPU than it has", "`burner-*`"}, build: func() *rt.Schedule {
			s := rt.New(4).Limit(200*ms, 100*ms).Process("bench")
			burners, sleeper := s.Threads("burner", 32), s.Threads("sleeper", 1)
			s.Work(0, 10*time.Second, burners...)
			s.Repeat(50, 20*ms, func(at time.Duration) { s.Work(at, 100*time.Microsecond, sleeper...) })
			return s
		}},
	"shortage, though others kept it from using all of its limit": {first: diagnose.Shortage, next: diagnose.Pool,
		says: []string{"90 % of it was used"}, build: func() *rt.Schedule {
			s := rt.New(4).Limit(200*ms, 100*ms)
			burners, sleeper := s.Threads("burner", 8), s.Threads("sleeper", 1)
			s.Work(0, 10*time.Second, burners...)
			s.Repeat(50, 20*ms, func(at time.Duration) { s.Work(at, 100*time.Microsecond, sleeper...) })
			n := s.Neighbour("batch/etl", "/batch/etl", nil, nil)
			for _, at := range []time.Duration{300 * ms, 700 * ms} {
				for cpu := range 3 {
					s.Occupy(at, at+100*ms, cpu, n)
				}
			}
			return s
		}},
	"the limit used by four fifths and more, in bursts": {first: diagnose.Burst, build: func() *rt.Schedule {
		s := rt.New(8).Limit(50*ms, 100*ms)
		w := s.Threads("w", 8)
		s.Repeat(5, 200*ms, func(at time.Duration) { s.Work(at, 11*ms, w...) })
		return s
	}},
	"a limit above what it may use, and more threads": {first: diagnose.Cpuset, build: func() *rt.Schedule {
		s := rt.New(8).Allow(0, 1).Limit(400*ms, 100*ms)
		s.Work(0, 10*time.Second, s.Threads("w", 6)...)
		return s
	}},
	"two pools in bursts: each stops itself, and no pool the other": {first: diagnose.Burst, build: func() *rt.Schedule {
		s := rt.New(8).Limit(50*ms, 100*ms)
		web, gc := s.Threads("http-worker", 8), s.Threads("gc", 6)
		s.Repeat(3, 350*ms, func(at time.Duration) { s.Work(at, 12*ms, web...) })
		s.Repeat(2, 500*ms, func(at time.Duration) { s.Work(at+200*ms, 9*ms, gc...) })
		return s
	}},
	"one thread's work is longer than the quota, and stops others too": {first: diagnose.TinyLimit, next: diagnose.Pool,
		length: 2 * time.Second, build: func() *rt.Schedule {
			s := rt.New(1).Limit(40*ms, 100*ms)
			long, requests := s.Threads("long", 1), s.Threads("request", 2)
			s.Client(recording.Kernel, requests...) // a timer
			s.Repeat(8, 250*ms, func(at time.Duration) { s.Work(at, 55*ms, long...) })
			s.Repeat(100, 20*ms, func(at time.Duration) { s.Work(at, ms/2, requests...) })
			return s
		}},
	"the same, and the others beside it on other CPUs": {first: diagnose.TinyLimit,
		says: []string{"The work of one request of pool `long-*` is longer"}, build: func() *rt.Schedule {
			s := rt.New(4).Limit(40*ms, 100*ms)
			long, requests := s.Threads("long", 1), s.Threads("request", 2)
			s.Client(recording.Kernel, requests...) // a timer
			s.Repeat(2, 500*ms, func(at time.Duration) { s.Work(at, 70*ms, long...) })
			s.Repeat(100, 10*ms, func(at time.Duration) { s.Work(at, ms/2, requests...) })
			return s
		}},
	"one thread's work is longer than the quota, and stops a pool that answers few requests": {
		first: diagnose.Pool, next: diagnose.TinyLimit, guilty: "gzip", suffers: "server-*", length: 4 * time.Second,
		build: func() *rt.Schedule {
			return besideAReport(true)
		}},
	"a pool that answers in bursts, and stops a helper that nobody waits for": {first: diagnose.Burst, build: func() *rt.Schedule {
		s := rt.New(8).Limit(50*ms, 100*ms).Process("beam")
		schedulers, dirty := s.Threads("scheduler", 8), s.Threads("dirty", 2)
		s.Answers(schedulers...)
		s.Repeat(5, 200*ms, func(at time.Duration) { s.Work(at+10*ms, 8*ms, schedulers...) })
		s.Repeat(100, 10*ms, func(at time.Duration) { s.Work(at, ms/10, dirty...) })
		return s
	}},
	"work that nobody waits for spends two fifths of the quota, beside a pool that answers": {
		first: diagnose.Pool, next: diagnose.Burst, guilty: "compaction-*", suffers: "server-*",
		says: []string{"`compaction-*` spent 4", "It is near to burst: "}, length: 4 * time.Second, build: func() *rt.Schedule {
			s := rt.New(8).Limit(70*ms, 100*ms).Process("java")
			compaction, flush, server := s.Threads("compaction", 2),
				slices.Concat(s.Threads("flush-a", 1), s.Threads("flush-b", 1), s.Threads("flush-c", 1)), s.Threads("server", 2)
			s.Answers(server...)
			s.Repeat(20, 200*ms, func(at time.Duration) {
				s.Work(at, 22*ms, compaction...)
				s.Work(at, 20*ms, flush[:2]...)
				s.Work(at, 10*ms, flush[2])
			})
			s.Repeat(400, 10*ms, func(at time.Duration) { s.Work(at, ms/5, server...) })
			return s
		}},
	"handlers in bursts, beside the thread that answers for them": {first: diagnose.Burst, next: diagnose.Pool,
		length: 4 * time.Second, build: func() *rt.Schedule {
			s := rt.New(8).Limit(50*ms, 100*ms).Process("java")
			network, handlers := s.Threads("network", 1), s.Threads("handler", 8)
			s.Answers(network...)
			s.WokenBy(network[0], handlers...)
			s.Repeat(20, 200*ms, func(at time.Duration) { s.Work(at+ms/10, 8*ms, handlers...) })
			s.Repeat(200, 20*ms, func(at time.Duration) { s.Work(at, ms/5, network...) })
			return s
		}},
	"one thread's reports, beside the others of its pool": {
		first: diagnose.Pool, guilty: "conn-*", suffers: "conn-*",
		says:   []string{"One of 6 threads of pool `conn-*` spent most of the 40 ms quota in runs of"},
		length: 4 * time.Second, build: func() *rt.Schedule {
			s := rt.New(4).Limit(40*ms, 100*ms)
			conn := s.Threads("conn", 6)
			s.Answers(conn...)
			s.Repeat(20, 200*ms, func(at time.Duration) { s.Work(at, 60*ms, conn[0]) })
			s.Repeat(400, 10*ms, func(at time.Duration) { s.Work(at+ms, 100*time.Microsecond, conn[1:]...) })
			return s
		}},
	"the same, and another pool answers": {first: diagnose.TinyLimit, length: 4 * time.Second,
		build: func() *rt.Schedule { return besideAReport(false) }},
	"more than its own limit wanted all the time, under an ancestor's quota": {first: diagnose.Shortage,
		next: diagnose.Ancestor, says: []string{"its own limit of 0.5 CPUs all the time", "`burner-*`"}, build: func() *rt.Schedule {
			s := rt.New(2).Limit(50*ms, 100*ms).ParentLimit(40*ms, 100*ms)
			s.Work(0, 10*time.Second, s.Threads("burner", 3)...)
			n := s.Neighbour("shop/sidecar", "/parent/sidecar", nil, nil)
			s.Occupy(0, 300*ms, 0, n)
			s.Occupy(0, 300*ms, 1, n)
			return s
		}},
	"neighbours in the way of a burst that the quota stops anyhow": {first: diagnose.Burst, next: diagnose.Neighbours,
		build: func() *rt.Schedule {
			s := rt.New(2).Limit(70*ms, 100*ms)
			w := s.Threads("w", 12)
			n := s.Neighbour("batch/etl", "/batch/etl", nil, nil)
			s.Repeat(3, 350*ms, func(at time.Duration) {
				s.Work(at+10*ms, 12*ms, w...)
				s.Occupy(at+12*ms, at+24*ms, 0, n)
				s.Occupy(at+12*ms, at+24*ms, 1, n)
			})
			return s
		}},
	"a neighbour below the same ancestor spends its quota": {first: diagnose.Ancestor, guilty: "shop/sidecar",
		says: []string{"shop/sidecar below it used 1 CPU"}, build: func() *rt.Schedule {
			s := rt.New(2).ParentLimit(20*ms, 100*ms)
			w := s.Threads("w", 1)
			n := s.Neighbour("shop/sidecar", "/parent/sidecar", nil, nil)
			s.Occupy(0, time.Second, 1, n)
			s.Repeat(10, 100*ms, func(at time.Duration) { s.Work(at, 30*ms, w...) })
			return s
		}},
	"a pod's quota, which is that of its only container": {first: diagnose.Burst,
		build: func() *rt.Schedule { return stoppedByPod() }},
	"the same, and another container spends some of it": {first: diagnose.Ancestor, guilty: "shop/sidecar",
		says: []string{"The quota of /parent (20 ms in 100 ms)"}, build: func() *rt.Schedule {
			s := stoppedByPod()
			s.Occupy(0, 400*ms, 0, s.Neighbour("shop/sidecar", "/parent/sidecar", nil, nil))
			return s
		}},
	"the same, and another container spends it on CPUs of its own": {first: diagnose.Ancestor, guilty: "shop/sidecar",
		says: []string{"The quota of /parent (20 ms in 100 ms)", "shop/sidecar below it used 1 CPU"}, build: func() *rt.Schedule {
			s := stoppedByPod().Allow(0, 1, 2)
			s.Occupy(0, time.Second, 3, s.Neighbour("shop/sidecar", "/parent/sidecar", nil, nil))
			return s
		}},
	"steady load above the limit": {first: diagnose.Shortage, build: func() *rt.Schedule {
		s := rt.New(2).Limit(50*ms, 100*ms)
		w := s.Threads("w", 2)
		s.Repeat(100, 10*ms, func(at time.Duration) { s.Work(at, 8*ms, w...) })
		return s
	}},
	"a request of 200 ms with 0.4 CPUs": {first: diagnose.TinyLimit,
		says: []string{"200 ms of CPU time per run", "40 ms quota", "was stopped for 60 ms"}, build: func() *rt.Schedule {
			s := rt.New(4).Limit(40*ms, 100*ms)
			w := s.Threads("worker", 1)
			s.Work(0, 200*ms, w...)
			return s
		}},
	"the parent's quota": {first: diagnose.Ancestor, says: []string{"The quota of /parent (30 ms in 100 ms)"}, build: func() *rt.Schedule {
		s := rt.New(4).ParentLimit(30*ms, 100*ms)
		w := s.Threads("worker", 2)
		s.Repeat(5, 200*ms, func(at time.Duration) { s.Work(at, 30*ms, w...) })
		return s
	}},
	"neighbours": {first: diagnose.Neighbours, guilty: "batch/etl", says: []string{"batch/etl"}, build: func() *rt.Schedule {
		s := rt.New(2)
		w := s.Threads("worker", 2)
		n := s.Neighbour("batch/etl", "/batch/etl", new(uint64(10)), new(uint64(9)))
		s.Repeat(20, 50*ms, func(at time.Duration) {
			s.Work(at, 15*ms, w...)
			s.Occupy(at, at+20*ms, 0, n)
			s.Occupy(at, at+20*ms, 1, n)
		})
		return s
	}},
	"neighbours that hold it back for less than a millisecond": {first: diagnose.None, says: []string{"Nothing wrong"},
		build: func() *rt.Schedule {
			return besideNeighbours(800 * time.Microsecond)
		}},
	"the same for two milliseconds": {first: diagnose.Neighbours, build: func() *rt.Schedule { return besideNeighbours(2 * ms) }},
	"a stop of less than 1 % of the time": {first: diagnose.None, says: []string{"a quota held it back for only"},
		build: func() *rt.Schedule {
			s := rt.New(2).Limit(50*ms, 100*ms)
			s.Work(0, 26*ms, s.Threads("w", 2)...) // the last ms of each waits for 75 ms, of a window of 10 s
			return s
		}, length: 10 * time.Second},
	"cpuset": {first: diagnose.Cpuset, says: []string{"1 CPU of the host's 4", "up to 4 threads"}, build: func() *rt.Schedule {
		s := rt.New(4).Allow(2)
		s.Work(0, 10*time.Second, s.Threads("w", 4)...)
		return s
	}},
	"more threads than the host has CPUs, and all of them in its cpuset": {first: diagnose.None,
		says: []string{"all 2 CPUs of the host", "The host is full"}, build: func() *rt.Schedule {
			s := rt.New(2)
			s.Work(0, 10*time.Second, s.Threads("w", 6)...)
			return s
		}},
	"a scheduler that ignores limits": {first: diagnose.Scheduler, says: []string{`"scx_simple"`}, build: func() *rt.Schedule {
		s := rt.New(4)
		h := s.Header()
		h.Levels[0].QuotaNS = new((20 * ms).Nanoseconds())
		h.Host.SchedExt = "scx_simple"
		s.Work(0, 10*time.Second, s.Threads("w", 3)...)
		s.Repeat(9, 100*ms, func(at time.Duration) {
			s.Add(recording.Event{AtNS: (at + 100*ms).Nanoseconds(), Kind: recording.Period, Cgroup: rt.ContainerID,
				Period: recording.PeriodState{QuotaNS: 20_000_000}})
		})
		return s
	}},
	"idle": {first: diagnose.None, says: []string{"None of its threads ran"},
		build: func() *rt.Schedule { return rt.New(4).Limit(100*ms, 100*ms) }},
	"busy below the limit": {first: diagnose.None, says: []string{"Nothing wrong"}, build: func() *rt.Schedule {
		s := rt.New(4).Limit(100*ms, 100*ms)
		w := s.Threads("w", 2)
		s.Repeat(10, 100*ms, func(at time.Duration) { s.Work(at, 30*ms, w...) })
		return s
	}},
	"no limit, busy": {first: diagnose.None, build: func() *rt.Schedule {
		s := rt.New(4)
		s.Work(0, 10*time.Second, s.Threads("w", 3)...)
		return s
	}},
}

func TestEachCauseIsNamedFirst(t *testing.T) {
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e := explain(c.build().Run(max(c.length, time.Second)))
			t.Log(e.Verdict)
			for _, r := range e.Causes {
				t.Logf("%s %v: %s", r.Cause, r.Stopped, r.Evidence)
			}
			if e.Cause != c.first || e.Causes[0].Cause != c.first {
				t.Errorf("first is %s, not %s", e.Cause, c.first)
			}
			if c.next != "" && (len(e.Causes) < 2 || e.Causes[1].Cause != c.next) {
				t.Errorf("%s does not follow: %v", c.next, e.Causes)
			}
			if got := strings.Join(e.Causes[0].Guilty, " "); c.guilty != "" && got != c.guilty {
				t.Errorf("guilty is %q, not %q", got, c.guilty)
			}
			if got := e.Causes[0].Suffers; c.suffers != "" && got != c.suffers {
				t.Errorf("%q suffers, not %q", got, c.suffers)
			}
			for _, s := range c.says {
				if !strings.Contains(e.Verdict, s) {
					t.Errorf("the verdict lacks %q: %s", s, e.Verdict)
				}
			}
			for _, check := range e.Checks {
				if !check.OK {
					t.Errorf("check %s: %v %s", check.Name, check.ErrorRatio, check.Note)
				}
			}
			if len(e.NotMeasured) > 0 {
				t.Errorf("not measured: %v", e.NotMeasured)
			}
		})
	}
}

// Two threads that wait at once for 20 ms, 20 times, cost 400 ms of wall time and 800 ms of thread time.
func TestWallTimeOfWaiting(t *testing.T) {
	e := explain(cases["neighbours"].build().Run(time.Second))
	c := e.Causes[0]
	if c.Wall == nil || c.Waited == nil {
		t.Fatalf("%+v", c)
	}
	if near := func(got, want time.Duration) bool { return got > want-20*ms && got < want+20*ms }; !near(*c.Wall,
		400*ms) || !near(*c.Waited, 800*ms) {
		t.Errorf("wall time %v, thread time %v", *c.Wall, *c.Waited)
	}
}

// stoppedBelow has a worker that the quota of a cgroup in the container holds for 29 ms; a neighbour has its CPU for 11 ms more.
func stoppedBelow(own time.Duration) *rt.Schedule {
	s := rt.New(1)
	if own > 0 {
		s.Limit(own, 100*ms)
	}
	h := s.Header()
	h.SubLevels = []recording.Level{{Path: h.Target.Path + "/child", ID: 77, QuotaNS: new(int64(10 * ms)), PeriodNS: int64(100 * ms)}}
	w := s.Threads("worker", 1)
	s.Work(0, 20*ms, w...)
	s.Occupy(0, 40*ms, 0, s.Neighbour("batch/etl", "/batch/etl", nil, nil))
	s.Add(recording.Event{Kind: recording.Hold, AtNS: int64(ms), Thread: w[0], Cgroup: 77},
		recording.Event{Kind: recording.Release, AtNS: int64(30 * ms), Thread: w[0]})
	return s
}

// Quotas of cgroups in a container come before what cost less, such as neighbours, whether or not it has a limit of its own.
func TestStoppedBelow(t *testing.T) {
	for _, own := range []time.Duration{0, 90 * ms} {
		e := explain(stoppedBelow(own).Run(100 * ms))
		if e.Cause != diagnose.Inside || !strings.Contains(e.Verdict, "/child (10 ms in 100 ms), a cgroup in it, "+
			"held threads back for 29 ms of 100 ms: explain that cgroup") ||
			!slices.ContainsFunc(e.Causes, func(c diagnose.RankedCause) bool { return c.Cause == diagnose.Neighbours }) {
			t.Errorf("own quota %v: %s: %s (%+v)", own, e.Cause, e.Verdict, e.Causes)
		}
	}
}

// Stopped time that no cause accounts for is not hidden by a cause that cost less.
func TestUnexplainedStopsAreRanked(t *testing.T) {
	s := stoppedBelow(0)
	s.Header().SubLevels = nil
	e := explain(s.Run(100 * ms))
	if e.Cause != diagnose.None || !strings.Contains(e.Verdict, "A quota held it back for 29 ms of 100 ms") || len(e.Causes) < 2 {
		t.Errorf("%s: %s (%+v)", e.Cause, e.Verdict, e.Causes)
	}
}

// A stop by the quota of a cgroup that the recording does not list is nobody else's, whatever limits there are.
func TestStoppedByAnUnlistedCgroup(t *testing.T) {
	s := stoppedBelow(90 * ms)
	s.Header().SubLevels = nil
	e := explain(s.Run(100 * ms))
	if e.Cause != diagnose.None || *e.Stopped != 29*ms || !slices.ContainsFunc(e.NotMeasured, func(what string) bool {
		return strings.HasPrefix(what, "whose quota stopped it for 29 ms: ")
	}) {
		t.Errorf("%s: %s (%+v), not measured: %v", e.Cause, e.Verdict, e.Causes, e.NotMeasured)
	}
}

// What made the recording is named as itself, and is no neighbour to blame.
func TestRecorderIsNotBlamed(t *testing.T) {
	for _, known := range []bool{true, false} {
		s := rt.New(2)
		w := s.Threads("worker", 2)
		r := s.Recorder()
		s.Repeat(100, 10*ms, func(at time.Duration) {
			s.Work(at, 4*ms, w...)
			s.Occupy(at, at+2*ms, 0, r)
			s.Occupy(at, at+2*ms, 1, r)
		})
		if !known {
			s.Header().Recorder = 0
		}
		e := explain(s.Run(time.Second))
		if (e.Cause == diagnose.Neighbours) == known {
			t.Errorf("known %v: %s: %s", known, e.Cause, e.Verdict)
		}
		if len(e.Neighbours) != 1 || e.Neighbours[0].Recorder != known || e.Neighbours[0].Waited < 300*ms {
			t.Errorf("known %v: %+v", known, e.Neighbours)
		}
	}
}

// A real-time thread that does not run is not told as neighbours' doing.
func TestRealtimeLimit(t *testing.T) {
	s := besideNeighbours(4 * ms)
	s.Header().Levels[0].RTRuntimeNS, s.Header().Levels[0].RTPeriodNS = new(int64(100*ms)), int64(time.Second)
	for i := range s.Header().Threads {
		s.Header().Threads[i].Realtime = "fifo"
	}
	e := explain(s.Run(time.Second))
	if e.Cause != diagnose.Realtime || !strings.Contains(e.Verdict, "is 100 ms in 1.00 s") ||
		e.Waiting[diagnose.RealtimeLimit] < 700*ms || e.Waiting[diagnose.ByNeighbours] > 0 {
		t.Errorf("%s: %s, %v", e.Cause, e.Verdict, e.Waiting)
	}
	// One such thread among ordinary ones of its name tells nothing of these.
	s = besideNeighbours(4 * ms)
	s.Header().Threads[0].Realtime = "fifo"
	if len(s.Header().Threads) < 2 {
		t.Fatal("one thread")
	}
	if e := explain(s.Run(time.Second)); e.Cause != diagnose.Neighbours || e.Waiting[diagnose.RealtimeLimit] > 0 {
		t.Errorf("one of several: %s: %s, %v", e.Cause, e.Verdict, e.Waiting)
	}
}

// A frozen container is not idle.
func TestFrozen(t *testing.T) {
	s := rt.New(2).Limit(50*ms, 100*ms)
	s.Threads("worker", 2)
	r := s.Run(time.Second)
	r.Header.Target.Frozen, r.Footer.Frozen = true, true
	if e := explain(r); e.Cause != diagnose.None || !strings.Contains(e.Verdict, "It is frozen") {
		t.Errorf("%s: %s", e.Cause, e.Verdict)
	}
}

// If the kernel has no mark, counters may still show that a quota held the container back.
func TestThrottledByCountersAlone(t *testing.T) {
	s := rt.New(4).Limit(100*ms, 100*ms)
	w := s.Threads("worker", 1)
	s.Repeat(9, 100*ms, func(at time.Duration) { s.Work(at, 20*ms, w...) })
	r := s.Run(time.Second)
	r.Header.Features.Mark = ""
	r.Footer.Periods, r.Footer.ThrottledPeriods = new(uint64(10)), new(uint64(4))
	e := explain(r)
	if e.Cause != diagnose.None || !strings.Contains(e.Verdict, "A quota held it back in 4 of 10 periods") ||
		!strings.Contains(e.Causes[0].Evidence, "4 of 10 periods throttled") {
		t.Errorf("%s: %s (%+v)", e.Cause, e.Verdict, e.Causes)
	}
	r.Footer.ThrottledPeriods = new(uint64(0))
	if e := explain(r); strings.Contains(e.Verdict, "held it back in") {
		t.Errorf("nothing was throttled: %s", e.Verdict)
	}
}
