package agent

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Width and wanted are exported as histograms in which each millisecond of time is one observation, so that the usual
// functions hold: histogram_quantile(0.99, rate(..._bucket)) is the width that was not exceeded for 99 % of the time.
// Buckets are the same for all containers, or they could not be added up.
var (
	widthBuckets = []float64{0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256}

	widthDesc = containerDesc("width_cpus", "CPUs in use at once; each millisecond is one observation.")
	wantDesc  = containerDesc("wanted_threads", "Threads running or runnable at once; each millisecond is one observation.")

	probeDesc = prometheus.NewDesc("unthrottle_probe_available",
		"1 if the kernel's scheduling events are counted, else 0: widths and the flight recorder need them.", nil, nil)
	flightBytes   = prometheus.NewDesc("unthrottle_flight_recorder_bytes", "Memory that the kept periods take.", nil, nil)
	flightHeld    = prometheus.NewDesc("unthrottle_flight_recorder_containers", "Containers whose periods are kept.", nil, nil)
	flightDropped = prometheus.NewDesc("unthrottle_flight_recorder_dropped_total",
		"Containers whose periods had to make room for others'.", nil, nil)
	flightMade = prometheus.NewDesc("unthrottle_flight_recordings_total",
		"Recordings made because stopped time passed the bound.", nil, nil)
	flightRemoved  = prometheus.NewDesc("unthrottle_flight_recordings_removed_total", "Old recordings that had to make room.", nil, nil)
	flightFailures = prometheus.NewDesc("unthrottle_flight_recording_failures_total", "Recordings that failed.", nil, nil)
)

// histogram is time at each level, added up since the agent first saw the container.
type histogram struct {
	buckets []time.Duration // by widthBuckets, and one for what is above
	sum     float64         // level x seconds
	all     time.Duration
}

// add takes one window's time at each level in.
func (h *histogram) add(levels []time.Duration) {
	if len(levels) == 0 {
		return
	}
	if h.buckets == nil {
		h.buckets = make([]time.Duration, len(widthBuckets)+1)
	}
	at := 0
	for level, d := range levels {
		for at < len(widthBuckets) && float64(level) > widthBuckets[at] {
			at++
		}
		h.buckets[at] += d
		h.sum += float64(level) * d.Seconds()
		h.all += d
	}
}

// metric is the histogram in milliseconds; nil before anything was measured.
func (h *histogram) metric(d *prometheus.Desc, labels []string) prometheus.Metric {
	if h.buckets == nil {
		return nil
	}
	cumulative := make(map[float64]uint64, len(widthBuckets))
	sum := time.Duration(0)
	for i, bound := range widthBuckets {
		sum += h.buckets[i]
		cumulative[bound] = uint64(sum.Milliseconds())
	}
	return prometheus.MustNewConstHistogram(d, uint64(h.all.Milliseconds()), h.sum*1000, cumulative, labels...)
}

// Describe implements prometheus.Collector for what the flight recorder did.
func (f flightFigures) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{probeDesc, flightBytes, flightHeld, flightDropped, flightMade, flightRemoved, flightFailures} {
		ch <- d
	}
}

// flightFigures exports what the recorder of an agent does.
type flightFigures struct{ *agent }

// Collect implements prometheus.Collector.
func (f flightFigures) Collect(ch chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, v float64) {
		ch <- prometheus.MustNewConstMetric(d, kind, v)
	}
	r := f.recorder
	if r == nil {
		send(probeDesc, prometheus.GaugeValue, 0)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, dropped := r.periods.Dropped()
	send(probeDesc, prometheus.GaugeValue, 1)
	send(flightBytes, prometheus.GaugeValue, float64(r.periods.Bytes()))
	send(flightHeld, prometheus.GaugeValue, float64(len(r.periods.Containers())))
	send(flightDropped, prometheus.CounterValue, float64(dropped))
	send(flightMade, prometheus.CounterValue, r.recordings)
	send(flightRemoved, prometheus.CounterValue, r.removed)
	send(flightFailures, prometheus.CounterValue, r.failures)
}
