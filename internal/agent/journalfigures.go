package agent

import (
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/unthrottle/unthrottle/internal/txn"
)

var (
	inForceDesc = prometheus.NewDesc("unthrottle_remedies_in_force", "Containers that have this remedy.", []string{"remedy"}, nil)
	driftDesc   = prometheus.NewDesc("unthrottle_drifted_settings", "Settings of ours that another program changed.", nil, nil)
	changesDesc = prometheus.NewDesc("unthrottle_remedy_changes", "Changes in the journal, by what came of them.",
		[]string{"remedy", "verdict"}, nil)
	judgedDesc = prometheus.NewDesc("unthrottle_remedy_changes_measured",
		"Changes for which a figure was forecast and then measured.", []string{"remedy", "figure"}, nil)
	withinDesc = prometheus.NewDesc("unthrottle_remedy_changes_as_expected",
		"Those of them whose figure came as forecast.", []string{"remedy", "figure"}, nil)
	ratioDesc = prometheus.NewDesc("unthrottle_remedy_forecast_ratio",
		"Median of what came divided by what was forecast; 1: as forecast.", []string{"remedy", "figure"}, nil)
)

// journalFigures are what is exported about the journal. They are gauges: the
// journal forgets old changes.
type journalFigures struct {
	mu      sync.Mutex
	inForce map[string]int
	changes map[[2]string]int // by remedy and verdict
	// forecasts are how near they came.
	forecasts []txn.Accuracy
	drift     int
}

func (j *journalFigures) set(held []txn.InForce, past []txn.Past) {
	inForce, changes := map[string]int{}, map[[2]string]int{}
	transactions := slices.Clone(held)
	for _, h := range held {
		if !isUpkeep(h) {
			inForce[h.Remedy]++
		}
	}
	for _, p := range past {
		transactions = append(transactions, p.InForce)
	}
	for _, f := range transactions {
		changes[[2]string{f.Remedy, f.Verdict}]++
	}
	forecasts := txn.Accuracies(transactions)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.inForce, j.changes, j.forecasts = inForce, changes, forecasts
}

func (j *journalFigures) setDrift(settings int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.drift = settings
}

// Describe implements prometheus.Collector.
func (j *journalFigures) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{inForceDesc, driftDesc, changesDesc, judgedDesc, withinDesc, ratioDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (j *journalFigures) Collect(ch chan<- prometheus.Metric) {
	j.mu.Lock()
	defer j.mu.Unlock()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(driftDesc, float64(j.drift))
	for _, remedy := range slices.Sorted(maps.Keys(j.inForce)) {
		gauge(inForceDesc, float64(j.inForce[remedy]), remedy)
	}
	for key, n := range j.changes {
		gauge(changesDesc, float64(n), key[0], key[1])
	}
	for _, accuracy := range j.forecasts {
		gauge(judgedDesc, float64(accuracy.Measured), accuracy.Remedy, accuracy.Figure)
		gauge(withinDesc, float64(accuracy.Within), accuracy.Remedy, accuracy.Figure)
		if accuracy.Ratio != nil {
			gauge(ratioDesc, *accuracy.Ratio, accuracy.Remedy, accuracy.Figure)
		}
	}
}
