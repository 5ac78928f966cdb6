package budgetotel

import (
	"context"
	"testing"

	"github.com/unthrottle/unthrottle/libs/go/budget"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

type snapshot budget.Snapshot

func (s snapshot) Snapshot() budget.Snapshot { return budget.Snapshot(s) }

func TestRegister(t *testing.T) {
	s := snapshot{LimitCPUs: new(float64), Stopped: new(uint64)}
	*s.LimitCPUs, *s.Stopped = 0.7, 3
	s.Classes[budget.App] = budget.ClassSnapshot{Waiting: 2, Late: 5}
	reader := metric.NewManualReader()
	registration, err := Register(s, metric.NewMeterProvider(metric.WithReader(reader)).Meter("test"))
	if err != nil {
		t.Fatal(err)
	}
	defer registration.Unregister()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	got := make(map[string]float64)
	for _, m := range all.ScopeMetrics[0].Metrics {
		switch data := m.Data.(type) {
		case metricdata.Gauge[float64]:
			for _, p := range data.DataPoints {
				class, _ := p.Attributes.Value("class")
				got[m.Name+" "+class.AsString()] = p.Value
			}
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				class, _ := p.Attributes.Value("class")
				got[m.Name+" "+class.AsString()] = float64(p.Value)
			}
		}
	}
	for name, want := range map[string]float64{"limit ": 0.7, "throttled_periods ": 3, "waiting app": 2, "late app": 5, "running io": 0} {
		if v, ok := got["unthrottle.budget."+name]; !ok || v != want {
			t.Errorf("%s: %v, %v; want %v", name, v, ok, want)
		}
	}
	for _, name := range []string{"used ", "periods "} {
		if v, ok := got["unthrottle.budget."+name]; ok {
			t.Errorf("%s was not measured and is %v", name, v)
		}
	}
}
