package scenario

// Outcome v1 is what came of a scenario, simulated or real.
type Outcome struct {
	// Seconds that were looked at.
	Seconds   float64                    `json:"seconds"`
	Cgroups   map[string]CgroupOutcome   `json:"cgroups"`
	Workloads map[string]WorkloadOutcome `json:"workloads"`
}

// CgroupOutcome has the kernel's counters of one cgroup, and what they do not
// tell.
type CgroupOutcome struct {
	Periods uint64 `json:"periods"` // nr_periods
	// ActivePeriods are those of Periods with something to run. nil: not measured,
	// which a real kernel does not count.
	ActivePeriods    *uint64 `json:"active_periods"`
	ThrottledPeriods uint64  `json:"throttled_periods"` // nr_throttled
	ThrottledSeconds float64 `json:"throttled_seconds"` // a sum over CPUs
	UsageSeconds     float64 `json:"usage_seconds"`
	// StoppedSeconds is wall time in which a runnable thread was held back by
	// this cgroup's quota, an ancestor's or a descendant's. nil: not measured.
	StoppedSeconds *float64 `json:"stopped_seconds"`
	// Width tells for how long how many CPUs were in use at once. nil: not measured.
	Width []Width `json:"width"`
}

// Width is the time with exactly that many CPUs in use.
type Width struct {
	CPUs    int     `json:"cpus"`
	Seconds float64 `json:"seconds"`
}

// WorkloadOutcome is the latency of one workload: sleep-run, fib and kernel from
// wake-up to the next sleep, sleeper the whole sleep, service from the intended
// arrival to the end, gc and jvm the pauses. nil: nothing was counted, or not
// measured.
type WorkloadOutcome struct {
	Count uint64   `json:"count"`
	P50   *float64 `json:"p50_ms"`
	P90   *float64 `json:"p90_ms"`
	P95   *float64 `json:"p95_ms"`
	P99   *float64 `json:"p99_ms"`
	Max   *float64 `json:"max_ms"`
	// Refused requests of a service whose queue was full, tries of clients included.
	Refused uint64 `json:"refused"`
	// Unfinished at the end: runs, sleeps or requests that had begun.
	Unfinished uint64 `json:"unfinished"`
	// CPUSeconds used by the workload's process; nil for a collector, whose service
	// has them.
	CPUSeconds *float64 `json:"cpu_seconds"`
	// Iterations that burning threads made; nil: none burns, or it was simulated.
	Iterations *uint64 `json:"iterations"`
	// Failed requests had no good answer at any try; nil: no clients that give up.
	Failed *uint64 `json:"failed"`
	// RecoverySeconds is how long after the load's last fall it took until nine of
	// ten requests were answered within the clients' timeout again, and stayed so.
	// nil: the load does not fall, or it never recovered.
	RecoverySeconds *float64 `json:"recovery_seconds"`
	// MarkedDead is how often clients marked a shard dead, DeadSeconds for how long
	// in all; of a service in shards the sums. nil: nobody marks anything.
	MarkedDead  *uint64  `json:"marked_dead"`
	DeadSeconds *float64 `json:"dead_seconds"`
	// Classes of a service with several, by name; else nil.
	Classes map[string]ClassOutcome `json:"classes"`
}

// ClassOutcome is the latency of one class of requests.
type ClassOutcome struct {
	Count uint64   `json:"count"`
	P50   *float64 `json:"p50_ms"`
	P90   *float64 `json:"p90_ms"`
	P95   *float64 `json:"p95_ms"`
	P99   *float64 `json:"p99_ms"`
	Max   *float64 `json:"max_ms"`
}

// Workload is what a workload with these figures has of them.
func (c ClassOutcome) Workload() WorkloadOutcome {
	return WorkloadOutcome{Count: c.Count, P50: c.P50, P90: c.P90, P95: c.P95, P99: c.P99, Max: c.Max}
}
