package top

import (
	"testing"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/see/probe"
)

func observation(path string, stoppedLow, stoppedHigh time.Duration) observe.Observation {
	return observe.Observation{
		Container: container.Container{Name: "pod/app", Pod: "pod", Group: cgroup.Group{Path: path}},
		Window:    time.Second, Levels: make([]cgroup.Level, 1), UsedCPUs: of(1.5),
		StoppedLow: &stoppedLow, StoppedHigh: &stoppedHigh, ThrottledBy: observe.BySelf,
	}
}

func TestFeedWithCountersOnly(t *testing.T) {
	o := observation("/a", 100*time.Millisecond, 300*time.Millisecond)
	o.Cells = []observe.Cell{{End: 100 * time.Millisecond}, {End: 200 * time.Millisecond, Throttled: 350 * time.Millisecond}}
	dark := observe.Observation{Container: container.Container{Name: "/dark", Group: cgroup.Group{Path: "/dark"}}}
	f := feed{Note: "no probe"}
	got := f.Frame(observe.Snapshot{Observations: []observe.Observation{o, dark}}, none)
	a := got.Rows[0]
	if a.Name != "pod/app" || *a.StoppedLow != 0.1 || *a.StoppedHigh != 0.3 || !a.Unlimited || a.MostWidth != nil ||
		a.Wanted != nil || a.Cause != "" && a.Cause != "shortage" {
		t.Errorf("%+v", a)
	}
	if len(a.Timeline) != 2 || a.Timeline[0].Stopped != 0 || a.Timeline[1].Stopped != 1 {
		t.Errorf("timeline %+v", a.Timeline)
	}
	d := got.Rows[1]
	if d.Name != "/dark" || d.StoppedHigh != nil || d.UsedCPUs != nil || d.Unlimited || d.Timeline[0].Width >= 0 {
		t.Errorf("%+v", d)
	}
}

func none(uint64) []timelineCell { return nil }

func TestFeedWithAProbe(t *testing.T) {
	f := feed{}
	o := observation("/a", 250*time.Millisecond, 250*time.Millisecond)
	o.CgroupID = 9
	o.Width = []time.Duration{600 * time.Millisecond, 0, 0, 400 * time.Millisecond}
	o.Wanted = []time.Duration{500 * time.Millisecond, 0, 0, 0, 500 * time.Millisecond}
	got := f.Frame(observe.Snapshot{Observations: []observe.Observation{o}}, func(id uint64) []timelineCell {
		if id != 9 {
			t.Errorf("asked for %d", id)
		}
		return []timelineCell{{Width: 3}, {Stopped: 1}}
	}).Rows[0]
	if *got.MostWidth != 3 || *got.Wanted != 2 || *got.StoppedLow != 0.25 || len(got.Timeline) != 2 {
		t.Errorf("%+v", got)
	}
}

func TestPeriodTimelines(t *testing.T) {
	var s periodTimelines
	for range 3 * cellsKept {
		s.add(probe.PeriodRow{Cgroup: 1, MeanWidth: 2, StoppedShare: 0.5})
	}
	s.add(probe.PeriodRow{Cgroup: 2})
	if got := s.take(1); len(got) != cellsKept || got[0] != (timelineCell{Width: 2, Stopped: 0.5}) {
		t.Errorf("%d cells, %+v", len(got), got[0])
	}
	if s.take(1) != nil || len(s.take(2)) != 1 {
		t.Error("cells are given once")
	}
}

func TestCause(t *testing.T) {
	ms := func(n ...int) (levels []time.Duration) {
		for _, v := range n {
			levels = append(levels, time.Duration(v)*time.Millisecond)
		}
		return levels
	}
	limited := func(limit, used float64, stopped time.Duration, width []time.Duration) observe.Observation {
		o := observation("/a", stopped, stopped)
		o.LimitCPUs, o.UsedCPUs, o.Width, o.Wanted = &limit, &used, width, width
		return o
	}
	unmeasured := observation("/a", 0, 0)
	unmeasured.StoppedHigh = nil
	waits := limited(2, 1, 0, ms(0, 1000))
	waits.Wanted, waits.CPUsAllowed = ms(0, 0, 0, 1000), cpuset.New(0, 1)
	narrow := waits
	narrow.CPUsAllowed = cpuset.New(0)
	hardly := limited(2, 0.01, time.Millisecond, ms(990, 10))
	hardly.Wanted = ms(970, 30)
	ancestor := limited(2, 1, 300*time.Millisecond, ms(500, 0, 0, 0, 500))
	ancestor.ThrottledBy = "/pod"
	for want, o := range map[diagnose.Cause]observe.Observation{
		"":                  unmeasured,
		diagnose.None:       hardly,
		diagnose.Burst:      limited(2, 1, 300*time.Millisecond, ms(700, 0, 0, 0, 300)),
		diagnose.TinyLimit:  limited(0.4, 0.2, 300*time.Millisecond, ms(800, 200)),
		diagnose.Shortage:   limited(2, 1.99, 600*time.Millisecond, ms(500, 0, 0, 0, 500)),
		diagnose.Ancestor:   ancestor,
		diagnose.Neighbours: waits,
		diagnose.Cpuset:     narrow,
	} {
		if got := causeOf(&o); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestTimelinesAreBoundedAndForgotten(t *testing.T) {
	f := feed{}
	observations := []observe.Observation{observation("/a", 0, 0), observation("/b", 0, 0)}
	for range 3 * cellsKept {
		f.Frame(observe.Snapshot{Observations: observations}, none)
	}
	got := f.Frame(observe.Snapshot{Observations: observations[:1]}, none)
	if n := len(got.Rows[0].Timeline); n != cellsKept {
		t.Errorf("%d cells", n)
	}
	if len(f.timelines) != 1 {
		t.Errorf("%d timelines kept for 1 container", len(f.timelines))
	}
}
