package realrun

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
	"github.com/unthrottle/unthrottle/internal/scenario"
)

// served is a service's outcome.
func served(w *scenario.Workload, r loadgen.Result) scenario.WorkloadOutcome {
	classes := make([]loadgen.StreamResult, len(w.Server.Classes))
	var result loadgen.StreamResult
	for _, phase := range r.Phases {
		for i, s := range phase.Streams {
			add(&classes[i], s)
			add(&result, s)
		}
	}
	out := scenario.WorkloadOutcome{Latencies: figures(result)}
	out.Refused, out.Unfinished = result.Refused, result.Unfinished+result.Unsent
	if w.Server.Timeout > 0 {
		out.Failed = &result.Failed
		out.RecoverySeconds = recovery(w.Phases, r.Timeline)
	}
	if len(classes) > 1 {
		out.Classes = map[string]scenario.Latencies{}
		for i, c := range classes {
			out.Classes[w.Server.Classes[i].Name] = figures(c)
		}
	}
	return out
}

// add adds b's requests to a's.
func add(a *loadgen.StreamResult, b loadgen.StreamResult) {
	a.Answered += b.Answered
	a.Failed += b.Failed
	a.Unfinished += b.Unfinished
	a.Unsent += b.Unsent
	a.Refused += b.Refused
	a.Latency.Merge(b.Latency)
}

// figures are the latencies of a stream.
func figures(s loadgen.StreamResult) scenario.Latencies {
	at := func(q float64) *float64 {
		d, ok := s.Latency.Quantile(q, 0)
		return milliseconds(d, ok)
	}
	out := scenario.Latencies{Count: s.Answered, P50: at(0.5), P90: at(0.9), P95: at(0.95), P99: at(0.99)}
	longest, ok := s.Latency.Max()
	out.Max = milliseconds(longest, ok)
	return out
}

func milliseconds(d time.Duration, ok bool) *float64 {
	if !ok {
		return nil
	}
	v := float64(d) / 1e6
	return &v
}

// goodShare is how many of a second's requests must be answered in time for the
// service to count as recovered.
const goodShare = 0.9

// recovery is the time from the load's last fall until every further second was good.
// nil: the load does not fall, or the last second was not good.
func recovery(phases []scenario.Phase, timeline []loadgen.SlotResult) *float64 {
	fall, at := time.Duration(-1), time.Duration(0)
	for i, p := range phases {
		if i > 0 && p.Factor < phases[i-1].Factor {
			fall = at
		}
		at += p.For
	}
	if fall < 0 {
		return nil
	}
	const perSecond = int(time.Second / loadgen.Slot)
	first := int(fall / loadgen.Slot)
	good := len(timeline) // from this slot on all seconds are good
	for from := len(timeline) - perSecond; from >= first; from-- {
		intended, answered := uint32(0), uint32(0)
		for _, slot := range timeline[from : from+perSecond] {
			intended += slot.Intended
			answered += slot.Good
		}
		if float64(answered) < goodShare*float64(intended) {
			break
		}
		good = from
	}
	if good >= len(timeline) {
		return nil
	}
	seconds := float64(good-first) * loadgen.Slot.Seconds()
	return &seconds
}
