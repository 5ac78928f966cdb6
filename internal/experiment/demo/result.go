package demo

// Result is a whole run, and as JSON the contract of `unthrottle demo --json`.
type Result struct {
	RunID   string  `json:"run_id"`
	Kernel  string  `json:"kernel"`         // uname -r
	CPUs    int     `json:"online_cpus"`    // of the host
	Cgroups string  `json:"cgroups"`        // "v1", "v2", "mixed"
	Scope   string  `json:"scope"`          // the cgroup below which it ran
	Quota   int     `json:"quota_cpus"`     // CPUs
	Period  float64 `json:"period_seconds"` // of the quota
	Burners int     `json:"burners"`        // threads that burn, but in Threads
	Sleep   float64 `json:"sleep_ms"`       // what the sleeper asks for
	Pinned  string  `json:"pinned_cpus"`    // kernel list: the CPUs of CPUSet and After
	// Simulated: nothing ran on this host; Kernel and CPUs are those simulated.
	Simulated bool    `json:"simulated"`
	Seconds   float64 `json:"variant_seconds"` // window asked for, per variant
	// Fair: the demo's cgroup had the ordinary weight, not the highest.
	Fair    bool     `json:"fair"`
	Before  Variant  `json:"before"`    // quota
	Threads Variant  `json:"threads"`   // quota, burners limited as by GOMAXPROCS
	CPUSet  Variant  `json:"cpuset"`    // quota kept, on Pinned
	After   Variant  `json:"after"`     // pin: on Pinned, quota off
	Verdict Verdict  `json:"verdict"`   // Before against After
	Removed int      `json:"leftovers"` // cgroups of killed runs that this start removed
	Notes   []string `json:"notes"`     // what could not be done and why; never null
	// Restored: all cgroups of the run are gone, looked at after removal.
	Restored bool `json:"restored"`
}

// Variants gives the four variants in the order in which they ran.
func (r Result) Variants() []Variant { return []Variant{r.Before, r.Threads, r.CPUSet, r.After} }

// Variant is one variant, measured over one window. A nil figure was not measured.
type Variant struct {
	Name    string  `json:"name"` // "quota", "threads", "cpuset", "pin"
	Burners int     `json:"burners"`
	CPUs    string  `json:"cpus"`       // kernel list: where it could run
	Quota   *int    `json:"quota_cpus"` // nil: no quota
	Window  float64 `json:"window_seconds"`
	// Periods is the kernel's nr_periods over the window; without a quota it stays at
	// 0.
	Periods *uint64 `json:"periods"`
	// ThrottledPeriods is nr_throttled; nil where there is no quota: the kernel
	// then does not count.
	ThrottledPeriods *uint64 `json:"throttled_periods"`
	// ThrottledSeconds is throttled_time, a sum over CPUs; nil like the above.
	ThrottledSeconds *float64 `json:"throttled_seconds"`
	CPUSeconds       *float64 `json:"cpu_seconds"` // used by the demo's cgroup
	UsedCPUs         *float64 `json:"used_cpus"`   // the same per second
	// WorkPerSecond is rounds of the burners per second, for comparison between
	// variants only; nil: too few sleeps to tell.
	WorkPerSecond *float64 `json:"work_per_second"`
	// OtherCPUs is the use of all other processes on the host, in CPUs. StolenCPUs is
	// the steal of the hypervisor, in CPUs.
	OtherCPUs  *float64 `json:"other_cpus"`
	StolenCPUs *float64 `json:"stolen_cpus"`
	Sleeps     int      `json:"sleeps"` // in the window
	// P50, P99 and Max are of the time that the sleeps really took (nearest
	// rank); nil without any sleep.
	P50 *float64 `json:"p50_ms"`
	P99 *float64 `json:"p99_ms"`
	Max *float64 `json:"max_ms"`
	// Late is the time by which all sleeps together were late: the sum of what each
	// took beyond the requested time. A percentile counts a stall once, this counts
	// how long it was. Nil without any sleep.
	Late *float64 `json:"late_seconds"`
	// Held: the last sleep was still held 5 s after the window had closed; it is
	// counted with what it had taken by then.
	Held      bool  `json:"held"`
	Histogram []Bin `json:"histogram"` // the same bins in all variants
}

// Bin is the number of sleeps that took from FromMs up to, not with, ToMs.
type Bin struct {
	FromMs float64 `json:"from_ms"`
	ToMs   float64 `json:"to_ms"`
	Count  int     `json:"count"`
}

// Verdict compares Before with After.
type Verdict struct {
	// P99Ratio is Before's p99 over After's: 5 is five times lower; nil: not
	// measured.
	P99Ratio *float64 `json:"p99_ratio"`
	// CPURatio is After's used CPUs over Before's.
	CPURatio *float64 `json:"cpu_ratio"`
	// SameCPU: CPURatio is within SameCPUShare of 1.
	SameCPU bool `json:"same_cpu"`
	// Text is one line per finding, for people; the first is the verdict.
	Text []string `json:"text"`
}
