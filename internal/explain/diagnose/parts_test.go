package diagnose_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	rt "github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
)

// explained explains a recording of threads 1, 2 and so on from its events alone.
func explained(h recording.Header, end time.Duration, f recording.Footer, events ...recording.Event) diagnose.Explanation {
	f.EndNS = end.Nanoseconds()
	return explain(recording.Recording{Header: h, Events: events, Footer: f})
}

func at(d time.Duration, e recording.Event) recording.Event {
	e.AtNS = d.Nanoseconds()
	return e
}

func twoCPUs() recording.Header {
	return recording.Header{
		Host: recording.Host{CPUs: cpuset.New(0, 1)}, CPUsAllowed: cpuset.New(0, 1), Target: recording.Target{Name: "x", ID: 5},
		Threads: []recording.Thread{{TID: 1, TGID: 1, Comm: "app"}, {TID: 2, TGID: 1, Comm: "w-2"}},
	}
}

// Each millisecond in which thread 1 waits has another reason.
func TestWaitingByReason(t *testing.T) {
	h := twoCPUs()
	h.Levels = []recording.Level{{ID: 5, QuotaNS: new(int64(1e8)), PeriodNS: 1e8},
		{ID: 4, Path: "/p", QuotaNS: new(int64(1e8)), PeriodNS: 1e8}}
	e := explained(h, 20*ms, recording.Footer{},
		at(0, recording.Event{Kind: recording.Define, Owner: 3, OwnerKind: recording.OwnerContainer, Text: "batch"}),
		at(0, recording.Event{Kind: recording.Switch, CPU: 0, NextOwner: 3}),
		at(0, recording.Event{Kind: recording.Switch, CPU: 1, NextOwner: recording.Kernel}),
		at(0, recording.Event{Kind: recording.Wakeup, CPU: 0, Thread: 1}),                                // batch: 1 ms
		at(1*ms, recording.Event{Kind: recording.Switch, CPU: 0, Owner: 3, NextOwner: recording.Kernel}), // host: 2 ms
		// CPU 1 idles: 3 ms
		at(3*ms, recording.Event{Kind: recording.Switch, CPU: 1, Owner: recording.Kernel}),
		at(6*ms, recording.Event{Kind: recording.Switch, CPU: 1, NextThread: 2}),       // host again
		at(6*ms, recording.Event{Kind: recording.Migrate, CPU: 1, Thread: 1}),          // thread 2: 4 ms
		at(10*ms, recording.Event{Kind: recording.Hold, CPU: 1, Thread: 1, Cgroup: 5}), // own quota: 5 ms
		// the ancestor's: 2 ms
		at(15*ms, recording.Event{Kind: recording.Hold, CPU: 1, Thread: 1, Cgroup: 4}),
		at(17*ms, recording.Event{Kind: recording.Release, CPU: 1, Thread: 1}),                                          // thread 2: 1 ms
		at(18*ms, recording.Event{Kind: recording.Switch, CPU: 1, Thread: 2, NextThread: 1, Flags: recording.InKernel}), // runs
	)
	want := map[diagnose.Reason]time.Duration{
		diagnose.ByNeighbours: 1 * ms, diagnose.HostSystem: 2 * ms, diagnose.IdleUnused: 3 * ms, diagnose.OwnThreads: 5 * ms,
		diagnose.OwnQuota: 5 * ms, diagnose.AncestorQuota: 2 * ms,
	}
	for r, d := range want {
		if e.Waiting[r] != d {
			t.Errorf("%s: %v, not %v", r, e.Waiting[r], d)
		}
	}
	if len(e.Waiting) != len(want) {
		t.Errorf("%v", e.Waiting)
	}
	if *e.Stopped != 7*ms || *e.StoppedIntervals != 1 {
		t.Errorf("stopped for %v in %d intervals", *e.Stopped, *e.StoppedIntervals)
	}
	if d := e.Pools[0].Delay; e.Pools[0].Name != "w-*" || e.Pools[1].Delay.Max != 18*ms {
		t.Errorf("delays %+v", d)
	}
}

// An ancestor's quota of three times the container's own is not spent by the container alone, whoever else is in the recording.
func TestAQuotaOfOthers(t *testing.T) {
	for quota, others := range map[int64]bool{1e8: false, 3e8: true} {
		h := twoCPUs()
		h.Levels = []recording.Level{{ID: 5, QuotaNS: new(int64(1e8)), PeriodNS: 1e8},
			{ID: 4, Path: "/p", QuotaNS: new(quota), PeriodNS: 1e8}}
		e := explained(h, 100*ms, recording.Footer{},
			at(0, recording.Event{Kind: recording.Switch, CPU: 0, NextThread: 1}),
			at(50*ms, recording.Event{Kind: recording.Switch, CPU: 0, Thread: 1, Cgroup: 4,
				Flags: recording.PrevRunnable | recording.Throttled}),
			at(100*ms, recording.Event{Kind: recording.Release, CPU: 0, Thread: 1}))
		told := slices.ContainsFunc(e.Causes, func(c diagnose.RankedCause) bool { return c.Cause == diagnose.Ancestor })
		if told != others || *e.Stopped != 50*ms {
			t.Errorf("%d: stopped for %v by %+v", quota, *e.Stopped, e.Causes)
		}
	}
}

