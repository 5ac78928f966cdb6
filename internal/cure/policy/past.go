package policy

import (
	"fmt"
	"math"
	"slices"

	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/txn"
)

// mostCorrection bounds by which factor past outcomes may move a forecast.
const mostCorrection = 4.0

// Corrections are how far the forecasts of a container's past remedies were off: the factor from forecast to outcome of
// the judged p99, by remedy. One outcome counts half, two count two thirds, and so on, because each has noise.
func Corrections(target string, past []txn.Past) map[string]float64 {
	sums, counts := map[string]float64{}, map[string]int{}
	for _, p := range past {
		e, o := p.Expected, p.Outcome
		if p.Target != target || e == nil || o == nil || o.After == nil {
			continue
		}
		low, high, got := e.RequestsP99MsLow, e.RequestsP99MsHigh, o.After.RequestsP99Ms
		if low == nil || high == nil || got == nil {
			low, high, got = e.PoolP99MsLow, e.PoolP99MsHigh, o.After.PoolP99Ms
		}
		if low == nil || high == nil || got == nil {
			continue
		}
		middle, came := math.Sqrt(*low**high), *got
		if middle <= 0 || came <= 0 {
			continue
		}
		sums[p.Remedy] += math.Log(came / middle)
		counts[p.Remedy]++
	}
	factors := map[string]float64{}
	for remedy, sum := range sums {
		limit := math.Log(mostCorrection)
		factors[remedy] = math.Exp(max(-limit, min(limit, sum/float64(counts[remedy]+1))))
	}
	return factors
}

// Corrected is a forecast whose judged figures are moved by what came of its container's past remedies; past are those of
// any containers.
func Corrected(f *forecast.Forecast, past []txn.Past) *forecast.Forecast {
	return corrected(f, Corrections(f.Path, past))
}

// corrected is a forecast whose judged figures are moved by past outcomes. The one that is given stays as it is.
func corrected(f *forecast.Forecast, factors map[string]float64) *forecast.Forecast {
	if len(factors) == 0 {
		return f
	}
	moved := *f
	moved.Rows = slices.Clone(f.Rows)
	for i := range moved.Rows {
		row := &moved.Rows[i]
		factor, known := factors[row.Remedy.Name]
		if !known || row.Judged == nil || row.HostLoad != 0 {
			continue
		}
		row.Judged = new(*row.Judged * factor)
		if r := row.JudgedRange; r != nil {
			row.JudgedRange = &forecast.Range{Low: r.Low * factor, High: r.High * factor}
		}
		row.Price += fmt.Sprintf("; moved by %.2g: its own past outcomes", factor)
	}
	return &moved
}
