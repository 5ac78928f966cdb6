package scenario

// Outcome v1 is the result of a scenario, simulated or real.
type Outcome struct {
	// Seconds is the measured time.
	Seconds   float64                    `json:"seconds"`
	Cgroups   map[string]CgroupOutcome   `json:"cgroups"`
	Workloads map[string]WorkloadOutcome `json:"workloads"`
}

// CgroupOutcome has the kernel's counters of one cgroup, and figures beyond them.
type CgroupOutcome struct {
	Periods uint64 `json:"periods"` // nr_periods
	// ActivePeriods counts the periods with runnable threads. nil: not measured, because a kernel does not
	// count it.
	ActivePeriods    *uint64 `json:"active_periods"`
	ThrottledPeriods uint64  `json:"throttled_periods"` // nr_throttled
	ThrottledSeconds float64 `json:"throttled_seconds"` // a sum over CPUs
	UsageSeconds     float64 `json:"usage_seconds"`
	// StoppedSeconds is the wall time in which a quota held a runnable thread of the cgroup back: its own, an
	// ancestor's or a descendant's. nil: not measured.
	StoppedSeconds *float64 `json:"stopped_seconds"`
	// Width has the time by CPUs in use at once. nil: not measured.
	Width []Width `json:"width"`
}

// Width is the time with exactly that many CPUs in use.
type Width struct {
	CPUs    int     `json:"cpus"`
	Seconds float64 `json:"seconds"`
}

// WorkloadOutcome is the latency of one workload. Sleep-run, fib and kernel
// have the time from wake-up to the next sleep, and a sleeper has the whole sleep. A service has the time
// from the intended arrival to the end, and gc and jvm have the pause. nil: nothing was counted, or not measured.
type WorkloadOutcome struct {
	Latencies
	// Refused counts requests to a full queue of a service, with the tries of clients.
	Refused uint64 `json:"refused"`
	// Unfinished counts the runs, sleeps or requests that had begun and not ended.
	Unfinished uint64 `json:"unfinished"`
	// CPUSeconds is the CPU time of the workload's process; nil for a collector, whose service has it.
	CPUSeconds *float64 `json:"cpu_seconds"`
	// Iterations counts those of burning threads; nil: none burns, or it was simulated.
	Iterations *uint64 `json:"iterations"`
	// Failed counts requests without a good answer at any try; nil: clients do not give up.
	Failed *uint64 `json:"failed"`
	// RecoverySeconds is the time from the load's last fall until nine of ten requests were answered within
	// the clients' timeout, and stayed so. nil: the load does not fall, or the service never recovered.
	RecoverySeconds *float64 `json:"recovery_seconds"`
	// MarkedDead is how often clients marked a shard dead, DeadSeconds for how long in all. A service in
	// shards has the sums. nil: clients do not mark.
	MarkedDead  *uint64  `json:"marked_dead"`
	DeadSeconds *float64 `json:"dead_seconds"`
	// Classes of a service with several, by name; else nil.
	Classes map[string]Latencies `json:"classes"`
}

// Latencies are a number of times and their quantiles; nil: nothing was counted, or not measured.
type Latencies struct {
	Count uint64   `json:"count"`
	P50   *float64 `json:"p50_ms"`
	P90   *float64 `json:"p90_ms"`
	P95   *float64 `json:"p95_ms"`
	P99   *float64 `json:"p99_ms"`
	Max   *float64 `json:"max_ms"`
}