// Two threads wait and one CPU is idle: only one of them could have it.
func TestAnIdleCPUIsOneThreadsLoss(t *testing.T) {
	h := twoCPUs()
	e := explained(h, 10*ms, recording.Footer{},
		at(0, recording.Event{Kind: recording.Switch, CPU: 0, NextOwner: recording.Kernel}),
		at(0, recording.Event{Kind: recording.Switch, CPU: 1}),
		at(0, recording.Event{Kind: recording.Wakeup, CPU: 0, Thread: 1}),
		at(0, recording.Event{Kind: recording.Wakeup, CPU: 0, Thread: 2}),
	)
	if e.Waiting[diagnose.IdleUnused] != 10*ms || e.Waiting[diagnose.HostSystem] != 10*ms {
		t.Errorf("%v", e.Waiting)
	}
	// Bound to the busy CPU, neither could.
	for i := range h.Threads {
		h.Threads[i].Allowed = "0"
	}
	e = explained(h, 10*ms, recording.Footer{},
		at(0, recording.Event{Kind: recording.Switch, CPU: 0, NextOwner: recording.Kernel}),
		at(0, recording.Event{Kind: recording.Switch, CPU: 1}),
		at(0, recording.Event{Kind: recording.Wakeup, CPU: 0, Thread: 1}),
		at(0, recording.Event{Kind: recording.Wakeup, CPU: 0, Thread: 2}),
	)
	if e.Waiting[diagnose.IdleUnused] != 0 || e.Waiting[diagnose.HostSystem] != 20*ms {
		t.Errorf("bound: %v", e.Waiting)
	}
}

// A tenth of the time that the CPU was busy was steal, and so a tenth of the waiting there.
func TestSteal(t *testing.T) {
	e := explained(twoCPUs(), 100*ms, recording.Footer{StealNS: map[int]int64{0: (10 * ms).Nanoseconds()}, UsageNS: new(int64(0))},
		at(0, recording.Event{Kind: recording.Switch, CPU: 0, NextOwner: recording.Kernel}),
		at(0, recording.Event{Kind: recording.Switch, CPU: 1, NextOwner: recording.Kernel}),
		at(0, recording.Event{Kind: recording.Wakeup, CPU: 0, Thread: 1}),
	)
	if e.Waiting[diagnose.Steal] != 10*ms || e.Waiting[diagnose.HostSystem] != 90*ms {
		t.Errorf("%v", e.Waiting)
	}
}

func TestChecks(t *testing.T) {
	ran := []recording.Event{
		at(0, recording.Event{Kind: recording.Switch, CPU: 0, NextThread: 1}),
		at(100*ms, recording.Event{Kind: recording.Switch, CPU: 0, Thread: 1}),
	}
	good := recording.Footer{
		OnCPUNS: map[int]int64{0: 1e8}, WidthNS: []int64{9e8, 1e8}, UsageNS: new(int64(1e8)), StealNS: map[int]int64{0: 0},
	}
	h := twoCPUs()
	h.Host.HZ = new(250)
	judge := func(change func(f *recording.Footer)) []diagnose.Check {
		f := good
		change(&f)
		return explained(h, time.Second, f, ran...).Checks
	}
	for _, c := range judge(func(*recording.Footer) {}) {
		if !c.OK || c.ErrorRatio == nil {
			t.Errorf("%+v", c)
		}
	}
	for i, change := range []func(f *recording.Footer){
		func(f *recording.Footer) { f.OnCPUNS = map[int]int64{0: 1e8 + 2e5} },
		func(f *recording.Footer) { f.WidthNS = []int64{9e8 + 2e6, 1e8 - 2e6} },
		func(f *recording.Footer) { f.UsageNS = new(int64(1e8 + 5e6)) }, // more than 1 % and than a tick of 4 ms
	} {
		if c := judge(change)[i]; c.OK || c.ErrorRatio == nil || *c.ErrorRatio <= 0 {
			t.Errorf("%+v", c)
		}
	}
	if c := judge(func(f *recording.Footer) { f.UsageNS = new(int64(1e8 + 3.9e6)) })[2]; !c.OK {
		t.Errorf("within a tick: %+v", c)
	}
	if c := judge(func(f *recording.Footer) { f.StealNS = map[int]int64{0: 2e6} })[2]; c.ErrorRatio != nil ||
		c.Note != "2.0 % steal on the CPUs used" {
		t.Errorf("steal: %+v", c)
	}
	if c := judge(func(f *recording.Footer) { f.UsageNS = nil })[2]; c.ErrorRatio != nil || c.Note == "" {
		t.Errorf("no usage counter: %+v", c)
	}
}

