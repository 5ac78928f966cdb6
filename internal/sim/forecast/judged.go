package forecast

import (
	"fmt"
	"math"
	"time"
)

// Judged says whose responses decide between remedies, and which quantile of them.
type Judged struct {
	// Pool is the name of a thread pool; "": all pools together.
	Pool string
	// Quantile is 0 to 1; 1 is the longest response.
	Quantile float64
}

// judge sets the figure by which remedies are compared: that of the user's objective, else the p99 of the pool
// that suffers.
func (m *maker) judge() {
	judged := Judged{Quantile: 0.99}
	if o := m.o.Objective; o != nil {
		judged = Judged{o.Pool, o.Quantile}
	} else {
		pool := m.suffers()
		if pool < 0 {
			return
		}
		judged.Pool = m.l.Pools[pool].Name
	}
	m.f.Judged = &judged
	var check SelfCheck
	for i := range m.f.Rows {
		if m.f.Rows[i].Remedy.Name == None && m.f.Rows[i].HostLoad == 0 {
			check = m.l.selfCheck(m.f.Rows[i].Figures, m.l.mergedTimes(m.all[i], judged.Pool).Response, judged.Pool)
		}
	}
	for i, results := range m.all {
		if results == nil {
			continue
		}
		row := &m.f.Rows[i]
		row.Judged = m.l.mergedTimes(results, judged.Pool).Response.Quantile(judged.Quantile)
		if row.Remedy.Modelled() {
			continue
		}
		of, off := check.at(judged.Quantile, row.Remedy.tested(m.o.Calibration).ifTested())
		row.JudgedRange = m.l.rangeOf(results, judged.Pool, judged.Quantile, of, off)
	}
}

// TooFew says what was lacking where Judged is nil, and what to do.
func (f *Forecast) TooFew() string {
	if f.MostResponses >= minRuns {
		return "too few wake-ups by clients, devices and timers were recorded to judge latency by; record for longer (--for)"
	}
	longer := "--for"
	if n := f.MostResponses; n > 0 {
		longer = fmt.Sprintf("--for %v", (f.Window*minRuns/time.Duration(n) + time.Second - 1).Truncate(time.Second))
	}
	return fmt.Sprintf("too few responses were recorded to judge latency by: %d of one pool are needed, and %d is the most; record for longer (%s)",
		minRuns, f.MostResponses, longer)
}

// at is what the self-check and earlier forecasts were off at a quantile.
func (c SelfCheck) at(quantile float64, tested Residual) (of Figure, off float64) {
	switch {
	case quantile > 0.99: // beyond p99 only the longest response has an error
		return c.Max, tested.Max
	case quantile <= 0.5:
		return c.P50, tested.P50
	}
	return c.P99, tested.P99
}

// The bounds of a self-check: how far a replay may be from its recording. A larger difference means that the
// replay is of something else.
const (
	failedRatio   = 2.0  // of a p99, of the stopped time, of the throttled periods
	failedMs      = 2.0  // and the p99 differs by this at least
	failedMedian  = 5.0  // of a p50, if the middle halves do not overlap: of two kinds of runs, a few more of one move it far
	failedP50Ms   = 1.0  // and the p50 differs by this at least
	failedStopped = 0.1  // and the stopped time by these seconds
	failedPeriods = 5.0  // and the throttled periods by this many
	failedCPU     = 0.25 // of the CPU time
)

// Failed says in which figure the replay of the unchanged recording is not what was recorded; "": in none.
func (c SelfCheck) Failed() string {
	far := func(f Figure, least, ratio float64) bool {
		if f.Recorded == nil || f.Replayed == nil || f.apart() < least {
			return false
		}
		low, high := math.Min(*f.Recorded, *f.Replayed), math.Max(*f.Recorded, *f.Replayed)
		return high > ratio*low
	}
	switch {
	case far(c.P99, failedMs, failedRatio):
		return "p99"
	case c.shifted && far(c.P50, failedP50Ms, failedMedian):
		return "p50"
	case far(c.Stopped, failedStopped, failedRatio):
		return "stopped time"
	case far(c.ThrottledPeriods, failedPeriods, failedRatio):
		return "throttled periods"
	case c.CPU.Recorded != nil && c.CPU.apart() > failedCPU**c.CPU.Recorded:
		return "CPU time"
	}
	return ""
}
