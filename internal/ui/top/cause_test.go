package top

import (
	"slices"
	"testing"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/explain/live"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/see/recording"
)

const ms = time.Millisecond

// window is one second of a container, as far as counters and the histograms of width and wanted tell.
type window struct {
	limit, used   float64
	stopped       time.Duration
	throttled     uint64 // of 10 periods
	by            string
	width, wanted []time.Duration // nil: no probe
	allowed       int
}

// observation is the window for top, and for explain without BPF.
func (w *window) observation() observe.Observation {
	own := cgroup.Limit{Quota: time.Duration(w.limit * float64(100*ms)), Period: 100 * ms}
	return observe.Observation{
		Container: container.Container{Name: "/pod/a", Group: cgroup.Group{Path: "/pod/a"}}, Window: time.Second,
		Levels: []cgroup.Level{{Path: "/pod/a", Limit: own}, {Path: "/pod", Limit: own}}, LimitCPUs: &w.limit, LimitAt: "/pod/a", UsedCPUs: &w.used,
		StoppedLow: &w.stopped, StoppedHigh: &w.stopped, ThrottledBy: w.by, Periods: new(uint64(10)), ThrottledPeriods: &w.throttled,
		Width: w.width, Wanted: w.wanted, CPUsAllowed: cpus(w.allowed), CPUsOnline: 4,
	}
}

func cpus(n int) (all cpuset.CPUSet) {
	for i := range n {
		all = all.Union(cpuset.New(i))
	}
	return all
}

// samples are the window for look. What waits beyond width waits for its quota while it is stopped, else for others, or where more
// threads want CPUs than there are for each other. One pool has all of it, in a hundred runs.
func (w *window) samples() diagnose.Sampled {
	o := w.observation()
	s := diagnose.Sampled{Target: "/pod/a", Path: "/pod/a", Window: time.Second, CPUsAllowed: w.allowed, CPUsOnline: 4,
		Used: time.Duration(w.used * 1e9), Stopped: &w.stopped, Stops: int(w.throttled), Widest: max(0, len(w.width)-1), Width: w.width,
		Wanted: w.wanted, Divided: true}
	for i, l := range o.Levels {
		c := &diagnose.SampledCounters{Periods: 10}
		if of := (w.by == observe.BySelf); of == (i == 0) && w.by != "" {
			c.ThrottledPeriods, c.Stopped = w.throttled, w.stopped
		}
		s.Levels = append(s.Levels, diagnose.SampledLevel{Counters: c,
			Level: recording.Level{Path: l.Path, QuotaNS: new(l.Limit.Quota.Nanoseconds()), PeriodNS: l.Limit.Period.Nanoseconds()}})
	}
	p := diagnose.SampledPool{Name: "worker", Threads: 4, Working: 4, CPU: s.Used, CPUThrottled: s.Used, Widest: s.Widest}
	waiting, _ := o.Waiting()
	if w.by == observe.BySelf {
		s.OwnStopped, p.ByOwnQuota = w.stopped, waiting.Quota+waiting.Ancestor
	} else if w.by != "" {
		s.AncestorStopped, p.ByAncestor = w.stopped, waiting.Quota+waiting.Ancestor
		s.Siblings = []diagnose.SampledSibling{{Path: "/pod/b", Used: 2 * s.Used}}
	}
	filled := int(w.limit + 0.999)
	s.Throttled = diagnose.SampledPeriods{Periods: int(w.throttled), Used: min(s.Used, time.Duration(w.throttled)*o.Levels[0].Limit.Quota)}
	for i, d := range w.width {
		s.Throttled.Excess += time.Duration(max(0, i-filled)) * d
	}
	for i, d := range w.wanted {
		if float64(i) <= w.limit {
			s.Below += d.Seconds()
		}
		p.ByOwnThreads += time.Duration(max(0, i-w.allowed)) * d
	}
	s.BelowOwn, s.Above = s.Below, time.Duration((1-s.Below)*1e9)
	p.ByOwnThreads = min(p.ByOwnThreads, waiting.Contention)
	p.ByOthers = waiting.Contention - p.ByOwnThreads
	s.BehindOwn, s.BehindOthers = min(p.ByOwnThreads, time.Second), min(p.ByOthers, time.Second)
	p.Waited.Add(waiting.Contention/100, 100)
	s.Pools = []diagnose.SampledPool{p}
	return s
}

func levels(n ...int) (all []time.Duration) {
	for _, v := range n {
		all = append(all, time.Duration(v)*ms)
	}
	return all
}

