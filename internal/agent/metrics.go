package agent

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// Names follow the Prometheus conventions: base units, counters that PromQL
// divides, no percentages. They are ours (unthrottle_*), since the meaning of
// cAdvisor's container_cpu_cfs_* is fixed: its throttled seconds are a sum over
// CPUs, which is no wall time.
var (
	containerLabels = []string{"namespace", "pod", "container", "id"}

	limitDesc = containerDesc("limit_cpus", "Effective CPU limit: the least quota / period along the container's ancestors, "+
		"with whose it is as scope: own, pod or slice. Absent: no limit.", "scope")
	usedDesc             = containerDesc("used_cpu_seconds_total", "CPU time used.")
	periodsDesc          = containerDesc("periods_total", "Periods of the container's own quota in which it was active.")
	throttledPeriodsDesc = containerDesc("throttled_periods_total",
		"Periods at whose end a CPU of the container was throttled by its own quota.")
	stoppedLowDesc = containerDesc("stopped_low_seconds_total",
		"Lower bound of stopped time: wall time in which a runnable thread was held back by a quota.")
	stoppedHighDesc = containerDesc("stopped_high_seconds_total",
		"Upper bound of stopped time: wall time in which a runnable thread was held back by a quota.")
	throttledCPUDesc = containerDesc("throttled_cpu_seconds_total",
		"Throttled time summed over CPUs, as the kernel counts it, by whose quota: self or ancestor.", "source")

	waitingDesc = containerDesc("waiting_seconds_total", "Thread time waited for a CPU, by cause: quota (its own), "+
		"ancestor (an ancestor's quota) "+
		"or contention (others, or more threads of its own, had the CPUs).", "cause")
	unclearDesc   = containerDesc("waiting_unclear_seconds_total", "The part of the waiting for quota and ancestor that may be contention.")
	wantedCPUDesc = containerDesc("wanted_cpu_seconds_total", "CPU time that it would have used without a quota: at least what it used.")

	containersDesc = prometheus.NewDesc("unthrottle_containers", "Containers seen in the last round.", nil, nil)
	vacantDesc     = prometheus.NewDesc("unthrottle_containers_vacant",
		"Containers without a process: they are not looked at, and have no series.", nil, nil)
	droppedDesc = prometheus.NewDesc("unthrottle_containers_dropped", "Containers beyond the bound of what is exported.", nil, nil)
)

// containerDesc describes a metric of containers. more are labels beside those that all have.
func containerDesc(name, help string, more ...string) *prometheus.Desc {
	return prometheus.NewDesc("unthrottle_container_"+name, help, slices.Concat(containerLabels, more), nil)
}

// maxSeriesPerContainer bounds the series of one container: 13 single ones, and two histograms with a series for each bucket,
// for what is above, the sum and the count.
const maxSeriesPerContainer = 53

// Describe implements prometheus.Collector.
func (t *totals) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		limitDesc, usedDesc, periodsDesc, throttledPeriodsDesc, stoppedLowDesc, stoppedHighDesc,
		throttledCPUDesc, waitingDesc, unclearDesc, wantedCPUDesc, containersDesc, vacantDesc, droppedDesc, widthDesc, wantDesc,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (t *totals) Collect(ch chan<- prometheus.Metric) {
	t.mu.Lock()
	defer t.mu.Unlock()
	send := func(d *prometheus.Desc, kind prometheus.ValueType, v *float64, labels ...string) {
		if v != nil {
			ch <- prometheus.MustNewConstMetric(d, kind, *v, labels...)
		}
	}
	for _, c := range t.byPath {
		send(limitDesc, prometheus.GaugeValue, c.limit, slices.Concat(c.labels, []string{c.scope})...)
		send(usedDesc, prometheus.CounterValue, c.usedSeconds, c.labels...)
		send(periodsDesc, prometheus.CounterValue, c.periods, c.labels...)
		send(throttledPeriodsDesc, prometheus.CounterValue, c.throttledPeriods, c.labels...)
		send(stoppedLowDesc, prometheus.CounterValue, c.stoppedLow, c.labels...)
		send(stoppedHighDesc, prometheus.CounterValue, c.stoppedHigh, c.labels...)
		for _, m := range []prometheus.Metric{c.width.metric(widthDesc, c.labels), c.wanted.metric(wantDesc, c.labels)} {
			if m != nil {
				ch <- m
			}
		}
		send(throttledCPUDesc, prometheus.CounterValue, c.ownThrottledCPU, slices.Concat(c.labels, []string{"self"})...)
		send(throttledCPUDesc, prometheus.CounterValue, c.otherThrottledCPU, slices.Concat(c.labels, []string{"ancestor"})...)
		send(waitingDesc, prometheus.CounterValue, c.waitedQuota, slices.Concat(c.labels, []string{"quota"})...)
		send(waitingDesc, prometheus.CounterValue, c.waitedAncestor, slices.Concat(c.labels, []string{"ancestor"})...)
		send(waitingDesc, prometheus.CounterValue, c.waitedContention, slices.Concat(c.labels, []string{"contention"})...)
		send(unclearDesc, prometheus.CounterValue, c.waitingUnclear, c.labels...)
		send(wantedCPUDesc, prometheus.CounterValue, c.wantedCPU, c.labels...)
	}
	containers, vacant, dropped := float64(len(t.byPath)+t.dropped), float64(t.vacant), float64(t.dropped)
	send(containersDesc, prometheus.GaugeValue, &containers)
	send(vacantDesc, prometheus.GaugeValue, &vacant)
	send(droppedDesc, prometheus.GaugeValue, &dropped)
}
