package counters

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/common/model"

	"github.com/unthrottle/unthrottle/internal/fleet"
)

// Ask answers a query of PromQL over a range of time, as Prometheus' own client does.
type Ask func(ctx context.Context, query string, from, until time.Time, step time.Duration) (model.Matrix, error)

// Options say what to import.
type Options struct {
	Ask     Ask
	Cluster string
	// NodeLabel is the label that names a container's node: "node", or "instance" where nothing else does.
	NodeLabel string
	// Match are further matchers, such as namespace="shop"; "": none.
	Match string
	// From and Until are whole hours.
	From, Until time.Time
	// Keep takes the rows of an hour.
	Keep func(hour time.Time, rows []fleet.Row) error
}

// query is what a figure is asked by. %s is the selector; of a counter the sum over what shares a container's names counts, of a setting
// the largest.
func (o *Options) query(f Figure) string {
	selector := `container!="",container!="POD"`
	if o.Match != "" {
		selector += "," + o.Match
	}
	of := func(metric string) string { return metric + "{" + selector + "}" }
	counted := func(metric string) string {
		return fmt.Sprintf("sum by (%s, namespace, pod, container) (increase(%s[5m]))", o.NodeLabel, of(metric))
	}
	set := func(expression string) string {
		return fmt.Sprintf("max by (%s, namespace, pod, container) (%s)", o.NodeLabel, expression)
	}
	switch f {
	case Used:
		return counted("container_cpu_usage_seconds_total")
	case Periods:
		return counted("container_cpu_cfs_periods_total")
	case Throttled:
		return counted("container_cpu_cfs_throttled_periods_total")
	case ThrottledTime:
		return counted("container_cpu_cfs_throttled_seconds_total")
	case Limit:
		return set(of("container_spec_cpu_quota") + " / " + of("container_spec_cpu_period"))
	case Period:
		return set(of("container_spec_cpu_period"))
	case Shares:
		return set(of("container_spec_cpu_shares"))
	case Memory:
		return set(of("container_memory_working_set_bytes"))
	case NodeCPUs:
		return fmt.Sprintf("max by (%s) (machine_cpu_cores)", o.NodeLabel)
	}
	return fmt.Sprintf("max by (%s) (machine_memory_bytes)", o.NodeLabel)
}

// Import asks for hour after hour, and has the rows kept. It returns how many there are. An error names the query.
func Import(ctx context.Context, o Options) (rows int, err error) {
	for hour := o.From; hour.Before(o.Until); hour = hour.Add(time.Hour) {
		slots := map[time.Time]Slot{}
		for f := range numberOfFigures {
			query := o.query(f)
			answer, err := o.Ask(ctx, query, hour.Add(fleet.SlotLength), hour.Add(time.Hour), fleet.SlotLength)
			if err != nil {
				return rows, fmt.Errorf("hour %s: %s: %w", hour.UTC().Format("2006-01-02 15:04"), query, err)
			}
			for _, series := range answer {
				label := func(name string) string { return string(series.Metric[model.LabelName(name)]) }
				k := Key{label(o.NodeLabel), label("namespace"), label("pod"), label("container")}
				for _, v := range series.Values {
					// The last five minutes before the moment are the slot.
					start := v.Timestamp.Time().UTC().Add(-fleet.SlotLength)
					if slots[start] == nil {
						slots[start] = Slot{}
					}
					slots[start].Set(k, f, float64(v.Value))
				}
			}
		}
		var all []fleet.Row
		for start := hour; start.Before(hour.Add(time.Hour)); start = start.Add(fleet.SlotLength) {
			all = append(all, slots[start.UTC()].Rows(o.Cluster, start)...)
		}
		if len(all) > 0 {
			if err := o.Keep(hour, all); err != nil {
				return rows, err
			}
		}
		rows += len(all)
	}
	return rows, nil
}
