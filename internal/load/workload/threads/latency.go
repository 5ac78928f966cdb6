package threads

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// maxLatency is the longest that a histogram tells apart.
const maxLatency = 2 * time.Hour

// latency is one thread's record of what it measured. Its lock is held for
// moments; the process's main thread takes it once, at the end.
type latency struct {
	mu      sync.Mutex
	kept    *hdrhistogram.Histogram
	longest time.Duration
	begun   time.Duration // when what is measured now began, or is due to
	open    bool
}

// begin starts the measurement at a time, now or later.
func (l *latency) begin(at time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun, l.open = at, true
}

// done is its end; what ends after the scenario's end stays unfinished.
func (l *latency) done(at, end time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at > end || !l.open {
		return
	}
	if l.kept == nil {
		l.kept = newHistogram()
	}
	took := max(0, at-l.begun)
	_ = l.kept.RecordValue(min(took, maxLatency).Microseconds()) // within its bounds
	l.longest, l.open = max(l.longest, took), false
}

// addTo adds a thread's record to the sum of all.
func (l *latency) addTo(r *Result, histogram *hdrhistogram.Histogram, end time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept != nil {
		histogram.Merge(l.kept)
	}
	if l.open && l.begun <= end {
		r.Unfinished++
	}
	return l.longest
}

// newHistogram keeps two digits: within 1 %.
func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, maxLatency.Microseconds(), 2)
}

// quantiles fills a result's figures.
func (r *Result) quantiles(histogram *hdrhistogram.Histogram, longest time.Duration) {
	r.Count = uint64(histogram.TotalCount())
	if r.Count == 0 {
		return
	}
	ms := func(d time.Duration) *float64 {
		v := float64(d) / 1e6
		return &v
	}
	at := func(percent float64) *float64 {
		return ms(min(longest, time.Duration(histogram.ValueAtQuantile(percent))*time.Microsecond))
	}
	r.P50, r.P90, r.P95, r.P99, r.Max = at(50), at(90), at(95), at(99), ms(longest)
}
