package txn

import "time"

// Figures are what a change is judged by; nil is not measured or not forecast.
type Figures struct {
	// StoppedPerSecondLow and -High bound the stopped time, in seconds per second.
	StoppedPerSecondLow  *float64 `json:"stopped_per_second_low,omitempty"`
	StoppedPerSecondHigh *float64 `json:"stopped_per_second_high,omitempty"`
	UsedCPUs             *float64 `json:"used_cpus,omitempty"`
	P50Ms                *float64 `json:"p50_ms,omitempty"`
	P99Ms                *float64 `json:"p99_ms,omitempty"`
	MaxMs                *float64 `json:"max_ms,omitempty"`
	// PoolP99Ms is the 99th percentile of the responses of the thread pool that was judged, by the probe.
	PoolP99Ms *float64 `json:"pool_p99_ms,omitempty"`
	// RequestsP99Ms is that of the judged requests, where requests were seen.
	RequestsP99Ms *float64 `json:"requests_p99_ms,omitempty"`
}

// Used is how many CPUs were used; 0: there are no figures, or they do not say.
func (f *Figures) Used() float64 {
	if f == nil || f.UsedCPUs == nil {
		return 0
	}
	return *f.UsedCPUs
}

// Expected is a forecast: for each figure the interval it is expected in; nil is not forecast.
type Expected struct {
	StoppedPerSecondLow  *float64 `json:"stopped_per_second_low,omitempty"`
	StoppedPerSecondHigh *float64 `json:"stopped_per_second_high,omitempty"`
	UsedCPUsLow          *float64 `json:"used_cpus_low,omitempty"`
	UsedCPUsHigh         *float64 `json:"used_cpus_high,omitempty"`
	P99MsLow             *float64 `json:"p99_ms_low,omitempty"`
	P99MsHigh            *float64 `json:"p99_ms_high,omitempty"`
	PoolP99MsLow         *float64 `json:"pool_p99_ms_low,omitempty"`
	PoolP99MsHigh        *float64 `json:"pool_p99_ms_high,omitempty"`
	RequestsP99MsLow     *float64 `json:"requests_p99_ms_low,omitempty"`
	RequestsP99MsHigh    *float64 `json:"requests_p99_ms_high,omitempty"`
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
	// Counted are the kernel's counters of the target as it was judged; nil: they could not be read, or it was in force for a turn only.
	Counted *Counted `json:"counted,omitempty"`
}

// Deviation compares one forecast figure with what came.
type Deviation struct {
	// Figure is "stopped_per_second", "used_cpus", "p99_ms", "pool_p99_ms" or "requests_p99_ms".
	Figure string `json:"figure"`
	// Low and High are the interval expected, Got is what was measured: its middle, where it is an interval itself.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	Got  float64 `json:"got"`
	// Miss is how far Got lies outside, 0 inside; below 0 when less came than expected.
	Miss float64 `json:"miss"`
}

// Deviations compares a forecast with its outcome, for each figure that was forecast and measured.
func Deviations(e *Expected, o *Outcome) []Deviation {
	deviations := []Deviation{}
	if e == nil || o == nil || o.After == nil {
		return deviations
	}
	add := func(figure string, low, high, got *float64) {
		if low == nil || high == nil || got == nil {
			return
		}
		d := Deviation{Figure: figure, Low: *low, High: *high, Got: *got}
		switch {
		case d.Got < d.Low:
			d.Miss = d.Got - d.Low
		case d.Got > d.High:
			d.Miss = d.Got - d.High
		}
		deviations = append(deviations, d)
	}
	add("stopped_per_second", e.StoppedPerSecondLow, e.StoppedPerSecondHigh,
		middle(o.After.StoppedPerSecondLow, o.After.StoppedPerSecondHigh))
	add("used_cpus", e.UsedCPUsLow, e.UsedCPUsHigh, o.After.UsedCPUs)
	add("p99_ms", e.P99MsLow, e.P99MsHigh, o.After.P99Ms)
	add("pool_p99_ms", e.PoolP99MsLow, e.PoolP99MsHigh, o.After.PoolP99Ms)
	add("requests_p99_ms", e.RequestsP99MsLow, e.RequestsP99MsHigh, o.After.RequestsP99Ms)
	return deviations
}

func middle(low, high *float64) *float64 {
	if low == nil || high == nil {
		return nil
	}
	m := (*low + *high) / 2
	return &m
}
