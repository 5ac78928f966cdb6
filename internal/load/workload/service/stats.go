package service

import "slices"

// Stats is what a service has counted.
type Stats struct {
	Served  uint64 `json:"served"`
	Refused uint64 `json:"refused"`
	// Unknown requests were of no class.
	Unknown uint64 `json:"unknown"`
	// Lost answers found their connection closed or full.
	Lost uint64 `json:"lost"`
	// LongestQueues is the most that have waited at once, by pool.
	LongestQueues map[string]int `json:"longest_queues"`
	GC            GCStats        `json:"gc"`
}

// maxPauses bounds GCStats.PausesMs.
const maxPauses = 10_000

// GCStats is what the collector has counted.
type GCStats struct {
	Collections   int     `json:"collections"`
	PausedSeconds float64 `json:"paused_seconds"` // wall time in which the service waited
	LongestMs     float64 `json:"longest_ms"`
	// PausesMs are the first maxPauses of them.
	PausesMs []float64 `json:"pauses_ms"`
}

func (s *server) stats() Stats {
	st := Stats{
		Served: s.served.Load(), Refused: s.refused.Load(), Unknown: s.unknown.Load(), Lost: s.lost.Load(),
		LongestQueues: map[string]int{},
	}
	for _, p := range s.pools {
		longest := 0
		for _, q := range p.queues {
			q.mu.lock()
			longest = max(longest, q.longest)
			q.mu.unlock()
		}
		st.LongestQueues[p.spec.Name] = longest
	}
	if s.gc != nil {
		s.gc.statsMu.lock()
		st.GC = s.gc.stats
		st.GC.PausesMs = slices.Clone(st.GC.PausesMs)
		s.gc.statsMu.unlock()
	}
	return st
}
