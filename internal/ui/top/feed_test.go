package top

import (
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/see/probe"
)

func observation(path string, stoppedLow, stoppedHigh time.Duration) observe.Observation {
	return observe.Observation{
		Container: container.Container{Name: "pod/app", Pod: "pod", Group: cgroup.Group{Path: path}},
		Window:    time.Second, UsedCPUs: of(1.5),
		Levels:     []cgroup.Level{{Limit: cgroup.Limit{Quota: 200 * time.Millisecond, Period: 100 * time.Millisecond}}},
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
