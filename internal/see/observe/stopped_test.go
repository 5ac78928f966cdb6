package observe

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

const ms = time.Millisecond

func TestStopped(t *testing.T) {
	const pod = "/pod"
	own := func(d time.Duration) *time.Duration { return &d }
	self := func(seconds float64) Share { return Share{"/pod/c", seconds} }
	anc := func(d time.Duration) []LevelThrottle { return []LevelThrottle{{Path: pod, Throttled: d}} }
	const inner = "/pod/c/payload"
	below := func(d, period time.Duration, periods, throttled uint64) []LevelThrottle {
		return []LevelThrottle{{Path: inner, Throttled: d, Period: period, Periods: periods, ThrottledPeriods: throttled}}
	}
	tiny := cgroup.Limit{Quota: ms, Period: 100 * ms}
	tests := []struct {
		name string
		in   Throttle // Window 1 s, CPUs 4 and Path are filled in
		low  any      // time.Duration or nil
		high any
		by   string
		all  []Share
	}{
		{name: "no quota anywhere: exactly 0, by the absence of limits",
			in: Throttle{}, low: 0 * ms, high: 0 * ms},
		{name: "no quota anywhere: what lies between two readings of files is not a finding",
			in: Throttle{Own: own(0), Local: own(3 * time.Microsecond)}, low: 0 * ms, high: 0 * ms},
		{name: "own quota, never throttled",
			in: Throttle{OwnQuota: true, Own: own(0), Local: own(0)}, low: 0 * ms, high: 0 * ms},
		{name: "own quota: 4 CPUs stopped for 60 ms, or one for 240 ms",
			in:  Throttle{OwnQuota: true, Own: own(240 * ms), Local: own(240 * ms)},
			low: 60 * ms, high: 240 * ms, by: BySelf, all: []Share{self(0.24)}},
		{name: "more throttled time than the window: a sum over CPUs",
			in:  Throttle{OwnQuota: true, Own: own(2940 * ms), Local: own(2940 * ms)},
			low: 735 * ms, high: 1000 * ms, by: BySelf, all: []Share{self(2.94)}},
		{name: "one CPU: exact",
			in:  Throttle{CPUs: 1, OwnQuota: true, Own: own(240 * ms), Local: own(240 * ms)},
			low: 240 * ms, high: 240 * ms, by: BySelf, all: []Share{self(0.24)}},
		{name: "CPUs not known: no lower bound",
			in:  Throttle{CPUs: -1, OwnQuota: true, Own: own(240 * ms), Local: own(240 * ms)},
			low: 0 * ms, high: 240 * ms, by: BySelf, all: []Share{self(0.24)}},
		{name: "the pod's quota: own counters 0, the inherited part is the pod's",
			in:  Throttle{Own: own(0), Local: own(815 * ms), Ancestors: anc(1600 * ms)},
			low: 203750 * time.Microsecond, high: 815 * ms, by: pod, all: []Share{{pod, 0.815}}},
		{name: "the pod's quota, but it was the sibling that suffered",
			in: Throttle{Own: own(0), Local: own(0), Ancestors: anc(1600 * ms)}, low: 0 * ms, high: 0 * ms},
		{name: "own and the pod's: own cost more",
			in:  Throttle{OwnQuota: true, Own: own(300 * ms), Local: own(400 * ms), Ancestors: anc(500 * ms)},
			low: 100 * ms, high: 400 * ms, by: BySelf, all: []Share{self(0.3), {pod, 0.1}}},
		{name: "two ancestors claim more than was inherited: scaled down alike",
			in: Throttle{Own: own(0), Local: own(400 * ms),
				Ancestors: []LevelThrottle{{Path: pod, Throttled: 100 * ms}, {Path: "/", Throttled: 900 * ms}}},
			low: 100 * ms, high: 400 * ms, by: "/", all: []Share{{"/", 0.32}, {pod, 0.08}}},
		{name: "inherited, no level visible",
			in:  Throttle{Hidden: true, Own: own(0), Local: own(400 * ms)},
			low: 100 * ms, high: 400 * ms, by: ByUnknown, all: []Share{{ByUnknown, 0.4}}},
		{name: "inherited, a visible level explains a part only",
			in:  Throttle{Hidden: true, Own: own(0), Local: own(400 * ms), Ancestors: anc(100 * ms)},
			low: 100 * ms, high: 400 * ms, by: ByUnknown, all: []Share{{ByUnknown, 0.3}, {pod, 0.1}}},
		{name: "before 6.6: own quota",
			in:  Throttle{OwnQuota: true, Own: own(240 * ms)},
			low: 0 * ms, high: 240 * ms, by: BySelf, all: []Share{self(0.24)}},
		{name: "before 6.6: an ancestor's share is low 0, high the ancestor's",
			in:  Throttle{Own: own(0), Ancestors: anc(300 * ms)},
			low: 0 * ms, high: 300 * ms, by: pod, all: []Share{{pod, 0.3}}},
		{name: "before 6.6: own and ancestor's together at most the window",
			in:  Throttle{OwnQuota: true, Own: own(700 * ms), Ancestors: anc(800 * ms)},
			low: 0 * ms, high: 1000 * ms, by: pod, all: []Share{{pod, 0.8}, self(0.7)}},
		{name: "before 6.6, nothing visible, levels hidden: not measured",
			in: Throttle{Hidden: true, Own: own(0)}},
		{name: "before 6.6, cpu.stat unreadable: not measured",
			in: Throttle{OwnQuota: true}},
		{name: "unthrottled between the reading of cpu.stat and cpu.stat.local: still its own, there is no other level",
			in:  Throttle{OwnQuota: true, Own: own(0), Local: own(80 * ms)},
			low: 20 * ms, high: 80 * ms, by: BySelf, all: []Share{self(0.08)}},
		{name: "the same with an ancestor that also cost something",
			in:  Throttle{Own: own(0), Local: own(80 * ms), Ancestors: anc(20 * ms)},
			low: 20 * ms, high: 80 * ms, by: pod, all: []Share{{pod, 0.02}}},
		{name: "stopped through the whole window to pay a debt: nothing is counted before it ends",
			in:  Throttle{OwnQuota: true, Limit: tiny, ThrottledPeriods: 10, Used: own(0), Own: own(0), Local: own(0)},
			low: 0 * ms, high: 1000 * ms, by: BySelf},
		{name: "the same for a part of the window",
			in:  Throttle{OwnQuota: true, Limit: tiny, ThrottledPeriods: 5, Used: own(3 * ms), Own: own(0)},
			low: 0 * ms, high: 600 * ms, by: BySelf},
		{name: "what has been counted is believed",
			in:  Throttle{OwnQuota: true, Limit: tiny, ThrottledPeriods: 5, Used: own(ms), Own: own(40 * ms), Local: own(40 * ms)},
			low: 10 * ms, high: 40 * ms, by: BySelf, all: []Share{self(0.04)}},
		{name: "each throttled period has used its quota: nothing goes on",
			in:  Throttle{OwnQuota: true, Limit: tiny, ThrottledPeriods: 5, Used: own(4 * ms), Own: own(0), Local: own(0)},
			low: 0 * ms, high: 0 * ms},
		{name: "one throttled period says nothing of the kind",
			in:  Throttle{OwnQuota: true, Limit: tiny, ThrottledPeriods: 1, Used: own(0), Own: own(0), Local: own(0)},
			low: 0 * ms, high: 0 * ms},
		{name: "CPU time not measured: not to be known",
			in:  Throttle{OwnQuota: true, Limit: tiny, ThrottledPeriods: 10, Own: own(0), Local: own(0)},
			low: 0 * ms, high: 0 * ms},
		{name: "cpu.stat unreadable, cpu.stat.local not: all is inherited or own, the level is not known",
			in:  Throttle{OwnQuota: true, Local: own(400 * ms)},
			low: 100 * ms, high: 400 * ms, by: ByUnknown, all: []Share{{ByUnknown, 0.4}}},
		{name: "a quota of a cgroup below, and none above: 4 CPUs for 235 ms, or one for 940 ms",
			in:  Throttle{Own: own(0), Local: own(0), Inside: below(940*ms, 100*ms, 10, 5)},
			low: 235 * ms, high: 940 * ms, by: inner, all: []Share{{inner, 0.94}}},
		{name: "the same before 6.6: no lower bound",
			in:  Throttle{Own: own(0), Inside: below(940*ms, 100*ms, 10, 5)},
			low: 0 * ms, high: 940 * ms, by: inner, all: []Share{{inner, 0.94}}},
		{name: "own and below: the larger lower bound, the sum of the upper bounds",
			in: Throttle{OwnQuota: true, Limit: tiny, Periods: 10, ThrottledPeriods: 1, Own: own(40 * ms), Local: own(40 * ms),
				Inside: below(400*ms, 100*ms, 10, 5)},
			low: 100 * ms, high: 440 * ms, by: inner, all: []Share{{inner, 0.4}, self(0.04)}},
		{name: "a quota below that did nothing",
			in: Throttle{Own: own(0), Local: own(0), Inside: below(0, 100*ms, 10, 0)}, low: 0 * ms, high: 0 * ms},
		{name: "no period of a quota of 1 s ended in a second: stopped all the time, or idle",
			in: Throttle{OwnQuota: true, Limit: cgroup.Limit{Quota: 100 * ms, Period: time.Second}, Own: own(0), Local: own(0)}},
		{name: "the same below",
			in: Throttle{Own: own(0), Local: own(0), Inside: below(0, time.Second, 0, 0)}},
		{name: "the same above",
			in: Throttle{Own: own(0), Local: own(0), Ancestors: []LevelThrottle{{Path: pod, Period: time.Second}}}},
		{name: "one period of 1 s ended: a part of its stop was before the window",
			in: Throttle{CPUs: 1, OwnQuota: true, Limit: cgroup.Limit{Quota: 100 * ms, Period: time.Second}, Periods: 1,
				ThrottledPeriods: 1,
				Own:              own(900 * ms), Local: own(900 * ms)},
			low: 0 * ms, high: 1000 * ms, by: BySelf, all: []Share{self(0.9)}},
		{name: "no period ended in a window of several: it was idle",
			in: Throttle{OwnQuota: true, Limit: tiny, Own: own(0), Local: own(0)}, low: 0 * ms, high: 0 * ms},
		{name: "every period of 7.8 ms ended throttled: one more stop is under way",
			in: Throttle{CPUs: 1, OwnQuota: true, Limit: cgroup.Limit{Quota: ms, Period: 7800 * time.Microsecond},
				Periods: 128, ThrottledPeriods: 128,
				Own: own(868 * ms), Local: own(868 * ms)},
			low: 868 * ms, high: 875800 * time.Microsecond, by: BySelf, all: []Share{self(0.868)}},
		{name: "the first reading took 30 ms: the counters lack as much, and the last one 10 ms",
			in:  Throttle{CPUs: 1, OwnQuota: true, Limit: tiny, Own: own(841 * ms), Local: own(841 * ms), Late: 30 * ms, Early: 10 * ms},
			low: 831 * ms, high: 871 * ms, by: BySelf, all: []Share{self(0.841)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := tt.in
			in.Window, in.Path = time.Second, "/pod/c"
			if in.CPUs == 0 {
				in.CPUs = 4
			}
			got := Stopped(in)
			want := Verdict{By: tt.by, All: tt.all, NotMeasured: got.NotMeasured}
			if (got.NotMeasured != "") && tt.low != nil {
				t.Errorf("not measured: %s", got.NotMeasured)
			}
			if tt.low != nil {
				want.Low, want.High = own(tt.low.(time.Duration)), own(tt.high.(time.Duration))
			}
			close := cmp.Comparer(func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 })
			if diff := cmp.Diff(want, got, close); diff != "" {
				t.Errorf("Stopped(%+v): -want +got\n%s", tt.in, diff)
			}
		})
	}
}

