package agent

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/unthrottle/unthrottle/internal/agent/answers"
)

var (
	spreadDesc = prometheus.NewDesc("unthrottle_spread_trials", "Containers with a trial that is spread over hours, by state: trying, "+
		"or kept (a remedy won, and is left alone now and then).", []string{"state"}, nil)
	blocksDesc = prometheus.NewDesc("unthrottle_spread_trial_blocks_total", "Blocks of such trials, by what was in force: remedy or "+
		"nothing.", []string{"in_force"}, nil)
	spreadEndsDesc = prometheus.NewDesc("unthrottle_spread_trials_ended_total", "Such trials that ended, by what came of them: kept, none "+
		"(nothing was better, or it could not be told), no_longer_helps (what was kept was taken back), aa_kept or aa_none (an A/A test, "+
		"in which a remedy that changed nothing would have been kept, or none), or ended (the container or its rule went).",
		[]string{"outcome"}, nil)
)

// The outcomes of a trial that is spread over hours, as exported.
const (
	spreadKept    = answers.TrialKept
	spreadNone    = answers.TrialNone
	spreadUseless = answers.TrialUseless
	spreadAAKept  = "aa_kept"
	spreadAANone  = "aa_none"
	spreadEnded   = "ended"
)

// spreadFigures count trials that are spread over hours. The acting goroutine counts, and scrapes read.
type spreadFigures struct {
	trying, kept                     atomic.Int64 // now
	remedies, nothing                atomic.Int64 // blocks
	won, none, useless, endedForGood atomic.Int64
	aaKept, aaNone                   atomic.Int64
}

// take counts those under way anew.
func (f *spreadFigures) take(all map[string]*spreading) {
	trying, kept := trials(all)
	f.trying.Store(int64(trying))
	f.kept.Store(int64(kept))
}

// block counts one, of a variant or (0) of leaving the container alone.
func (f *spreadFigures) block(variant int) {
	if variant > 0 {
		f.remedies.Add(1)
		return
	}
	f.nothing.Add(1)
}

// ended counts what came of a trial.
func (f *spreadFigures) ended(outcome string) {
	switch outcome {
	case spreadKept:
		f.won.Add(1)
	case spreadNone:
		f.none.Add(1)
	case spreadUseless:
		f.useless.Add(1)
	case spreadAAKept:
		f.aaKept.Add(1)
	case spreadAANone:
		f.aaNone.Add(1)
	default:
		f.endedForGood.Add(1)
	}
}

// Describe implements prometheus.Collector.
func (f *spreadFigures) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{spreadDesc, blocksDesc, spreadEndsDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (f *spreadFigures) Collect(ch chan<- prometheus.Metric) {
	for _, m := range []struct {
		of    *prometheus.Desc
		kind  prometheus.ValueType
		n     *atomic.Int64
		label string
	}{
		{spreadDesc, prometheus.GaugeValue, &f.trying, "trying"}, {spreadDesc, prometheus.GaugeValue, &f.kept, spreadKept},
		{blocksDesc, prometheus.CounterValue, &f.remedies, "remedy"}, {blocksDesc, prometheus.CounterValue, &f.nothing, "nothing"},
		{spreadEndsDesc, prometheus.CounterValue, &f.won, spreadKept}, {spreadEndsDesc, prometheus.CounterValue, &f.none, spreadNone},
		{spreadEndsDesc, prometheus.CounterValue, &f.useless, spreadUseless},
		{spreadEndsDesc, prometheus.CounterValue, &f.aaKept, spreadAAKept},
		{spreadEndsDesc, prometheus.CounterValue, &f.aaNone, spreadAANone},
		{spreadEndsDesc, prometheus.CounterValue, &f.endedForGood, spreadEnded},
	} {
		ch <- prometheus.MustNewConstMetric(m.of, m.kind, float64(m.n.Load()), m.label)
	}
}
