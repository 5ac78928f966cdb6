package observe

import (
	"testing"
	"time"

	"k8s.io/utils/cpuset"
	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

const own = "/pod/app"

// stretch is a time in which nothing changed.
type stretch struct {
	ms            int
	wanted, width int
	stopped       bool
}

// observed is what the probe and the counters show of stretches.
func observed(limit float64, cpus int, stretches ...stretch) Observation {
	o := Observation{Container: container.Container{Group: cgroup.Group{Path: own}}, LimitCPUs: &limit, LimitAt: own, ThrottledBy: BySelf,
		CPUsAllowed: cpuset.New(), StoppedLow: new(time.Duration), StoppedHigh: new(time.Duration), StoppedExact: true,
		Wanted: make([]time.Duration, 65), Width: make([]time.Duration, 65), ThrottledByAll: []Share{{own, 1}}}
	for cpu := range cpus {
		o.CPUsAllowed = o.CPUsAllowed.Union(cpuset.New(cpu))
	}
	used := time.Duration(0)
	for _, s := range stretches {
		d := time.Duration(s.ms) * time.Millisecond
		o.Window += d
		o.Wanted[s.wanted] += d
		o.Width[s.width] += d
		used += time.Duration(s.width) * d
		if s.stopped {
			*o.StoppedLow += d
			*o.StoppedHigh += d
		}
	}
	o.UsedCPUs = new(used.Seconds() / o.Window.Seconds())
	return o
}

func TestWaitingByCause(t *testing.T) {
	const ms = time.Millisecond
	shared := observed(1, 4, stretch{500, 1, 1, false}, stretch{500, 1, 0, true})
	shared.ThrottledByAll = []Share{{"/pod", 3}, {own, 1}}
	early := observed(1, 4, stretch{500, 1, 1, false}, stretch{500, 1, 0, true})
	early.ThrottledByAll, early.Levels = nil, []cgroup.Level{{Path: own, Limit: cgroup.Unlimited()}}
	for _, tc := range []struct {
		what string
		o    Observation
		want Waiting
	}{
		{"nothing waits", observed(1, 4, stretch{300, 2, 2, false}, stretch{700, 0, 0, false}), Waiting{}},
		{"one thread behind a neighbour and behind its quota",
			observed(1, 4, stretch{300, 1, 0, false}, stretch{500, 1, 1, false}, stretch{200, 1, 0, true}),
			Waiting{Quota: 200 * ms, Contention: 300 * ms}},
		{"no quota", observed(1, 1, stretch{500, 3, 1, false}, stretch{500, 0, 0, false}), Waiting{Contention: 1000 * ms}},
		{"stopped all the time", observed(1, 1, stretch{1000, 5, 0, true}), Waiting{Quota: 5000 * ms}},
		{"eight threads on four CPUs: half of the quota's part is certain",
			observed(2, 4, stretch{500, 8, 4, false}, stretch{500, 8, 0, true}),
			Waiting{Quota: 4000 * ms, Contention: 2000 * ms, Unclear: 2000 * ms}},
		{"an ancestor's quota costs three quarters", shared, Waiting{Quota: 125 * ms, Ancestor: 375 * ms}},
		{"no counter has gained, and only an ancestor has a quota", early, Waiting{Ancestor: 500 * ms}},
	} {
		if got, ok := tc.o.Waiting(); !ok || got != tc.want {
			t.Errorf("%s: %+v %v, want %+v", tc.what, got, ok, tc.want)
		}
	}
	for what, o := range map[string]Observation{
		"no probe":        {StoppedLow: new(time.Duration), StoppedHigh: new(time.Duration), UsedCPUs: new(1.0)},
		"no stopped time": {Wanted: []time.Duration{1}, Width: []time.Duration{1}, UsedCPUs: new(1.0)},
	} {
		if _, ok := o.Waiting(); ok {
			t.Errorf("%s, and waiting was measured", what)
		}
		if _, ok := o.WantedCPU(); ok {
			t.Errorf("%s, and wanted CPU time was measured", what)
		}
	}
}

// TestWaitingHoldsTheTruth: whatever the threads did, all waiting is exact and the truth lies within the bounds.
func TestWaitingHoldsTheTruth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var stretches []stretch
		held, others := time.Duration(0), time.Duration(0)
		for range rapid.IntRange(1, 12).Draw(t, "stretches") {
			s := stretch{ms: rapid.IntRange(1, 90).Draw(t, "ms"), wanted: rapid.IntRange(0, 20).Draw(t, "wanted")}
			s.width = rapid.IntRange(0, min(s.wanted, 8)).Draw(t, "width")
			s.stopped = s.wanted > s.width && rapid.Bool().Draw(t, "stopped")
			waited := time.Duration((s.wanted-s.width)*s.ms) * time.Millisecond
			if s.stopped {
				held += waited
			} else {
				others += waited
			}
			stretches = append(stretches, s)
		}
		o := observed(1, 8, stretches...)
		w, ok := o.Waiting()
		if !ok || w.Quota+w.Ancestor+w.Contention != held+others {
			t.Fatalf("%+v of %s and %s", w, held, others)
		}
		if got := w.Quota + w.Ancestor; got < held || got-w.Unclear > held {
			t.Fatalf("%s waited for quotas, outside of %+v", held, w)
		}
		if cpu, ok := o.WantedCPU(); !ok || cpu.Seconds() < *o.UsedCPUs*o.Window.Seconds()-1e-6 {
			t.Fatalf("wanted %s, used %v CPUs in %s", cpu, *o.UsedCPUs, o.Window)
		}
	})
}