// For any counters Low <= High lies within the window, and the shares are parts of the throttled time.
func TestStoppedIsAnInterval(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		span := rapid.Int64Range(0, int64(time.Hour))
		in := Throttle{Window: time.Duration(rapid.Int64Range(1, int64(time.Minute)).Draw(t, "window")),
			CPUs: rapid.IntRange(-1, 1024).Draw(t, "cpus"), Path: "/p/c",
			OwnQuota: rapid.Bool().Draw(t, "quota"), Hidden: rapid.Bool().Draw(t, "hidden"),
			ThrottledPeriods: rapid.Uint64().Draw(t, "throttled periods"),
			Limit:            cgroup.Limit{Quota: time.Duration(span.Draw(t, "quota ns")), Period: time.Duration(span.Draw(t, "period"))}}
		if rapid.Bool().Draw(t, "has used") {
			in.Used = new(time.Duration(span.Draw(t, "used")))
		}
		if rapid.Bool().Draw(t, "has own") {
			in.Own = new(time.Duration(span.Draw(t, "own")))
		}
		if rapid.Bool().Draw(t, "has local") {
			in.Local = new(time.Duration(span.Draw(t, "local")))
		}
		for _, path := range []string{"/p", "/"}[:rapid.IntRange(0, 2).Draw(t, "ancestors")] {
			in.Ancestors = append(in.Ancestors, LevelThrottle{Path: path, Throttled: time.Duration(span.Draw(t, path))})
		}
		for _, path := range []string{"/p/c/x", "/p/c/y"}[:rapid.IntRange(0, 2).Draw(t, "below")] {
			in.Inside = append(in.Inside, LevelThrottle{Path: path, Throttled: time.Duration(span.Draw(t, path)),
				Period: time.Duration(span.Draw(t, "period of "+path)), Periods: rapid.Uint64().Draw(t, "periods of "+path)})
		}
		in.Late, in.Early = time.Duration(span.Draw(t, "late")), time.Duration(span.Draw(t, "early"))
		v := Stopped(in)
		if (v.Low == nil) != (v.High == nil) {
			t.Fatalf("only one end of the interval: %+v", v)
		}
		if v.Low != nil && (*v.Low < 0 || *v.Low > *v.High || *v.High > in.Window) {
			t.Fatalf("low %v, high %v, window %v", *v.Low, *v.High, in.Window)
		}
		var sum float64
		for i, s := range v.All {
			if sum += s.Seconds; s.Seconds <= 0 || i > 0 && s.Seconds > v.All[i-1].Seconds {
				t.Fatalf("shares are not sorted, or one is empty: %+v", v.All)
			}
		}
		if total := max(value(in.Local), value(in.Own)).Seconds(); in.Local != nil && in.Inside == nil && sum > total*(1+1e-9) {
			t.Fatalf("shares sum up to %v s of %v s", sum, total)
		}
		if v.By == "" && len(v.All) > 0 {
			t.Fatalf("by %q with shares %+v", v.By, v.All)
		}
	})
}
