package forecast

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/unthrottle/unthrottle/internal/stats"
)

// Compared is a forecast of a real service beside what came when its remedy was applied. The program met the service for the first time: no
// rule was made by it.
type Compared struct {
	Service string `json:"service"`
	Remedy  string `json:"remedy"`
	// ForecastMs is the judged latency as forecast, LowMs to HighMs its interval by that forecast alone, CameMs what a
	// client outside measured.
	ForecastMs float64 `json:"forecast_ms"`
	LowMs      float64 `json:"low_ms"`
	HighMs     float64 `json:"high_ms"`
	CameMs     float64 `json:"came_ms"`
}

// compared is what `make truth` has of the services in bench/truth/first.jsonl.gz.
//
//go:embed compared.json
var compared []byte

// FirstMet are the forecasts of services that the program met for the first time.
func FirstMet() []Compared {
	var pairs []Compared
	if err := json.Unmarshal(compared, &pairs); err != nil {
		panic(fmt.Sprintf("forecast: compared.json: %v", err)) // the file is part of the program, and a test reads it
	}
	return pairs
}

const (
	// closeShare is how far a forecast may be from what comes, as a share of that, and still be close to it.
	closeShare = 0.25
	// leastAlike is how many forecasts of a kind tell how far such forecasts are off.
	leastAlike = 8
	// outside is the share of what came that may lie beyond each end of the shown interval, of the services that it is made by.
	outside = 0.1
)

// Shown is the share of real results that lie within [Row.JudgedError], of services that had no part in it: less than
// Coverage, because services
// differ by more than the moments of one recording do. 80 % would take intervals from a seventieth to seventy times.
const Shown = 0.7

// Close reports whether a forecast is within a quarter of what came.
func Close(forecast, came float64) bool { return math.Abs(forecast/came-1) <= closeShare }

// Known says how far forecasts like one were off, on services that no rule was made by.
type Known struct {
	// Close of All came within a quarter.
	Close, All int
	// low and high are how far what came lay beyond the ends of the interval, on a logarithmic scale; outside of them it lay further.
	low, high float64
}

// Rare reports whether so few came within a quarter that the forecast tells an order and no latency.
func (k Known) Rare() bool { return 2*k.Close < k.All || k.All == 0 }

// KnownOf is what is known of forecasts of a remedy, by comparisons: of the same remedy, else of all remedies. Leaving it is no remedy.
func KnownOf(pairs []Compared, r Remedy) Known {
	alike := func(same func(name string) bool) (found []Compared) {
		for _, c := range pairs {
			if same(c.Remedy) {
				found = append(found, c)
			}
		}
		return found
	}
	found := alike(func(name string) bool { return name == r.Name })
	if len(found) < leastAlike && r.Name != None {
		found = alike(func(name string) bool { return name != None })
	}
	k := Known{All: len(found)}
	var low, high []float64
	for _, c := range found {
		if Close(c.ForecastMs, c.CameMs) {
			k.Close++
		}
		low, high = append(low, max(0, math.Log(c.LowMs/c.CameMs))), append(high, max(0, math.Log(c.CameMs/c.HighMs)))
	}
	if k.All > 0 {
		slices.Sort(low)
		slices.Sort(high)
		k.low, k.high = stats.Rank(low, 1-outside), stats.Rank(high, 1-outside)
	}
	return k
}

// JudgedError is what people are shown as the error of Judged: JudgedRange, widened by how far forecasts like it were
// off on services that no rule
// was made by, so that Shown of what comes lies within. Rows of one forecast are compared by JudgedRange: they are off
// together. nil: it is not known.
func (r *Row) JudgedError() *Range {
	if r.JudgedRange == nil || r.Known == nil {
		return r.JudgedRange
	}
	return r.Known.widened(*r.JudgedRange)
}

// widened is a range with what forecasts like it were off.
func (k Known) widened(r Range) *Range {
	return &Range{r.Low / math.Exp(k.low), r.High * math.Exp(k.high)}
}
