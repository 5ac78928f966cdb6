package fleet

import (
	"math"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/observe"
)

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// observed is one second of a pod's container that is stopped for a tenth of it.
func observed(at time.Time) observe.Observation {
	pod := "/kubepods/burstable/podx"
	c := container.Container{Name: "shop/cart-7d9c5b8f6-x2x4x/app", Namespace: "shop", Pod: "cart-7d9c5b8f6-x2x4x", ContainerName: "app",
		Runtime: "containerd", Group: cgroup.Group{Path: pod + "/app"}}
	return observe.Observation{
		Container: c, CgroupID: 7, Start: at, Window: time.Second, UsedCPUs: new(0.5), LimitCPUs: new(0.5), LimitAt: pod,
		StoppedLow: new(100 * time.Millisecond), StoppedHigh: new(100 * time.Millisecond), StoppedIntervals: new(uint64(2)),
		Periods: new(uint64(10)), ThrottledPeriods: new(uint64(3)), ThrottledSeconds: new(0.3),
		ThrottledByAll: []observe.Share{{Path: observe.BySelf, Seconds: 0.1}, {Path: pod, Seconds: 0.2}},
		Width:          []time.Duration{600 * time.Millisecond, 300 * time.Millisecond, 100 * time.Millisecond},
		Wanted:         []time.Duration{500 * time.Millisecond, 300 * time.Millisecond, 100 * time.Millisecond, 0, 100 * time.Millisecond},
	}
}

// A slot's rounds add up, and the round that begins the next slot returns it.
func TestRowsAddUp(t *testing.T) {
	rows := NewRows(Names{"eu1", "n17"})
	var done []Row
	for i := range 301 {
		done = append(done, rows.Add([]observe.Observation{observed(noon.Add(time.Duration(i) * time.Second))})...)
	}
	if len(done) != 1 {
		t.Fatalf("%d rows of one slot", len(done))
	}
	r := done[0]
	near := func(what string, got *float64, want float64) {
		if got == nil || math.Abs(*got-want) > 1e-6 {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	near("used", r.UsedCPUSeconds, 150)
	near("wanted", r.WantedCPUSeconds, 300*(0.3+0.2+0.4))
	near("stopped", r.StoppedLowSeconds, 30)
	near("own", r.ThrottledOwnSeconds, 30)
	near("pod's", r.ThrottledPodSeconds, 60)
	near("further up", r.ThrottledSliceSeconds, 0)
	if r.Samples != 300 || r.Seconds != 300 || *r.Periods != 3000 || *r.ThrottledPeriods != 900 || *r.StoppedIntervals != 600 || !r.Start.Equal(noon) {
		t.Errorf("%+v", r)
	}
	if *r.WantedP50 != 0 || *r.WantedP95 != 4 || *r.WantedP99 != 4 || *r.WantedMax != 4 || *r.WidthMax != 2 || len(r.Wanted) != 4 {
		t.Errorf("wanted %+v", r)
	}
	if r.Service != "cart/app" || r.LimitScope != container.ScopePod || r.Cluster != "eu1" {
		t.Errorf("%+v", r)
	}
	if rest := rows.Finish(); len(rest) != 1 || rest[0].Samples != 1 || !rest[0].Start.Equal(noon.Add(SlotLength)) {
		t.Errorf("the next slot: %+v", rest)
	}
	if again := rows.Finish(); len(again) != 0 {
		t.Errorf("twice: %+v", again)
	}
}

// Not measured is nil, and a clock that goes back changes no slot that has ended.
func TestRowsOfLittle(t *testing.T) {
	rows := NewRows(Names{})
	bare := observe.Observation{Container: container.Container{Name: "a\x1b[2J", Group: cgroup.Group{Path: "/a"}}, Start: noon, Window: time.Second}
	rows.Add([]observe.Observation{bare})
	early := bare
	early.Start = noon.Add(-time.Hour)
	if done := rows.Add([]observe.Observation{early}); len(done) != 0 {
		t.Errorf("an earlier slot: %+v", done)
	}
	r := rows.Finish()[0]
	if r.UsedCPUSeconds != nil || r.WantedCPUSeconds != nil || r.StoppedLowSeconds != nil || r.Periods != nil || r.WantedP99 != nil || r.LimitCPUs != nil || r.ThrottledOwnSeconds != nil || r.Samples != 1 {
		t.Errorf("%+v", r)
	}
	if r.Container == "a\x1b[2J" {
		t.Error("a stranger's name is as it was")
	}
}

func TestRowsAreBounded(t *testing.T) {
	rows := NewRows(Names{})
	var round []observe.Observation
	for i := range MaxContainers + 5 {
		o := observed(noon)
		o.CgroupID = uint64(i + 1)
		round = append(round, o)
	}
	rows.Add(round)
	if rows.Left != 5 || len(rows.Finish()) != MaxContainers {
		t.Errorf("left %d", rows.Left)
	}
}

func TestServiceOf(t *testing.T) {
	for pod, want := range map[string]string{
		"cart-7d9c5b8f6-x2x4x": "cart/c", "db-0": "db/c", "log-x2x4x": "log/c", "a-b-c": "a-b-c/c", "job-27893450-kx7vd": "job-27893450/c", "x": "x/c", "-": "-/c", "a-": "a-/c",
		"my-api-v2-5f6d8c9bb-q2w4z": "my-api-v2/c",
	} {
		if got := ServiceOf(&container.Container{Pod: pod, ContainerName: "c"}); got != want {
			t.Errorf("%s: %s, want %s", pod, got, want)
		}
	}
	for want, c := range map[string]container.Container{"shop/web": {Project: "shop", Service: "web", Name: "x"}, "ssh.service": {Unit: "ssh.service", Name: "ssh"}, "redis": {Name: "redis"}} {
		if got := ServiceOf(&c); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
