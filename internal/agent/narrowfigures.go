package agent

import (
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn"
)

var (
	narrowCapDesc   = narrowDesc("unthrottle_narrow_cap_cpus", "The cap of a container that is narrow by sched_ext, in CPUs.")
	narrowForceDesc = narrowDesc("unthrottle_narrow_in_force",
		"1: the scheduler has the cap; 0: it ended, and the quota is enforced again.")
	narrowWidestDesc = narrowDesc("unthrottle_narrow_widest_cpus", "The most CPUs in use at once since the cap was set.")
	narrowCreditDesc = narrowDesc("unthrottle_narrow_credit_seconds", "CPU time saved below the cap.")
	narrowAtCapDesc  = narrowDesc("unthrottle_narrow_at_cap_seconds",
		"Time since the cap was set in which as many CPUs as allowed were in use.")
	narrowFaultDesc = prometheus.NewDesc("unthrottle_narrow_faults",
		"What must not happen in the scheduler, since it was loaded.", []string{"fault"}, nil)
	narrowWaitDesc = narrowDesc("unthrottle_narrow_waited_seconds", "Of that, time in which at least one more thread waited.")
)

func narrowDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, []string{"container"}, nil)
}

// narrowFigures are what the scheduler counts of containers that are narrow by
// sched_ext, as the last round read it.
type narrowFigures struct {
	mu  sync.Mutex
	all []txn.InForce
}

func (n *narrowFigures) set(held []txn.InForce) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = nil
	for _, h := range held {
		if h.Narrow != nil {
			n.all = append(n.all, h)
		}
	}
}

// Describe implements prometheus.Collector.
func (n *narrowFigures) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{narrowCapDesc, narrowForceDesc, narrowWidestDesc, narrowCreditDesc,
		narrowAtCapDesc, narrowWaitDesc, narrowFaultDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. What was not counted is left out.
func (n *narrowFigures) Collect(ch chan<- prometheus.Metric) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if i := slices.IndexFunc(n.all, func(h txn.InForce) bool { return h.Narrow.Faults != nil }); i >= 0 {
		for name, count := range n.all[i].Narrow.Faults { // the scheduler's, and so the same with each container
			ch <- prometheus.MustNewConstMetric(narrowFaultDesc, prometheus.GaugeValue, float64(count), name)
		}
	}
	for _, h := range n.all {
		gauge := func(d *prometheus.Desc, v float64) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, text.EscapePath(h.Target))
		}
		seconds := func(d *prometheus.Desc, v *float64) {
			if v != nil {
				gauge(d, *v)
			}
		}
		gauge(narrowCapDesc, h.Narrow.CapCPUs)
		if of := h.Narrow.InForce; of != nil {
			now := 0.0
			if *of {
				now = 1
			}
			gauge(narrowForceDesc, now)
		}
		if h.Narrow.Widest != nil {
			gauge(narrowWidestDesc, float64(*h.Narrow.Widest))
		}
		seconds(narrowCreditDesc, h.Narrow.CreditSeconds)
		seconds(narrowAtCapDesc, h.Narrow.AtCapSeconds)
		seconds(narrowWaitDesc, h.Narrow.WaitedSeconds)
	}
}
