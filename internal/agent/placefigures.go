package agent

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/unthrottle/unthrottle/placement"
)

var (
	placedDesc = prometheus.NewDesc("unthrottle_placement_containers",
		"Containers that have CPUs by unthrottle, by class.", []string{"class"}, nil)
	crossDesc = prometheus.NewDesc("unthrottle_placement_crossings",
		"Groups that containers touch beyond what each would on an empty machine: avoidable where fewer would have "+
			"done when it came.", []string{"level", "kind"}, nil)
	coresDesc = prometheus.NewDesc("unthrottle_placement_shared_cores",
		"Cores on which two containers have CPUs of their own.", nil, nil)
	strandedDesc = prometheus.NewDesc("unthrottle_placement_stranded_half_cores", "Cores that are partly taken and partly free.", nil, nil)
	fitDesc      = prometheus.NewDesc("unthrottle_placement_largest_fit_cpus",
		"The largest request for exclusive CPUs that still fits, beside the reserve, in one group of the level.", []string{"level"}, nil)
	poolDesc   = prometheus.NewDesc("unthrottle_placement_pool_cpus", "CPUs that are not exclusive, without the reserve.", nil, nil)
	gaveUpDesc = prometheus.NewDesc("unthrottle_placement_yielded",
		"Containers whose CPUs another program keeps changing, so that the agent gave up.", nil, nil)
	movesDesc = prometheus.NewDesc("unthrottle_placement_moves_total", "Moves of containers to other CPUs.", []string{"outcome"}, nil)
)

// placeFigures are what is exported about the placement; nothing before it was
// first judged.
type placeFigures struct {
	mu           sync.Mutex
	judged       bool
	score        placement.Score
	classes      map[placement.Class]int
	gaveUp       int
	done, failed int
}

func (f *placeFigures) set(s placement.State, score placement.Score, gaveUp int) {
	classes := map[placement.Class]int{}
	for _, c := range s.Containers {
		classes[c.Class]++
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.judged, f.score, f.classes, f.gaveUp = true, score, classes, gaveUp
}

// none: no container has CPUs by us, so that there is nothing to judge.
func (f *placeFigures) none() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.judged = false
}

func (f *placeFigures) moved(done int, failed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done += done
	if failed {
		f.failed++
	}
}

// Describe implements prometheus.Collector.
func (f *placeFigures) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{placedDesc, crossDesc, coresDesc, strandedDesc, fitDesc, poolDesc, gaveUpDesc, movesDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (f *placeFigures) Collect(ch chan<- prometheus.Metric) {
	f.mu.Lock()
	defer f.mu.Unlock()
	gauge := func(d *prometheus.Desc, v int, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), labels...)
	}
	ch <- prometheus.MustNewConstMetric(movesDesc, prometheus.CounterValue, float64(f.done), "done")
	ch <- prometheus.MustNewConstMetric(movesDesc, prometheus.CounterValue, float64(f.failed), "failed")
	if !f.judged {
		return
	}
	for _, class := range slices.Sorted(maps.Keys(f.classes)) {
		gauge(placedDesc, f.classes[class], string(class))
	}
	for _, c := range f.score.Crossings {
		level := strings.ReplaceAll(strings.ToLower(string(c.Level)), " ", "_")
		gauge(crossDesc, c.Avoidable, level, "avoidable")
		gauge(crossDesc, c.Forced, level, "forced")
	}
	gauge(coresDesc, f.score.CoresShared)
	gauge(strandedDesc, f.score.Stranded)
	gauge(poolDesc, f.score.Pool)
	gauge(gaveUpDesc, f.gaveUp)
	fits := f.score.Fits
	for level, n := range map[string]int{"machine": fits.Machine, "socket": fits.Socket, "numa_node": fits.NUMANode, "l3": fits.L3} {
		gauge(fitDesc, n, level)
	}
}
