package demand

import "time"

// SchemaVersion is that of Row. A change that older readers would misread counts it up; docs/reference/fleet-rows.md has the
// columns, and a test compares them.
const SchemaVersion = 1

// SlotLength is the stretch of time that a row is of.
const SlotLength = 5 * time.Minute

// Row is one container in one slot. A nil pointer was not measured. The tags are the names of the columns.
type Row struct {
	Schema int32 `parquet:"schema"`
	// Start is the slot's beginning, Seconds how much of it was observed, in Samples rounds from Began on. Where a program that
	// observes ends and another begins, a slot has two rows of a container.
	Start   time.Time `parquet:"start,timestamp(millisecond)"`
	Began   time.Time `parquet:"began,timestamp(millisecond)"`
	Seconds float64   `parquet:"seconds"`
	Samples int32     `parquet:"samples"`

	// Names: strangers' text, made safe. "" is not known.
	Cluster   string `parquet:"cluster,dict"`
	Node      string `parquet:"node,dict"`
	Namespace string `parquet:"namespace,dict"`
	Pod       string `parquet:"pod,dict"`
	Container string `parquet:"container,dict"`
	// Service is the owner: what the replicas of one workload have in common. See ServiceOf.
	Service string `parquet:"service,dict"`
	Runtime string `parquet:"runtime,dict"`
	// Cgroup is the inode of the container's cgroup: one container's rows on its node.
	Cgroup int64 `parquet:"cgroup"`

	// LimitCPUs is the effective limit, the least along the path, at the end of the slot; nil: there is none. LimitScope says
	// whose it is: own, pod, slice, inside or "". RequestCPUs is what its weight stands for in Kubernetes; nil outside.
	LimitCPUs    *float64 `parquet:"limit_cpus,optional"`
	LimitScope   string   `parquet:"limit_scope,dict"`
	OwnLimitCPUs *float64 `parquet:"own_limit_cpus,optional"`
	RequestCPUs  *float64 `parquet:"request_cpus,optional"`
	AllowedCPUs  *int32   `parquet:"allowed_cpus,optional"`

	// UsedCPUSeconds is CPU time. WantedCPUSeconds is the time of running and runnable threads: demand that no limit censors.
	UsedCPUSeconds   *float64 `parquet:"used_cpu_seconds,optional"`
	WantedCPUSeconds *float64 `parquet:"wanted_cpu_seconds,optional"`

	// Stopped is wall time in which a quota held a runnable thread back, between Low and High; equal where the probe counted.
	StoppedLowSeconds  *float64 `parquet:"stopped_low_seconds,optional"`
	StoppedHighSeconds *float64 `parquet:"stopped_high_seconds,optional"`
	StoppedIntervals   *int64   `parquet:"stopped_intervals,optional"`
	// Throttled are the levels' parts of throttled time, sums over CPUs: its own quota, the pod's, one further up, one inside.
	ThrottledOwnSeconds    *float64 `parquet:"throttled_own_seconds,optional"`
	ThrottledPodSeconds    *float64 `parquet:"throttled_pod_seconds,optional"`
	ThrottledSliceSeconds  *float64 `parquet:"throttled_slice_seconds,optional"`
	ThrottledInsideSeconds *float64 `parquet:"throttled_inside_seconds,optional"`
	// Waiting is thread time in which runnable threads had no CPU, by cause: see observe.Waiting. Behind its own quota and an ancestor's is at
	// most, Contention (others or its own threads held the CPUs) at least, and Unclear is by how much both may be off.
	WaitingQuotaSeconds      *float64 `parquet:"waiting_quota_seconds,optional"`
	WaitingAncestorSeconds   *float64 `parquet:"waiting_ancestor_seconds,optional"`
	WaitingContentionSeconds *float64 `parquet:"waiting_contention_seconds,optional"`
	WaitingUnclearSeconds    *float64 `parquet:"waiting_unclear_seconds,optional"`
	Periods                  *int64   `parquet:"periods,optional"`
	ThrottledPeriods         *int64   `parquet:"throttled_periods,optional"`

	// WidthMax is the most CPUs in use at once, WantedP50 to WantedMax are quantiles over time of running and runnable threads.
	WidthMax  *int32 `parquet:"width_max,optional"`
	WantedP50 *int32 `parquet:"wanted_p50,optional"`
	WantedP95 *int32 `parquet:"wanted_p95,optional"`
	WantedP99 *int32 `parquet:"wanted_p99,optional"`
	WantedMax *int32 `parquet:"wanted_max,optional"`
	// Width and Wanted are the histograms: how long so many CPUs were in use, and so many threads ran or were runnable.
	Width  []Level `parquet:"width,list"`
	Wanted []Level `parquet:"wanted,list"`

	// Candidates say what other limits than its own would have done, with a period of PeriodMicroseconds: see package periodmodel.
	// CandidateSeconds is for how much of Seconds that is known; nil: no quota of its own, or no rows per period. CandidateFrom is
	// the least step that serves what came; above the last of Candidates nothing is stopped.
	PeriodMicroseconds *int64      `parquet:"period_microseconds,optional"`
	CandidateSeconds   *float64    `parquet:"candidate_seconds,optional"`
	CandidateFrom      *int32      `parquet:"candidate_from,optional"`
	Candidates         []Candidate `parquet:"candidates,list"`
	// Stops are the lengths of the stops by its own quota, in the CandidateSeconds.
	Stops []Stop `parquet:"stops,list"`

	// RecordedSeconds is how much of the slot the agent's recordings are of, that it made by itself because the container was stopped; nil: there
	// is none. Responses are the times from wake-up to sleep in them, by role, of the roles with most of them. Requests are those that clients
	// outside the container sent, and RequestCount is how many there were; nil: the recordings do not show them.
	RecordedSeconds *float64   `parquet:"recorded_seconds,optional"`
	Responses       []Response `parquet:"responses,list"`
	RequestCount    *int64     `parquet:"request_count,optional"`
	Requests        []Request  `parquet:"requests,list"`

	// HostGroups are how the host's CPUs are grouped: see topology.Machine.GroupText; "": not known. CPUList are those that the container may use, where
	// they are not all of the host's.
	HostGroups string `parquet:"host_groups,dict"`
	CPUList    string `parquet:"cpu_list,dict"`

	// HostCPUs are the CPUs that the container's host has online, HostMemoryBytes its memory. MemoryBytes is what the container may need
	// of it: its limit, or without a limit below that what it uses, without file pages that the kernel reclaims first. At the end of the slot.
	HostCPUs        *int32 `parquet:"host_cpus,optional"`
	HostMemoryBytes *int64 `parquet:"host_memory_bytes,optional"`
	MemoryBytes     *int64 `parquet:"memory_bytes,optional"`

	// Remedy is what was in force at the end of the slot; "": none of ours.
	Remedy string `parquet:"remedy,dict"`
}

// Level is one level of a histogram.
type Level struct {
	CPUs         int32 `parquet:"cpus"`
	Microseconds int64 `parquet:"microseconds"`
}

// Candidate is one limit, of 2^(Step/4) CPUs, and what it would have done; the last two with a burst of one quota.
type Candidate struct {
	Step                     int32 `parquet:"step,dict"`
	StoppedMicroseconds      int64 `parquet:"stopped_microseconds,dict"`
	ThrottledPeriods         int32 `parquet:"throttled_periods,dict"`
	DelayMicroseconds        int64 `parquet:"delay_microseconds,dict"`
	BurstStoppedMicroseconds int64 `parquet:"burst_stopped_microseconds,dict"`
	BurstDelayMicroseconds   int64 `parquet:"burst_delay_microseconds,dict"`
}
