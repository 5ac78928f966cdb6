package fleet

import (
	"io"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/unthrottle/unthrottle/internal/text"
)

// mostServices bounds the services that Metrics names: those with the most cores.
const mostServices = 1000

// Metrics writes the report as figures for Prometheus, in its text format: what node_exporter's textfile collector reads.
func Metrics(w io.Writer, d Document) error {
	r := prometheus.NewPedanticRegistry()
	cores := gauges(r, "unthrottle_fleet_cores", "Cores: now, and after at the same stops with the bounds of the estimate.", "state")
	for state, v := range map[string]float64{"now": d.Ledger.CoresNow, "after": d.Ledger.CoresAfter,
		"after_low": d.Ledger.CoresNow - d.Ledger.SavedHigh, "after_high": d.Ledger.CoresNow - d.Ledger.SavedLow} {
		cores.WithLabelValues(state).Set(v)
	}
	for _, one := range []struct {
		name, help string
		v          float64
	}{
		{"unthrottle_fleet_containers", "Containers that run at the end of the rows.", float64(d.Containers)},
		{"unthrottle_fleet_hosts", "Hosts that have rows of the last " + text.Duration(GoneAfter) + ".", float64(d.Hosts)},
		{"unthrottle_fleet_hosts_gone", "Hosts that have older rows only.", float64(d.Input.HostsGone)},
		{"unthrottle_fleet_rows_until_timestamp_seconds", "The last moment that a row is of.", float64(d.Until.Unix())},
		{"unthrottle_fleet_rows", "Rows that count.", float64(d.Input.Rows)},
		{"unthrottle_fleet_files_left_out", "Files that could not be read.", float64(len(d.Input.Refused) + d.Input.RefusedMore)},
	} {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: one.name, Help: one.help})
		g.Set(one.v)
		r.MustRegister(g)
	}
	unknown := gauges(r, "unthrottle_fleet_unknown_cores", "Cores of containers whose needs are not known, by the reason.", "reason")
	for _, u := range d.Unknown {
		unknown.WithLabelValues(u.Reason).Set(u.Cores)
	}
	serviceMetrics(r, d.Services)
	applied := gauges(r, "unthrottle_fleet_applied_stopped_ratio",
		"Share of the time in which a quota stopped containers that got a remedy: before, after, and as it was "+
			"forecast.", "remedy", "state")
	for _, a := range d.Applied {
		for state, v := range map[string]*float64{"before": a.StoppedBefore, "after": a.StoppedAfter, "forecast": a.StoppedForecast} {
			if v != nil {
				applied.WithLabelValues(text.Sanitize(a.Remedy, 0), state).Set(*v)
			}
		}
	}
	all, err := r.Gather()
	if err != nil {
		return err
	}
	for _, family := range all {
		if _, err := expfmt.MetricFamilyToText(w, family); err != nil {
			return err
		}
	}
	return nil
}

// serviceMetrics are the figures of the services with the most cores. What is not known has no series.
func serviceMetrics(r *prometheus.Registry, all []Service) {
	cores := gauges(r, "unthrottle_fleet_service_cores", "Cores of a service: now, and after at the same stops with "+
		"the bounds of the estimate.", "service", "state")
	stopped := gauges(r, "unthrottle_fleet_service_stopped_ratio",
		"Share of the time in which a quota stopped the service's containers, at most.", "service")
	contended := gauges(r, "unthrottle_fleet_service_contended_ratio",
		"Part of the time in which the service's threads ran or were runnable that they waited for a CPU which "+
			"others or they themselves held, at least.", "service")
	runnable := gauges(r, "unthrottle_fleet_service_runnable_per_core",
		"Running and runnable threads per core of the limit, while there is any.", "service")
	known := func(v *float64) float64 {
		if v == nil {
			return 0
		}
		return *v
	}
	all = slices.SortedStableFunc(slices.Values(all), func(a, b Service) int {
		switch x, y := known(a.CoresNow), known(b.CoresNow); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	for _, s := range all[:min(len(all), mostServices)] {
		name := text.Sanitize(s.Name, 0)
		for state, v := range map[string]*float64{"now": s.CoresNow, "after": s.CoresAfter,
			"after_low": s.CoresAfterLow, "after_high": s.CoresAfterHigh} {
			if v != nil {
				cores.WithLabelValues(name, state).Set(*v)
			}
		}
		if s.StoppedShare != nil {
			stopped.WithLabelValues(name).Set(*s.StoppedShare)
		}
		if s.ContendedShareLow != nil {
			contended.WithLabelValues(name).Set(*s.ContendedShareLow)
		}
		if s.RunnablePerCore != nil {
			runnable.WithLabelValues(name).Set(*s.RunnablePerCore)
		}
	}
}

func gauges(r *prometheus.Registry, name, help string, labels ...string) *prometheus.GaugeVec {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	r.MustRegister(g)
	return g
}
