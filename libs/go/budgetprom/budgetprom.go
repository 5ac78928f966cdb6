// Package budgetprom shows a CPU budget to Prometheus.
package budgetprom

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/unthrottle/unthrottle/libs/go/budget"
)

// Snapshotter is what the collector needs of a [budget.Budget].
type Snapshotter interface{ Snapshot() budget.Snapshot }

const prefix = "unthrottle_budget_"

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prefix+name, help, labels, nil)
}

var (
	limit    = desc("limit_cpus", "CPU limit in force; absent without one.")
	used     = desc("used_cpus", "CPUs that the process used lately.")
	wanted   = desc("wanted_cpus", "CPUs used, and one for each task that waits.")
	periods  = desc("periods_total", "Periods of the cgroup with the limit (nr_periods).")
	stopped  = desc("throttled_periods_total", "Periods in which the kernel stopped that cgroup (nr_throttled).")
	paced    = desc("paced", "1 while App and Background hold back before the kernel stops all.")
	permits  = desc("permits", "Tasks of a class that may run at once; 0: as many as come.", "class")
	running  = desc("running_tasks", "Tasks that run.", "class")
	waiting  = desc("waiting_tasks", "Tasks that wait.", "class")
	finished = desc("finished_tasks_total", "Permits that were given back: a task counts once, and once more for each wait in which others had its permit.", "class")
	held     = desc("held_total", "How many times pacing made the next task wait.", "class")
	late     = desc("late_tasks_total", "Tasks that were rejected, since they would have started too late.", "class")
)

// collector is a budget as Prometheus sees it.
type collector struct{ b Snapshotter }

// Collector is a budget's gauges, to be registered once.
func Collector(b Snapshotter) prometheus.Collector { return collector{b} }

// Describe sends all descriptors.
func (c collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{limit, used, wanted, periods, stopped, paced, permits, running, waiting, finished, held, late} {
		to <- d
	}
}

// Collect sends what is known; what was not measured is absent.
func (c collector) Collect(to chan<- prometheus.Metric) {
	s := c.b.Snapshot()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v uint64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	for d, v := range map[*prometheus.Desc]*float64{limit: s.LimitCPUs, used: s.UsedCPUs, wanted: s.WantedCPUs} {
		if v != nil {
			gauge(d, *v)
		}
	}
	for d, v := range map[*prometheus.Desc]*uint64{periods: s.Periods, stopped: s.Stopped} {
		if v != nil {
			counter(d, *v)
		}
	}
	if s.Paced {
		gauge(paced, 1)
	} else {
		gauge(paced, 0)
	}
	for _, class := range budget.Classes {
		of, name := s.Classes[class], class.String()
		gauge(permits, float64(of.Permits), name)
		gauge(running, float64(of.Running), name)
		gauge(waiting, float64(of.Waiting), name)
		counter(finished, of.Finished, name)
		counter(held, of.Held, name)
		counter(late, of.Late, name)
	}
}