// top, explain without BPF and look name one cause for the same second. Where no probe gives them widths, the cause is among those
// that they leave open.
func TestOneJudge(t *testing.T) {
	for name, c := range map[string]struct {
		window
		want diagnose.Cause
	}{
		"wide for short times": {window{limit: 2, used: 1.2, stopped: 300 * ms, throttled: 4, by: observe.BySelf, allowed: 4,
			width: levels(700, 0, 0, 0, 300), wanted: levels(500, 0, 0, 0, 500)}, diagnose.Burst},
		"a few throttled periods, wide": {window{limit: 1, used: 0.6, stopped: 50 * ms, throttled: 1, by: observe.BySelf, allowed: 4,
			width: levels(480, 500, 0, 0, 20), wanted: levels(430, 500, 0, 0, 70)}, diagnose.Burst},
		"a runtime's thread beside a long request": {window{limit: 0.4, used: 0.202, stopped: 300 * ms, throttled: 5, by: observe.BySelf,
			allowed: 4, width: levels(800, 198, 2), wanted: levels(500, 498, 2)}, diagnose.TinyLimit},
		"one CPU alone": {window{limit: 0.4, used: 0.2, stopped: 300 * ms, throttled: 5, by: observe.BySelf, allowed: 1,
			width: levels(800, 200), wanted: levels(500, 500)}, diagnose.TinyLimit},
		"all of the limit": {window{limit: 2, used: 1.99, stopped: 600 * ms, throttled: 10, by: observe.BySelf, allowed: 4,
			width: levels(500, 0, 5, 0, 495), wanted: levels(0, 0, 0, 0, 1000)}, diagnose.Shortage},
		"close to the limit, bursts": {window{limit: 2, used: 1.8, stopped: 300 * ms, throttled: 9, by: observe.BySelf, allowed: 4,
			width: levels(550, 0, 0, 0, 450), wanted: levels(800, 0, 0, 0, 200)}, diagnose.Burst},
		"close to the limit, a queue": {window{limit: 2, used: 1.8, stopped: 500 * ms, throttled: 9, by: observe.BySelf, allowed: 4,
			width: levels(550, 0, 0, 0, 450), wanted: levels(0, 0, 0, 0, 1000)}, diagnose.Shortage},
		"an ancestor's quota": {window{limit: 2, used: 1, stopped: 300 * ms, throttled: 4, by: "/pod", allowed: 4,
			width: levels(750, 0, 0, 0, 250), wanted: levels(500, 0, 0, 0, 500)}, diagnose.Ancestor},
		"a stop that is no finding": {window{limit: 2, used: 1, stopped: 7 * ms, throttled: 1, by: observe.BySelf, allowed: 4,
			width: levels(500, 0, 500), wanted: levels(490, 0, 510)}, diagnose.None},
		"hardly anything": {window{limit: 2, used: 0.01, stopped: ms, throttled: 1, by: observe.BySelf, allowed: 4,
			width: levels(990, 10), wanted: levels(970, 30)}, diagnose.None},
		"others on its CPUs": {window{limit: 2, used: 1, allowed: 2, width: levels(0, 1000),
			wanted: levels(0, 0, 0, 1000)}, diagnose.Neighbours},
		"its cpuset": {window{limit: 2, used: 1, allowed: 1, width: levels(0, 1000),
			wanted: levels(0, 0, 0, 1000)}, diagnose.Cpuset},
		"all of the host's CPUs": {window{limit: 8, used: 4, allowed: 4, width: levels(0, 0, 0, 0, 1000),
			wanted: levels(0, 0, 0, 0, 0, 0, 1000)}, diagnose.None},
	} {
		o := c.observation()
		f := feed{}
		if got := f.Frame(observe.Snapshot{Observations: []observe.Observation{o}}, none).Rows[0].Cause; got != c.want {
			t.Errorf("%s: top says %q, want %q", name, got, c.want)
		}
		if got := live.FromCounters(o, "").Cause; got != c.want {
			t.Errorf("%s: explain says %q, want %q", name, got, c.want)
		}
		if e := c.samples().Explain(); e.Cause != c.want {
			t.Errorf("%s: look says %q, want %q: %s", name, e.Cause, c.want, e.Verdict)
		}
		if o.Width, o.Wanted = nil, nil; c.by == "" {
			continue // counters do not see what waits for CPUs
		}
		e := live.FromCounters(o, "BPF was refused")
		if !slices.ContainsFunc(e.Causes, func(one diagnose.RankedCause) bool { return one.Cause == c.want }) {
			t.Errorf("%s: counters alone leave %v, and not %q", name, e.Causes, c.want)
		}
	}
}

// Waiting of a tenth of the demand is a finding for look, which knows what threads wait for. Histograms alone do not, and only a quarter
// is one there.
func TestWaitingThatMatters(t *testing.T) {
	for name, c := range map[string]struct {
		wanted                []time.Duration
		byCounters, bySamples diagnose.Cause
	}{
		"a twentieth": {levels(0, 950, 50), diagnose.None, diagnose.None},
		"an eighth":   {levels(0, 850, 150), diagnose.None, diagnose.Neighbours},
		"a third":     {levels(0, 500, 500), diagnose.Neighbours, diagnose.Neighbours},
	} {
		w := window{limit: 2, used: 1, allowed: 2, width: levels(0, 1000), wanted: c.wanted}
		if got := live.FromCounters(w.observation(), "").Cause; got != c.byCounters {
			t.Errorf("%s: explain without BPF says %q, want %q", name, got, c.byCounters)
		}
		if got := w.samples().Explain().Cause; got != c.bySamples {
			t.Errorf("%s: look says %q, want %q", name, got, c.bySamples)
		}
	}
}
