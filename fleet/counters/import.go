package counters

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/prometheus/common/model"

	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/text"
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
	Keep func(hour time.Time, rows []demand.Row) error
	// Tell is told what was left out or counted once; nil: no one is.
	Tell func(text string)
}

func (o *Options) selector() string { return o.matching(`container!="",container!="POD"`) }

func (o *Options) matching(selector string) string {
	if o.Match != "" {
		selector += "," + o.Match
	}
	return selector
}

// initRequests are the requests of init containers. Of one that has ended there is no row.
const initRequests = "kube_pod_init_container_resource_requests"

// query is what a figure is asked by. A counter is asked for each cgroup (id) and CPU, of what is there twice the
// largest; of a setting the largest counts.
func (o *Options) query(f Figure) string {
	const pod = "namespace, pod, container"
	by, metric := o.NodeLabel+", "+pod, metrics[f]+"{"+o.selector()+"}"
	switch f {
	case Used, Periods, Throttled, ThrottledTime:
		by, metric = by+", id, cpu", "increase("+metric+"[5m])"
	case Limit:
		metric += " / " + metrics[Period] + "{" + o.selector() + "}"
	case PodLimit:
		by, selector := o.NodeLabel+", namespace, pod", o.matching(`container="",pod!=""`)
		return fmt.Sprintf("max by (%s) (%s{%s} / %s{%s})", by, metrics[f], selector, metrics[Period], selector)
	case Requests:
		return fmt.Sprintf(`max by (%s) (%s{resource="cpu",%s} or %s{resource="cpu",%s})`, pod, metrics[f], o.selector(), initRequests,
			o.selector())
	case NodeCPUs, NodeMemory:
		by, metric = o.NodeLabel, metrics[f]
	}
	return "max by (" + by + ") (" + metric + ")"
}

// Import asks for hour after hour, and has the rows kept. It returns how many there are. An error names the query, or
// the flag that takes one of what is there twice.
func Import(ctx context.Context, o Options) (rows int, err error) {
	noted := map[string]bool{}
	tell := func(text string) {
		if text != "" && !noted[text] && o.Tell != nil {
			noted[text] = true
			o.Tell(text)
		}
	}
	for hour := o.From; hour.Before(o.Until); hour = hour.Add(time.Hour) {
		begin, end := hour.Add(demand.SlotLength), hour.Add(time.Hour)
		ask := func(query string, from time.Time) (model.Matrix, error) {
			answer, err := o.Ask(ctx, query, from, end, demand.SlotLength)
			if err != nil {
				return nil, fmt.Errorf("hour %s: %s: %w", hour.UTC().Format("2006-01-02 15:04"), query, err)
			}
			return answer, nil
		}
		raw, err := ask(metrics[Used]+"{"+o.selector()+"}", end)
		if err != nil {
			return rows, err
		}
		note, err := twins(raw, o.NodeLabel)
		if err != nil {
			return rows, fmt.Errorf("hour %s: %w", hour.UTC().Format("2006-01-02 15:04"), err)
		}
		tell(note)
		slots := map[time.Time]Slot{}
		for f := range numberOfFigures {
			answer, err := ask(o.query(f), begin)
			if err != nil {
				return rows, err
			}
			add(slots, f, answer, o.NodeLabel)
		}
		var hourly []demand.Row
		var left []Contradiction
		for start := hour; start.Before(end); start = start.Add(demand.SlotLength) {
			found, out := slots[start.UTC()].Rows(o.Cluster, start)
			hourly, left = append(hourly, found...), append(left, out...)
		}
		if len(left) > 0 {
			tell(fmt.Sprintf("%s of %s left out, which contradict themselves, such as %s of %s", text.Count(len(left), "row"),
				hour.UTC().Format("2006-01-02 15:04"), left[0].Why, left[0].Of.name()))
		}
		if len(hourly) > 0 {
			if err := o.Keep(hour, hourly); err != nil {
				return rows, err
			}
		}
		rows += len(hourly)
	}
	return rows, nil
}

// add notes an answer's figures in their slots. Of a counter, the CPUs of a cgroup are added up where it has no total,
// and then the cgroups that had a container's names one after the other.
func add(slots map[time.Time]Slot, f Figure, answer model.Matrix, nodeLabel string) {
	type cgroup struct {
		key   Key
		id    string
		start time.Time
	}
	totals, cpus := map[cgroup]float64{}, map[cgroup]float64{}
	for _, series := range answer {
		label := func(name string) string { return string(series.Metric[model.LabelName(name)]) }
		cpu := label("cpu")
		for _, v := range series.Values {
			// The last five minutes before the moment are the slot.
			c := cgroup{Key{label(nodeLabel), label("namespace"), label("pod"), label("container")}, label("id"),
				v.Timestamp.Time().UTC().Add(-demand.SlotLength)}
			n := float64(v.Value)
			if !(n >= 0) || math.IsInf(n, 0) {
				continue
			}
			if cpu == "" || cpu == "total" {
				totals[c] = max(totals[c], n)
			} else {
				cpus[c] += n
			}
		}
	}
	for c, n := range cpus {
		if _, has := totals[c]; !has {
			totals[c] = n
		}
	}
	for c, n := range totals {
		if slots[c.start] == nil {
			slots[c.start] = Slot{}
		}
		slots[c.start].Add(c.key, f, n)
	}
}