// The kernel charges a thread that it wakes on an idle CPU from the wake-up on.
func TestUsageBeginsAtWakeups(t *testing.T) {
	for usage, want := range map[time.Duration]bool{100 * ms: true, 110 * ms: true, 113 * ms: true, 116 * ms: false, 94 * ms: false} {
		h := twoCPUs()
		h.Host.HZ = new(250)
		e := explained(h, time.Second, recording.Footer{UsageNS: new(int64(usage)), StealNS: map[int]int64{0: 0}},
			at(0, recording.Event{Kind: recording.Switch, CPU: 0, Owner: recording.Idle, NextOwner: recording.Idle}),
			at(10*ms, recording.Event{Kind: recording.Wakeup, CPU: 0, Thread: 1}),
			at(20*ms, recording.Event{Kind: recording.Switch, CPU: 0, Owner: recording.Idle, NextThread: 1}),
			at(120*ms, recording.Event{Kind: recording.Switch, CPU: 0, Thread: 1, NextOwner: recording.Idle}),
		)
		if c := e.Checks[2]; c.OK != want {
			t.Errorf("100 ms on a CPU, 10 ms after the wake-up, and a counter of %v: %+v", usage, c)
		}
	}
}

// The kernel stops charging a thread when the one that preempts it wakes up, which the recording does not have.
func TestUsageEndsAtPreemptions(t *testing.T) {
	for _, preempted := range []bool{true, false} {
		h := twoCPUs()
		h.Host.HZ = new(1000)
		flags := recording.Flags(0)
		if preempted {
			flags = recording.PrevRunnable
		}
		events := []recording.Event{at(0, recording.Event{Kind: recording.Switch, CPU: 0, Owner: recording.Root,
			NextOwner: recording.Root})}
		for i := range 500 {
			from := time.Duration(2*i) * ms
			events = append(events, at(from, recording.Event{Kind: recording.Switch, CPU: 0, Owner: recording.Root, NextThread: 1}),
				at(from+ms, recording.Event{Kind: recording.Switch, CPU: 0, Flags: flags, Thread: 1, NextOwner: recording.Root}))
		}
		e := explained(h, time.Second, recording.Footer{UsageNS: new(int64(492 * ms)), StealNS: map[int]int64{0: 0}}, events...)
		if c := e.Checks[2]; c.OK != preempted {
			t.Errorf("500 runs of 1 ms, preempted %v, and a counter of 492 ms: %+v", preempted, c)
		}
	}
}

// The timeline has whole periods, the worst ones first, and adds up.
func TestTimeline(t *testing.T) {
	s := rt.New(8).Limit(50*ms, 100*ms)
	w := s.Threads("w", 8)
	for _, start := range []time.Duration{300 * ms, 2000 * ms, 2100 * ms, 2200 * ms} {
		s.Work(start, 6*ms, w...) // 48 ms: within the quota
	}
	s.Work(2300*ms, 40*ms, w...)
	e := explain(s.Run(3 * time.Second))
	if len(e.Timeline) == 0 || e.Timeline[0].Start != 1600*ms && e.Timeline[0].Start != 2400*ms {
		t.Fatalf("the worst stretch begins at %v", e.Timeline[0].Start)
	}
	stopped := time.Duration(0)
	for i, row := range e.Timeline {
		if row.Length != 100*ms || row.Start%(100*ms) != 0 || len(row.Cells) != 50 {
			t.Errorf("row %d: %v +%v, %d cells", i, row.Start, row.Length, len(row.Cells))
		}
		held := time.Duration(0)
		for _, c := range row.Cells {
			held += time.Duration(c.Stopped * float64(2*ms))
		}
		if row.Throttled != (held > 0 && row.Cells[49].Stopped > 0) {
			t.Errorf("row at %v: throttled %v, stopped for %v", row.Start, row.Throttled, held)
		}
		stopped += held
	}
	if diff := (stopped - *e.Stopped).Abs(); diff > ms {
		t.Errorf("the timeline has %v of %v stopped", stopped, *e.Stopped)
	}
	if *e.Periods != 29 || *e.ThrottledPeriods == 0 {
		t.Errorf("%d of %d periods", *e.ThrottledPeriods, *e.Periods)
	}
}

