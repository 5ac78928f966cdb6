package top

import (
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/cgroup"
	"github.com/unthrottle/unthrottle/container"
	"github.com/unthrottle/unthrottle/observe"
)

func observation(path string, stoppedLow, stoppedHigh time.Duration) observe.Observation {
	return observe.Observation{
		Container: container.Container{Name: "app", Pod: "pod", Group: cgroup.Group{Path: path}},
		Window:    time.Second, Levels: make([]cgroup.Level, 1), UsedCPUs: of(1.5),
		StoppedLow: &stoppedLow, StoppedHigh: &stoppedHigh, ThrottledBy: observe.BySelf,
	}
}

func TestFeedWithCountersOnly(t *testing.T) {
	o := observation("/a", 100*time.Millisecond, 300*time.Millisecond)
	o.Cells = []observe.Cell{{End: 100 * time.Millisecond}, {End: 200 * time.Millisecond, Throttled: 350 * time.Millisecond}}
	dark := observe.Observation{Container: container.Container{Group: cgroup.Group{Path: "/dark"}}}
	f := Feed{Note: "no probe"}
	got := f.Frame(observe.Snapshot{Observations: []observe.Observation{o, dark}}, nil)
	a := got.Rows[0]
	if a.Name != "pod/app" || *a.StoppedLow != 0.1 || *a.StoppedHigh != 0.3 || !a.Unlimited || a.MostWidth != nil || a.Wanted != nil || a.Cause != "" {
		t.Errorf("%+v", a)
	}
	if len(a.Strip) != 2 || a.Strip[0].Stopped != 0 || a.Strip[1].Stopped != 1 {
		t.Errorf("strip %+v", a.Strip)
	}
	d := got.Rows[1]
	if d.Name != "/dark" || d.StoppedHigh != nil || d.UsedCPUs != nil || d.Unlimited || d.Strip[0].Width >= 0 {
		t.Errorf("%+v", d)
	}
}

func TestFeedPrefersTheProbe(t *testing.T) {
	f := Feed{}
	o := observation("/a", 0, 900*time.Millisecond)
	live := &Live{MostWidth: 7, Wanted: of(3.5), Stopped: 0.25, Strip: []Cell{{Width: 2}}}
	got := f.Frame(observe.Snapshot{Observations: []observe.Observation{o}}, func(path string) *Live { return live }).Rows[0]
	if *got.MostWidth != 7 || *got.StoppedLow != 0.25 || *got.StoppedHigh != 0.25 || len(got.Strip) != 1 {
		t.Errorf("%+v", got)
	}
}

func TestStripsAreBoundedAndForgotten(t *testing.T) {
	f := Feed{}
	all := []observe.Observation{observation("/a", 0, 0), observation("/b", 0, 0)}
	for range 3 * stripKept {
		f.Frame(observe.Snapshot{Observations: all}, nil)
	}
	got := f.Frame(observe.Snapshot{Observations: all[:1]}, nil)
	if n := len(got.Rows[0].Strip); n != stripKept {
		t.Errorf("%d cells", n)
	}
	if len(f.strips) != 1 {
		t.Errorf("%d strips kept for 1 container", len(f.strips))
	}
}
