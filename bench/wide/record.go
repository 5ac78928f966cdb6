package main

import (
	"math"
	"slices"

	"github.com/unthrottle/unthrottle/internal/experiment/capacity"
	"github.com/unthrottle/unthrottle/internal/load/loadgen"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/test/lab/slow"
	"github.com/unthrottle/unthrottle/test/study"
)

// record is a piece that was measured, with what the guest was worth meanwhile. A line of the file of records is one.
type record struct {
	study.Made
	Piece       piece       `json:"piece"`
	Release     string      `json:"release"` // of the guest's kernel
	Calibration slow.Result `json:"calibration"`
	// One of these is set.
	Point *figures    `json:"point,omitempty"`
	Fix   *fixFigures `json:"fix,omitempty"`
	// Served is of a real service.
	Served *servedFigures `json:"served,omitempty"`
	// Of kinds that are no longer measured.
	Forecast *forecasts          `json:"forecast,omitempty"`
	Narrow   *narrowFigure       `json:"narrow,omitempty"`
	Outcome  *scenario.Outcome   `json:"outcome,omitempty"`
	Costs    *scenario.WakeCosts `json:"wake_costs,omitempty"`
}

// forecasts are what forecast said of a recording of the plain quota.
type forecasts struct {
	Load float64 `json:"load_rps"` // when it was recorded
	Rows []struct {
		Remedy string `json:"remedy"`
		// BreaksAt is the load, as a multiple of the recorded one, from which on the objective is missed; nil: at none up to
		// forecastTo.
		BreaksAt *float64 `json:"breaks_at"`
		Modelled bool     `json:"modelled"`
	} `json:"rows"`
	Why string `json:"why,omitempty"` // there are none
}

// forecastTo is up to which multiple of the recorded load the forecasts looked.
const forecastTo = 4

// narrowFigure is what a figure of narrow came to.
type narrowFigure struct {
	Value float64 `json:"value"`
	Met   bool    `json:"met"`
}

// figures of a point. A figure that was not measured is nil.
type figures struct {
	Load      float64  `json:"load_rps"`
	Met       bool     `json:"met"`
	Requests  uint64   `json:"requests"`
	Failed    uint64   `json:"failed"`
	P50       *float64 `json:"p50_ms"`
	P99       *float64 `json:"p99_ms"` // whatever the sample
	Max       *float64 `json:"max_ms"`
	CPUUsed   *float64 `json:"cpu_used"`
	Periods   *uint64  `json:"periods"`
	Throttled *uint64  `json:"throttled_periods"`
	Switches  *float64 `json:"switches_per_second"`
	// Latencies are how many requests took about how long, so that repeats add up: slot i holds those up to slotMs(i).
	Latencies []slotCount `json:"latencies"`
	// Widest and AtCap are what the scheduler of narrow counted; nil: it was not in force.
	Widest *int     `json:"widest,omitempty"`
	AtCap  *float64 `json:"at_cap_seconds,omitempty"`
	// LateP99 is how late the generator itself sent, which the latencies have in them. Others are the CPUs that others used. Nil: an
	// older piece does not have it.
	LateP99 *float64 `json:"late_p99_ms,omitempty"`
	Others  *float64 `json:"others_cpu,omitempty"`
}

// slotCount is [slot, requests].
type slotCount [2]int

// slotGrowth is how much wider than the one before a slot is: a quantile of many repeats is that exact.
const slotGrowth = 1.03

func slotMs(i int) float64 { return 0.01 * math.Pow(slotGrowth, float64(i)) }

func slotOf(ms float64) int {
	return max(0, int(math.Ceil(math.Log(ms/0.01)/math.Log(slotGrowth)-1e-9)))
}

// figuresOf takes a measured point.
func figuresOf(m capacity.Measured) *figures {
	p := m.Point
	f := &figures{Load: p.Load, Met: p.Met, Requests: p.Requests, Failed: p.Failed, P50: quantileMs(m.Latency, 0.5),
		P99: quantileMs(m.Latency, 0.99),
		Max: p.Max, CPUUsed: p.CPUUsed, Periods: p.Periods, Throttled: p.ThrottledPeriods, Switches: p.Switches,
		LateP99: new(float64(m.LateP99.Microseconds()) / 1000), Others: m.Others}
	f.Latencies = slotsOf(m.Latency)
	return f
}

// slotsOf are latencies in slots.
func slotsOf(l loadgen.Latency) (slots []slotCount) {
	counts := map[int]int{}
	for _, b := range l.Bins() {
		counts[slotOf(float64((b.From+b.To)/2)/1e6)] += int(b.Count)
	}
	for i, n := range counts {
		slots = append(slots, slotCount{i, n})
	}
	slices.SortFunc(slots, func(a, b slotCount) int { return a[0] - b[0] })
	return slots
}

func quantileMs(l loadgen.Latency, q float64) *float64 {
	at, ok := l.Quantile(q, 0)
	if !ok {
		return nil
	}
	return new(float64(at.Microseconds()) / 1000)
}

// pooled is the quantile of several points' latencies, nil where fewer than 10 requests lie beyond it.
func pooled(points []*figures, q float64) *float64 {
	const beyond = 10
	counts, all := map[int]int{}, 0
	for _, p := range points {
		for _, s := range p.Latencies {
			counts[s[0]] += s[1]
			all += s[1]
		}
	}
	if float64(all)*(1-q) < beyond {
		return nil
	}
	var slots []int
	for i := range counts {
		slots = append(slots, i)
	}
	slices.Sort(slots)
	sum := 0
	for _, i := range slots {
		if sum += counts[i]; float64(sum) >= q*float64(all) {
			return new(slotMs(i))
		}
	}
	return nil
}

// records are the pieces that were measured.
type records struct {
	study.Lines[record]
	// failed are how often pieces failed in this run, though the host was quiet enough.
	failed map[piece]int
	// asked are the pieces that were looked for; nil: nobody wants to know.
	asked map[piece]bool
}

// mostFailed is how often a piece may fail in a run before it is left for another one.
const mostFailed = 2

// wanted tells whether a piece is to be measured.
func (r *records) wanted(p piece) bool { return !r.has(p) && r.failed[p] < mostFailed }

// readRecords reads a file of records; none without it.
func readRecords(file string) (*records, error) {
	lines, err := study.ReadLines[record](file)
	if err != nil {
		return nil, err
	}
	return &records{Lines: *lines, failed: map[piece]int{}}, nil
}

// find is a piece's record, nil where it is not measured.
func (r *records) find(p piece) *record {
	if r.asked != nil {
		r.asked[p] = true
	}
	if i := slices.IndexFunc(r.All, func(one record) bool { return one.Piece == p }); i >= 0 {
		return &r.All[i]
	}
	return nil
}

func (r *records) has(p piece) bool { return r.find(p) != nil }