// Work that costs twice as much when it runs wider than the limit.
func TestCostOfWidth(t *testing.T) {
	s := rt.New(8).Limit(300*ms, 100*ms)
	w := s.Threads("w", 8)
	s.Repeat(30, 30*ms, func(at time.Duration) { s.Work(at, ms, w[:2]...) })
	s.Repeat(30, 30*ms, func(at time.Duration) { s.Work(at+15*ms, 2*ms, w...) })
	c := explain(s.Run(time.Second)).CostOfWidth
	if c == nil || c.Narrow != ms || c.Wide != 2*ms || c.NarrowRuns != 60 || c.WideRuns != 240 {
		t.Errorf("%+v", c)
	}
}

// Runs of several kinds compare different work: short look-ups within the limit, and long reports above it.
func TestCostOfWidthOfSeveralKinds(t *testing.T) {
	s := rt.New(8).Limit(300*ms, 100*ms)
	w := s.Threads("w", 8)
	s.Repeat(400, 5*ms, func(at time.Duration) { s.Work(at, 100*time.Microsecond, w[0]) })
	s.Repeat(10, 200*ms, func(at time.Duration) { s.Work(at, 20*ms, w...) })
	if c := explain(s.Run(2 * time.Second)).CostOfWidth; c != nil {
		t.Errorf("%+v", c)
	}
}

// The article's view of the same: samples every 10 ms miss what lasts less.
func TestSampledWidth(t *testing.T) {
	s := rt.New(4)
	w := s.Threads("w", 4)
	s.Repeat(10, 100*ms, func(at time.Duration) { s.Work(at+ms, 5*ms, w...) })
	e := explain(s.Run(time.Second))
	if len(e.SampledWidth) != 1 || e.SampledWidth[0].Time != time.Second {
		t.Errorf("sampled: %v", e.SampledWidth)
	}
	if all, running := sum(e.Width); all != time.Second || running != 200*ms {
		t.Errorf("exact: %v", e.Width)
	}
}

// Many switches without an event deserve a warning.
func TestUnseenSwitches(t *testing.T) {
	for unseen, want := range map[uint64]bool{0: false, 1: false, 50: true} {
		s := rt.New(4)
		w := s.Threads("w", 4)
		s.Repeat(50, 20*ms, func(at time.Duration) { s.Work(at, 2*ms, w...) })
		r := s.Run(time.Second)
		r.Footer.UnseenSwitches = unseen
		e := explain(r)
		if got := slices.ContainsFunc(e.NotMeasured,
			func(text string) bool { return strings.Contains(text, "reported no event") }); got != want {
			t.Errorf("%d unseen: said so %v: %v", unseen, got, e.NotMeasured)
		}
	}
}

// The explanation reports problems of the probe.
func TestTroubles(t *testing.T) {
	s := rt.New(4)
	s.Work(0, 2*ms, s.Threads("w", 1)...)
	r := s.Run(time.Second)
	r.Footer.Troubles = []string{"a thread could not be remembered at once (3)"}
	want := "in the probe: a thread could not be remembered at once (3): figures may be off"
	if e := explain(r); !slices.Contains(e.NotMeasured, want) {
		t.Errorf("not said: %v", e.NotMeasured)
	}
}

// If a kernel does not show which threads it holds back, the causes of stopped time are unknown, and the
// explanation says so.
func TestABlindKernel(t *testing.T) {
	s := rt.New(8).Limit(50*ms, 100*ms).HideThrottling()
	w := s.Threads("w", 8)
	s.Repeat(5, 200*ms, func(at time.Duration) { s.Work(at, 8*ms, w...) })
	e := explain(s.Run(time.Second))
	if e.Stopped != nil || e.StoppedIntervals != nil || len(e.NotMeasured) == 0 {
		t.Errorf("stopped %v, not measured %v", e.Stopped, e.NotMeasured)
	}
}

// Of which causes a quota is one, and of which the container's own.
func TestByQuota(t *testing.T) {
	for cause, want := range map[diagnose.Cause][2]bool{
		diagnose.Burst: {true, true}, diagnose.Pool: {true, true}, diagnose.Shortage: {true, true}, diagnose.TinyLimit: {true, true},
		diagnose.Ancestor: {true, false}, diagnose.Inside: {true, false}, diagnose.Realtime: {true, false},
		diagnose.SliceWaste: {true, false}, diagnose.Debt: {true, false},
		diagnose.Neighbours: {}, diagnose.Cpuset: {}, diagnose.Scheduler: {}, diagnose.None: {}, "": {},
	} {
		if got := [2]bool{cause.ByQuota(), cause.OwnQuota()}; got != want {
			t.Errorf("%s: by a quota, its own: %v, want %v", cause, got, want)
		}
	}
}
