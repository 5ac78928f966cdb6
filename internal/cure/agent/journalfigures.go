package agent

import (
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/unthrottle/unthrottle/internal/cure/txn"
)

var (
	inForceDesc = prometheus.NewDesc("unthrottle_remedies_in_force", "Containers that have this remedy.", []string{"remedy"}, nil)
	driftDesc   = prometheus.NewDesc("unthrottle_drifted_settings", "Settings of ours that another program changed.", nil, nil)
	changesDesc = prometheus.NewDesc("unthrottle_remedy_changes", "Changes in the journal, by what came of them.", []string{"remedy", "verdict"}, nil)
	judgedDesc  = prometheus.NewDesc("unthrottle_remedy_changes_measured", "Changes for which a figure was forecast and then measured.", []string{"remedy", "figure"}, nil)
	withinDesc  = prometheus.NewDesc("unthrottle_remedy_changes_as_expected", "Those of them whose figure came as forecast.", []string{"remedy", "figure"}, nil)
)

// journalFigures are what is exported about the journal. They are gauges: the
// journal forgets old changes.
type journalFigures struct {
	mu      sync.Mutex
	inForce map[string]int
	changes map[[2]string]int // by remedy and verdict
	// By remedy and figure: how often it was forecast and measured, and how
	// often it came as forecast.
	measured, within map[[2]string]int
	drift            int
}

func (j *journalFigures) set(held []txn.InForce, past []txn.Past) {
	inForce, changes := map[string]int{}, map[[2]string]int{}
	measured, within := map[[2]string]int{}, map[[2]string]int{}
	take := func(f txn.InForce) {
		changes[[2]string{f.Remedy, f.Verdict}]++
		for _, d := range txn.Deviations(f.Expected, f.Outcome) {
			key := [2]string{f.Remedy, d.Figure}
			measured[key]++
			if d.Miss == 0 {
				within[key]++
			}
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
	j.inForce, j.changes, j.measured, j.within = inForce, changes, measured, within
}

func (j *journalFigures) setDrift(settings int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.drift = settings
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
	for key, n := range j.measured {
		gauge(judgedDesc, n, key[0], key[1])
		gauge(withinDesc, j.within[key], key[0], key[1])
	}
}