func TestWantedCPU(t *testing.T) {
	pod := observed(2, 8, stretch{600, 3, 0, true}, stretch{400, 3, 1, false})
	pod.ThrottledBy = "/pod"
	only := observed(2, 4, stretch{900, 1, 1, false}, stretch{100, 8, 0, true})
	only.ThrottledBy, only.Container.Pod = "/pod", "cart"
	limit := cgroup.Limit{Quota: 200 * time.Millisecond, Period: 100 * time.Millisecond}
	only.Levels = []cgroup.Level{{Path: own, Limit: limit}, {Path: "/pod", Limit: limit}}
	for _, tc := range []struct {
		what string
		o    Observation
		want float64 // CPU-seconds
	}{
		{"no quota stops it", observed(4, 4, stretch{1000, 3, 3, false}), 3},
		{"bursts that are done in time", observed(1, 4, stretch{200, 4, 4, false}, stretch{300, 4, 0, true},
			stretch{500, 0, 0, false}), 0.8},
		{"two threads that always compute, limit 0.5", observed(0.5, 4, stretch{250, 2, 2, false}, stretch{750, 2, 0, true}), 2},
		{"twenty on four CPUs: no more than these", observed(1, 4, stretch{250, 20, 4, false}, stretch{750, 20, 0, true}), 4},
		{"never idle, and far below its own limit", observed(2, 4, stretch{900, 1, 1, false}, stretch{100, 8, 0, true}), 0.9},
		{"never idle, far below its own limit, held back by its pod", pod, 2.2},
		{"the same, of a pod that has no other container", only, 0.9},
		{"a queue that grows: all that would run until it is empty",
			observed(0.3, 2, stretch{150, 4, 2, false}, stretch{850, 4, 0, true}), 2},
		{"a closed loop with pauses", observed(0.3, 2, stretch{290, 1, 1, false}, stretch{420, 1, 0, true},
			stretch{290, 0, 0, false}), 0.29},
		{"others hold the CPUs: they are no quota",
			observed(0.5, 2, stretch{500, 1, 0, false}, stretch{400, 1, 1, false}, stretch{100, 1, 0, true}), 0.4},
	} {
		if got, ok := tc.o.WantedCPU(); !ok || got.Round(time.Microsecond).Seconds() != tc.want {
			t.Errorf("%s: %s %v, want %v", tc.what, got, ok, tc.want)
		}
	}
}
