package agent

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/observe"
)

// TestSeriesPerContainer: a container of which everything is measured has as many series as the page says, and the limit
// says whose it is.
func TestSeriesPerContainer(t *testing.T) {
	pod := "/kubepods/burstable/pod3f5a1c2e-0d4b-4c6a-9e8f-1234567890ab"
	o := observe.Observation{Container: container.Container{Group: cgroup.Group{Path: pod + "/app"}, Namespace: "shop",
		Pod: "cart-0", ContainerName: "app"},
		Window: time.Second, LimitCPUs: new(0.5), LimitAt: pod, UsedCPUs: new(0.4), Periods: new(uint64(10)),
		ThrottledPeriods: new(uint64(2)),
		ThrottledSeconds: new(0.2), OwnThrottledSeconds: new(0.1), StoppedLow: new(time.Millisecond), StoppedHigh: new(time.Millisecond),
		Width: []time.Duration{time.Second}, Wanted: []time.Duration{time.Second}}
	var sums totals
	sums.add([]observe.Observation{o}, 0)
	r := prometheus.NewRegistry()
	r.MustRegister(&sums)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series, scope := 0, ""
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if len(m.GetLabel()) == 0 {
				continue // of the agent, not of a container
			}
			for _, l := range m.GetLabel() {
				if family.GetName() == "unthrottle_container_limit_cpus" && l.GetName() == "scope" {
					scope = l.GetValue()
				}
			}
			if h := m.GetHistogram(); h != nil {
				series += len(h.GetBucket()) + 3
			} else {
				series++
			}
		}
	}
	if series != maxSeriesPerContainer {
		t.Errorf("%d series, and docs/reference/metrics.md says %d", series, maxSeriesPerContainer)
	}
	if scope != container.ScopePod {
		t.Errorf("the limit is of scope %q, want pod", scope)
	}
}

// TestWaitingIsAbsentWithoutTheProbe: what was not measured is no 0, and what was is in seconds by cause.
func TestWaitingIsAbsentWithoutTheProbe(t *testing.T) {
	o := observe.Observation{Container: container.Container{Group: cgroup.Group{Path: "/a"}}, Window: time.Second,
		LimitCPUs: new(0.5), LimitAt: "/a",
		UsedCPUs: new(0.5), StoppedLow: new(time.Second / 2), StoppedHigh: new(time.Second / 2), ThrottledBy: observe.BySelf,
		ThrottledByAll: []observe.Share{{Path: "/a", Seconds: 0.5}}}
	var sums totals
	sums.add([]observe.Observation{o}, 0)
	if got := values(t, &sums); len(got) != 0 {
		t.Errorf("without the probe: %v", got)
	}
	o.Width, o.Wanted = []time.Duration{time.Second / 2, time.Second / 2}, []time.Duration{0, time.Second}
	sums.add([]observe.Observation{o}, 0)
	sums.add([]observe.Observation{o}, 0)
	want := map[string]float64{"unthrottle_container_waiting_seconds_total quota": 1,
		"unthrottle_container_waiting_seconds_total ancestor":   0,
		"unthrottle_container_waiting_seconds_total contention": 0, "unthrottle_container_waiting_unclear_seconds_total ": 0,
		"unthrottle_container_wanted_cpu_seconds_total ": 2}
	if got := values(t, &sums); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// values are the metrics of waiting and wanted CPU time, by name and cause.
func values(t *testing.T, c prometheus.Collector) map[string]float64 {
	t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(c)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		name := family.GetName()
		if !strings.Contains(name, "_waiting_") && !strings.Contains(name, "_wanted_cpu_") {
			continue
		}
		for _, m := range family.GetMetric() {
			cause := ""
			for _, l := range m.GetLabel() {
				if l.GetName() == "cause" {
					cause = l.GetValue()
				}
			}
			got[name+" "+cause] = m.GetCounter().GetValue()
		}
	}
	return got
}

// TestVacantContainersAreCounted: what has no series is said.
func TestVacantContainersAreCounted(t *testing.T) {
	var sums totals
	sums.add(nil, 4990)
	r := prometheus.NewRegistry()
	r.MustRegister(&sums)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		got[family.GetName()] = family.GetMetric()[0].GetGauge().GetValue()
	}
	if len(got) != 3 || got["unthrottle_containers_vacant"] != 4990 || got["unthrottle_containers"] != 0 {
		t.Errorf("%v", got)
	}
}
