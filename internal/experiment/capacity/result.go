package capacity

// Result is a whole run, and as JSON the contract of `unthrottle bench service
// --json`. A figure that was not measured is nil.
type Result struct {
	Kernel    string  `json:"kernel"` // uname -r
	CPUs      int     `json:"cpus"`   // that the bench could use
	Limit     int     `json:"limit_cpus"`
	Shape     string  `json:"shape"` // "" with a URL
	About     string  `json:"about"`
	URL       string  `json:"url"`
	Objective string  `json:"objective"` // "p99<50ms"
	Quantile  float64 `json:"quantile"`  // 0.99
	BoundMs   float64 `json:"bound_ms"`  // of that quantile
	Errors    float64 `json:"errors"`    // share of requests that may fail
	Repeats   int     `json:"repeats"`   // searches of each remedy
	Step      float64 `json:"step_seconds"`
	Seed      uint64  `json:"seed"` // of the first repeat
	Fair      bool    `json:"fair"`
	RealTime  bool    `json:"generator_real_time"`
	// BackgroundToo: some requests of the load are not in the objective, nor in the
	// latencies.
	BackgroundToo bool     `json:"background_requests"`
	Remedies      []Remedy `json:"remedies"`
	Seconds       float64  `json:"seconds"` // that it took
	Notes         []string `json:"notes"`   // never nil
}

// Remedy is what one remedy came to.
type Remedy struct {
	Remedy string `json:"remedy"`
	// MaxLoad is the highest load that met the objective, the median of the
	// repeats; nil: none did.
	MaxLoad *float64 `json:"max_load_rps"`
	// Loads of the repeats; 0 where none was met.
	Loads []float64 `json:"loads_rps"`
	// Ratio of MaxLoad to that of the plain quota, with an interval of 95 %; nil for
	// the quota itself and without one.
	Ratio     *float64 `json:"ratio"`
	RatioLow  *float64 `json:"ratio_low"`
	RatioHigh *float64 `json:"ratio_high"`
	// CPUsGranted is what it may use on average; nil with a URL.
	CPUsGranted *float64 `json:"cpus_granted"`
	Points      []Point  `json:"points"`
	Curve       []Sample `json:"curve"` // every step of the searches, by load
	Noisy       bool     `json:"noisy"`
	Why         []string `json:"why_noisy"` // never nil
}

// Sample is one step of a search.
type Sample struct {
	Load float64  `json:"load_rps"`
	At   *float64 `json:"quantile_ms"` // the objective's quantile, whatever its sample
	Met  bool     `json:"met"`
}

// Point is the service at one load, all repeats together.
type Point struct {
	OfBest float64 `json:"of_best"` // share of the best load at equal CPUs
	Load   float64 `json:"load_rps"`
	// Quantiles with at least 10 samples beyond them, in ms.
	P50      *float64 `json:"p50_ms"`
	P90      *float64 `json:"p90_ms"`
	P99      *float64 `json:"p99_ms"`
	P999     *float64 `json:"p999_ms"`
	Max      *float64 `json:"max_ms"`
	Requests uint64   `json:"requests"`
	Failed   uint64   `json:"failed"`
	Met      bool     `json:"met"`
	// Of the cgroup. StoppedLow and StoppedHigh bound the share of wall time in
	// which a runnable thread was held back.
	CPUUsed          *float64 `json:"cpu_used"`
	Periods          *uint64  `json:"periods"`
	ThrottledPeriods *uint64  `json:"throttled_periods"`
	StoppedLow       *float64 `json:"stopped_low"`
	StoppedHigh      *float64 `json:"stopped_high"`
	Switches         *float64 `json:"context_switches_per_second"`
	Histogram        []Bin    `json:"histogram"`
}

// Bin is the requests that took from FromMs up to ToMs.
type Bin struct {
	FromMs float64 `json:"from_ms"`
	ToMs   float64 `json:"to_ms"`
	Count  uint64  `json:"count"`
}
