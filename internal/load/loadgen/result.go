package loadgen

import (
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Result is what a generator has measured.
type Result struct {
	// Phases, one for each of the plan's; Streams of a phase that is not measured
	// are empty.
	Phases []PhaseResult
	// Timeline over the whole plan, by intended time, one slot per [Slot].
	Timeline []SlotResult
	// Shards, one for each of the plan's.
	Shards []ShardResult
	// Own is what the generator says of itself.
	Own Own
	// FirstFailure is what the first failed try met; "" if none has.
	FirstFailure string
}

// PhaseResult is one phase.
type PhaseResult struct{ Streams []StreamResult }

// StreamResult is the requests of one stream whose intended time lies in one
// phase. Intended is the sum of the next four; Tries counts retries too.
type StreamResult struct {
	Intended   uint64
	Answered   uint64 // with a good answer, at whichever try
	Failed     uint64 // without one: refused, timed out or broken at every try
	Unfinished uint64 // still on their way at the end
	Unsent     uint64 // more than MaxInFlight were on their way

	Tries    uint64
	Refused  uint64 // tries
	TimedOut uint64 // tries
	// Latency of all requests but the unsent ones: an unfinished or failed one
	// counts with what it had taken, and would have taken more.
	Latency Latency
}

// Errors is how many requests had no good answer.
func (s StreamResult) Errors() uint64 { return s.Failed + s.Unfinished + s.Unsent }

// Slot is the width of the timeline's slots.
const Slot = 250 * time.Millisecond

// SlotResult is a slot of the timeline.
type SlotResult struct {
	Intended uint32
	Good     uint32 // answered well within Plan.Good
	Tries    uint32 // sent in this slot, first ones and retries
}

// Own is what the generator used, and how late it was in the measured phases.
type Own struct {
	CPUSeconds float64
	Seconds    float64
	Sends      uint64
	// LateSends were sent more than LateAfter (the plan's) behind their intended
	// time, for want of CPU of the generator's own.
	LateSends uint64
	LateAfter time.Duration
	LateP99   time.Duration
	LateMax   time.Duration
	// RealTime: it had real-time priority.
	RealTime bool
}

// Of a generator that keeps up at most MaxLate of the sendings are late, and it
// uses at most MaxBusy of a CPU.
const (
	maxLate = 0.01
	maxBusy = 0.8
)

// Saturated says why the generator was the bottleneck; "" if it was not.
func (o Own) Saturated() string {
	switch {
	case o.Sends > 0 && float64(o.LateSends) > maxLate*float64(o.Sends):
		return fmt.Sprintf("the load generator was late by more than %v with %d of %d requests (p99 %v): it lacked "+
			"CPU itself, so nothing is said of the service; lower the load, or leave it a CPU of its own",
			o.LateAfter, o.LateSends, o.Sends, o.LateP99.Round(10*time.Microsecond))
	case o.Seconds > 0 && o.CPUSeconds > maxBusy*o.Seconds:
		return fmt.Sprintf("the load generator used %.2f CPUs: it was at its own end, so nothing is said of the "+
			"service; lower the load", o.CPUSeconds/o.Seconds)
	}
	return ""
}

// Latency is a distribution of latencies, in µs.
type Latency struct{ h *hdrhistogram.Histogram }

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, maxLatency.Microseconds(), 3)
}

// Add adds one; a longer one than MaxLatency counts as MaxLatency.
func (l *Latency) Add(d time.Duration) {
	if l.h == nil {
		l.h = newHistogram()
	}
	// Within the bounds nothing can fail.
	_ = l.h.RecordValue(min(max(1, d.Microseconds()), maxLatency.Microseconds()))
}

// Merge adds all of other.
func (l *Latency) Merge(other Latency) {
	if other.h == nil {
		return
	}
	if l.h == nil {
		l.h = newHistogram()
	}
	l.h.Merge(other.h)
}

// Count is how many there are.
func (l Latency) Count() uint64 {
	if l.h == nil {
		return 0
	}
	return uint64(l.h.TotalCount())
}

// Quantile gives the q-quantile, 0 to 1, if at least beyond values lie above
// it: with fewer it says little.
func (l Latency) Quantile(q float64, beyond int) (time.Duration, bool) {
	if n := l.Count(); n == 0 || float64(n)*(1-q) < float64(beyond)-1e-9 {
		return 0, false
	}
	return time.Duration(l.h.ValueAtQuantile(100*q)) * time.Microsecond, true
}

// Max is the longest, to three digits; false: there is none.
func (l Latency) Max() (time.Duration, bool) {
	if l.Count() == 0 {
		return 0, false
	}
	return time.Duration(l.h.Max()) * time.Microsecond, true
}

// Bin is how many lie from From to To.
type Bin struct {
	From, To time.Duration
	Count    uint64
}

// Bins gives the non-empty bins, as fine as they were kept.
func (l Latency) Bins() []Bin {
	var bins []Bin
	if l.h == nil {
		return nil
	}
	for _, b := range l.h.Distribution() {
		if b.Count > 0 {
			bins = append(bins, Bin{time.Duration(b.From) * time.Microsecond, time.Duration(b.To) * time.Microsecond, uint64(b.Count)})
		}
	}
	return bins
}

// MarshalText writes HdrHistogram's own compressed form (V2), base64.
func (l Latency) MarshalText() ([]byte, error) {
	if l.h == nil {
		return nil, nil
	}
	return l.h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
}

// UnmarshalText reads what MarshalText wrote.
func (l *Latency) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		l.h = nil
		return nil
	}
	h, err := hdrhistogram.Decode(text)
	if err != nil {
		return fmt.Errorf("a histogram: %w", err)
	}
	l.h = newHistogram()
	l.h.Merge(h)
	return nil
}
