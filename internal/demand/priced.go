package demand

import (
	"time"
)

// Priced is the least CPUs with which a remedy is no worse than what was recorded, in thousandths; see package
// forecast.
type Priced struct {
	Remedy string
	// CPUs are the least that do, Low the least that may, High the least that do in 90 % of cases; 0: none, or Why
	// says why.
	CPUs, Low, High int32
	// Judged is the latency at CPUs.
	Judged time.Duration
	Why    string
}

// Pricing is what one recording of a container tells of all remedies.
type Pricing struct {
	// Recorded is when the recording began.
	Recorded time.Time
	// Of is whose latency is judged: "requests", or the name of a pool; Quantile is which of it, and Bound what it was.
	Of       string
	Quantile float64
	Bound    time.Duration
	Remedies []Priced
}
