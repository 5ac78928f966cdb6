package apply

import "time"

// Figures are what a change is judged by; nil is not measured or not foretold.
type Figures struct {
	// StoppedPerSecondLow and -High bound the stopped time, in seconds per second.
	StoppedPerSecondLow  *float64 `json:"stopped_per_second_low,omitempty"`
	StoppedPerSecondHigh *float64 `json:"stopped_per_second_high,omitempty"`
	UsedCPUs             *float64 `json:"used_cpus,omitempty"`
	P50Ms                *float64 `json:"p50_ms,omitempty"`
	P99Ms                *float64 `json:"p99_ms,omitempty"`
	MaxMs                *float64 `json:"max_ms,omitempty"`
}

// Expected is a forecast: for each figure the interval it is expected in; nil is not foretold.
type Expected struct {
	StoppedPerSecondLow  *float64 `json:"stopped_per_second_low,omitempty"`
	StoppedPerSecondHigh *float64 `json:"stopped_per_second_high,omitempty"`
	UsedCPUsLow          *float64 `json:"used_cpus_low,omitempty"`
	UsedCPUsHigh         *float64 `json:"used_cpus_high,omitempty"`
	P99MsLow             *float64 `json:"p99_ms_low,omitempty"`
	P99MsHigh            *float64 `json:"p99_ms_high,omitempty"`
}

// Outcome is what came of a change.
type Outcome struct {
	// Verdict is "better", "unverified", "worse" or what else the caller says.
	Verdict string `json:"verdict"`
	// Before and After were measured; nil is not measured.
	Before *Figures  `json:"before,omitempty"`
	After  *Figures  `json:"after,omitempty"`
	Note   string    `json:"note,omitempty"`
	At     time.Time `json:"at"`
}
