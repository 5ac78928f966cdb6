package fleet

import (
	"cmp"
	"io"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/unthrottle/unthrottle/internal/text"
)

// mostServices bounds the services that Metrics names: those with the most cores.
const mostServices = 1000

// Metrics writes the report as figures for Prometheus, in its text format: what node_exporter's textfile collector
// reads.
func Metrics(w io.Writer, d Document) error {
	g := gauges{prometheus.NewPedanticRegistry()}
	l := d.Ledger
	cores := g.vector("unthrottle_fleet_cores", "Cores: now, and after with the bounds of the estimate.",
		"state")
	setStates(cores, map[string]*float64{
		"now": &l.CoresNow, "after": &l.CoresAfter, "after_low": less(&l.CoresNow, &l.SavedHigh),
		"after_high": less(&l.CoresNow, &l.SavedLow),
	})
	g.single("unthrottle_fleet_containers", "Containers that run at the end of the rows.", d.Containers)
	g.single("unthrottle_fleet_hosts", "Hosts that have rows of the last "+text.Duration(d.Input.GoneAfter)+".", d.Hosts)
	g.single("unthrottle_fleet_hosts_gone", "Hosts that have older rows only.", d.Input.HostsGone)
	g.single("unthrottle_fleet_rows_until_timestamp_seconds", "The last moment that a row is of.", int(d.Until.Unix()))
	g.single("unthrottle_fleet_rows", "Rows that count.", int(d.Input.Rows))
	g.single("unthrottle_fleet_files_left_out", "Files that could not be read.", len(d.Input.Refused)+d.Input.RefusedMore)
	unknown := g.vector("unthrottle_fleet_unknown_cores", "Cores of containers whose needs are not known, by the reason.",
		"reason")
	for _, u := range d.Unknown {
		unknown.WithLabelValues(u.Reason).Set(u.Cores)
	}
	g.services(d.Services)
	applied := g.vector("unthrottle_fleet_applied_stopped_ratio", "Share of the time in which a quota stopped containers "+
		"that got a remedy: before, after, and as it was forecast.", "remedy", "state")
	for _, a := range d.Applied {
		setStates(applied, map[string]*float64{"before": a.StoppedBefore, "after": a.StoppedAfter,
			"forecast": a.StoppedForecast},
			text.Sanitize(a.Remedy, 0))
	}
	families, err := g.Gather()
	if err != nil {
		return err
	}
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(w, family); err != nil {
			return err
		}
	}
	return nil
}

// serviceFigures are the figures of each service that have one value.
var serviceFigures = []struct {
	name, help string
	value      func(Service) *float64
}{
	{
		"unthrottle_fleet_service_stopped_ratio",
		"Share of the time in which a quota stopped the service's containers, at most.",
		func(s Service) *float64 { return s.StoppedShare },
	},
	{
		"unthrottle_fleet_service_contended_ratio",
		"Part of the time in which the service's threads ran or were runnable that they waited for a CPU which others or " +
			"they themselves held, at least.",
		func(s Service) *float64 { return s.ContendedShareLow },
	},
	{
		"unthrottle_fleet_service_runnable_per_core",
		"Running and runnable threads per core of the limit, while there is any.",
		func(s Service) *float64 { return s.RunnablePerCore },
	},
}

// services are the figures of the services with the most cores. What is not known has no series.
func (g gauges) services(services []Service) {
	cores := func(s Service) float64 {
		if s.CoresNow == nil {
			return 0
		}
		return *s.CoresNow
	}
	services = slices.SortedStableFunc(slices.Values(services),
		func(a, b Service) int { return cmp.Compare(cores(b), cores(a)) })
	services = services[:min(len(services), mostServices)]
	states := g.vector("unthrottle_fleet_service_cores",
		"Cores of a service: now, and after with the bounds of the estimate.", "service", "state")
	for _, s := range services {
		setStates(states, map[string]*float64{
			"now": s.CoresNow, "after": s.CoresAfter, "after_low": s.CoresAfterLow, "after_high": s.CoresAfterHigh,
		}, text.Sanitize(s.Name, 0))
	}
	for _, f := range serviceFigures {
		vector := g.vector(f.name, f.help, "service")
		for _, s := range services {
			if v := f.value(s); v != nil {
				vector.WithLabelValues(text.Sanitize(s.Name, 0)).Set(*v)
			}
		}
	}
}

// gauges makes them.
type gauges struct{ *prometheus.Registry }

func (g gauges) vector(name, help string, labels ...string) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	g.MustRegister(v)
	return v
}

func (g gauges) single(name, help string, value int) {
	g.vector(name, help).WithLabelValues().Set(float64(value))
}

// setStates sets the figures that are known, by their last label.
func setStates(to *prometheus.GaugeVec, states map[string]*float64, labels ...string) {
	for state, v := range states {
		if v != nil {
			to.WithLabelValues(append(slices.Clone(labels), state)...).Set(*v)
		}
	}
}
