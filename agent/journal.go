package agent

import (
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/unthrottle/unthrottle/apply"
)

var (
	inForceDesc = prometheus.NewDesc("unthrottle_remedies_in_force", "Containers that have this remedy.", []string{"remedy"}, nil)
	driftDesc   = prometheus.NewDesc("unthrottle_drifted_settings", "Settings of ours that somebody else has changed.", nil, nil)
	changesDesc = prometheus.NewDesc("unthrottle_remedy_changes", "Changes in the journal, by what came of them.", []string{"remedy", "verdict"}, nil)
	judgedDesc  = prometheus.NewDesc("unthrottle_remedy_changes_measured", "Changes for which stopped time was expected and measured.", []string{"remedy"}, nil)
	withinDesc  = prometheus.NewDesc("unthrottle_remedy_changes_as_expected", "Those of them whose stopped time came to lie within what was expected.", []string{"remedy"}, nil)
)

// journalFigures are what is exported about the journal. They are gauges: the
// journal forgets old changes.
type journalFigures struct {
	mu               sync.Mutex
	inForce          map[string]int
	changes          map[[2]string]int
	measured, within map[string]int
	drift            int
}

func (j *journalFigures) set(held []apply.InForce, past []apply.Past, drift int) {
	inForce, changes := map[string]int{}, map[[2]string]int{}
	measured, within := map[string]int{}, map[string]int{}
	take := func(f apply.InForce) {
		changes[[2]string{f.Remedy, f.Verdict}]++
		if f.Expected == nil || f.Outcome == nil || f.Outcome.After == nil {
			return
		}
		low, high, after := f.Expected.StoppedPerSecondLow, f.Expected.StoppedPerSecondHigh, f.Outcome.After
		if low == nil || high == nil || after.StoppedPerSecondLow == nil || after.StoppedPerSecondHigh == nil {
			return
		}
		measured[f.Remedy]++
		if *after.StoppedPerSecondLow <= *high && *after.StoppedPerSecondHigh >= *low {
			within[f.Remedy]++
		}
	}
	for _, h := range held {
		inForce[h.Remedy]++
		take(h)
	}
	for _, p := range past {
		take(p.InForce)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.inForce, j.changes, j.measured, j.within, j.drift = inForce, changes, measured, within, drift
}

// Describe implements prometheus.Collector.
func (j *journalFigures) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{inForceDesc, driftDesc, changesDesc, judgedDesc, withinDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (j *journalFigures) Collect(ch chan<- prometheus.Metric) {
	j.mu.Lock()
	defer j.mu.Unlock()
	gauge := func(d *prometheus.Desc, v int, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), labels...)
	}
	gauge(driftDesc, j.drift)
	for _, remedy := range slices.Sorted(maps.Keys(j.inForce)) {
		gauge(inForceDesc, j.inForce[remedy], remedy)
	}
	for key, n := range j.changes {
		gauge(changesDesc, n, key[0], key[1])
	}
	for remedy, n := range j.measured {
		gauge(judgedDesc, n, remedy)
		gauge(withinDesc, j.within[remedy], remedy)
	}
}
