// Package budgetotel shows a CPU budget to OpenTelemetry.
package budgetotel

import (
	"context"
	"errors"

	"github.com/unthrottle/unthrottle/libs/go/budget"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Snapshotter is what the instruments need of a [budget.Budget].
type Snapshotter interface{ Snapshot() budget.Snapshot }

// Register makes the instruments of a budget on a meter and observes them until the registration is undone. What was not
// measured is not observed.
func Register(b Snapshotter, meter metric.Meter) (metric.Registration, error) {
	var made []metric.Observable
	var failed error
	gauge := func(name, about string) metric.Float64ObservableGauge {
		g, err := meter.Float64ObservableGauge("unthrottle.budget."+name, metric.WithDescription(about))
		made, failed = append(made, g), errors.Join(failed, err)
		return g
	}
	counter := func(name, about string) metric.Int64ObservableCounter {
		c, err := meter.Int64ObservableCounter("unthrottle.budget."+name, metric.WithDescription(about))
		made, failed = append(made, c), errors.Join(failed, err)
		return c
	}
	limit := gauge("limit", "CPU limit in force, in CPUs")
	used := gauge("used", "CPUs that the process used lately")
	wanted := gauge("wanted", "CPUs used, and one for each task that waits")
	periods := counter("periods", "periods of the cgroup with the limit (nr_periods)")
	stopped := counter("throttled_periods", "periods in which the kernel stopped that cgroup (nr_throttled)")
	running := gauge("running", "tasks that run")
	waiting := gauge("waiting", "tasks that wait")
	finished := counter("finished", "tasks that ended")
	late := counter("late", "tasks that were rejected, since they would have started too late")
	if failed != nil {
		return nil, failed
	}
	return meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		s := b.Snapshot()
		known := func(g metric.Float64Observable, v *float64) {
			if v != nil {
				o.ObserveFloat64(g, *v)
			}
		}
		counted := func(c metric.Int64Observable, v *uint64) {
			if v != nil {
				o.ObserveInt64(c, int64(*v))
			}
		}
		known(limit, s.LimitCPUs)
		known(used, s.UsedCPUs)
		known(wanted, s.WantedCPUs)
		counted(periods, s.Periods)
		counted(stopped, s.Stopped)
		for _, class := range budget.Classes {
			of, by := s.Classes[class], metric.WithAttributes(attribute.String("class", class.String()))
			o.ObserveFloat64(running, float64(of.Running), by)
			o.ObserveFloat64(waiting, float64(of.Waiting), by)
			o.ObserveInt64(finished, int64(of.Finished), by)
			o.ObserveInt64(late, int64(of.Late), by)
		}
		return nil
	}, made...)
}
