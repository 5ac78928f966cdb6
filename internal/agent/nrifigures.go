package agent

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/unthrottle/unthrottle/internal/cure/nri"
)

var (
	nriLiveDesc = prometheus.NewDesc("unthrottle_nri_connected",
		"1 while the runtime's NRI session is live, else 0. Absent: not asked for.", nil, nil)
	nriContainersDesc = prometheus.NewDesc("unthrottle_nri_containers", "Containers that the runtime named.", nil, nil)
	nriSessionsDesc   = prometheus.NewDesc("unthrottle_nri_sessions_total", "NRI sessions that became live.", nil, nil)
	nriResizesDesc    = prometheus.NewDesc("unthrottle_nri_resizes_total",
		"Updates of containers by others, such as the kubelet's resizes.", nil, nil)
	nriUpdatesDesc = prometheus.NewDesc("unthrottle_nri_updates_total",
		"Updates of ours by what came of them: applied, ignored (the runtime said yes, the kernel had another "+
			"value), refused.", []string{"result"}, nil)
)

// nriFigures exports what the connection to the runtime counts.
type nriFigures struct{ plugin *nri.Plugin }

// Describe implements prometheus.Collector.
func (nriFigures) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{nriLiveDesc, nriContainersDesc, nriSessionsDesc, nriResizesDesc, nriUpdatesDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (f nriFigures) Collect(ch chan<- prometheus.Metric) {
	if f.plugin == nil {
		return
	}
	figures := f.plugin.Figures()
	live := 0.0
	if figures.Live {
		live = 1
	}
	ch <- prometheus.MustNewConstMetric(nriLiveDesc, prometheus.GaugeValue, live)
	ch <- prometheus.MustNewConstMetric(nriContainersDesc, prometheus.GaugeValue, float64(figures.Containers))
	ch <- prometheus.MustNewConstMetric(nriSessionsDesc, prometheus.CounterValue, float64(figures.Sessions))
	ch <- prometheus.MustNewConstMetric(nriResizesDesc, prometheus.CounterValue, float64(figures.Resizes))
	for _, outcome := range nri.Outcomes() {
		ch <- prometheus.MustNewConstMetric(nriUpdatesDesc, prometheus.CounterValue, float64(figures.Updates[outcome]), string(outcome))
	}
}
