package agent

import (
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
	o := observe.Observation{Container: container.Container{Group: cgroup.Group{Path: pod + "/app"}, Namespace: "shop", Pod: "cart-0", ContainerName: "app"},
		Window: time.Second, LimitCPUs: new(0.5), LimitAt: pod, UsedCPUs: new(0.4), Periods: new(uint64(10)), ThrottledPeriods: new(uint64(2)),
		ThrottledSeconds: new(0.2), OwnThrottledSeconds: new(0.1), StoppedLow: new(time.Millisecond), StoppedHigh: new(time.Millisecond),
		Width: []time.Duration{time.Second}, Wanted: []time.Duration{time.Second}}
	var sums totals
	sums.add([]observe.Observation{o})
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
