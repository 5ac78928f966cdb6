package demand

import "time"

// SchemaVersion is that of Row. A change that older readers would misread counts it up; docs/reference/fleet-rows.md
// has the columns, and a test compares them.
const SchemaVersion = 1

// SlotLength is the stretch of time that a row is of.
const SlotLength = 5 * time.Minute

// Row is one container in one slot. A nil pointer was not measured. The tags of a field are all that the fleet's
// engines know of its column:
//
//	parquet  its name in the files
//	sql      its name in tables, if that is another; "-": no question reads it
//	bounds   the rule of unsound.sql that it is under, and its least and greatest value, which may be computed of other
//	         columns: [0,9] has both ends, (0,9) neither, (0,) no greatest
//	since    the generation in which it came; none: the first. A file has all columns of some generations
type Row struct {
	Schema int32 `parquet:"schema" sql:"schema_version" bounds:"schema [1,1]"`
	// Start is the slot's beginning, Seconds how much of it was observed, in Samples rounds from Began on. Where a program
	// that observes ends and another begins, a slot has two rows of a container.
	Start   time.Time `parquet:"start,timestamp(millisecond)" sql:"start_ms"`
	Began   time.Time `parquet:"began,timestamp(millisecond)" sql:"began_ms" bounds:"began [start_ms,start_ms+300000)"`
	Seconds float64   `parquet:"seconds" bounds:"seconds (0,600]"`
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
	// Cgroup stands for the path of the container's cgroup, by CgroupOf: one container's rows on its node.
	Cgroup int64 `parquet:"cgroup"`

	// LimitCPUs is the effective limit, the least along the path, at the end of the slot; nil: there is none. LimitScope
	// says whose it is: own, pod, slice, inside or "". RequestCPUs is what its weight stands for in Kubernetes; nil
	// outside.
	LimitCPUs    *float64 `parquet:"limit_cpus,optional"`
	LimitScope   string   `parquet:"limit_scope,dict" sql:"-"`
	OwnLimitCPUs *float64 `parquet:"own_limit_cpus,optional" bounds:"limit (0,65536]"`
	RequestCPUs  *float64 `parquet:"request_cpus,optional" bounds:"limit [0,65536]"`
	AllowedCPUs  *int32   `parquet:"allowed_cpus,optional" bounds:"limit (0,)"`

	// UsedCPUSeconds is CPU time. WantedCPUSeconds is the time of running and runnable threads: demand that no limit
	// censors.
	UsedCPUSeconds   *float64 `parquet:"used_cpu_seconds,optional" bounds:"cpu [0,8192*seconds]"`
	WantedCPUSeconds *float64 `parquet:"wanted_cpu_seconds,optional" bounds:"cpu [0,1000000*seconds]"`

	// Stopped is wall time in which a quota held a runnable thread back, between Low and High; equal where the probe
	// counted.
	StoppedLowSeconds  *float64 `parquet:"stopped_low_seconds,optional" bounds:"stopped [0,stopped_high_seconds+0.001]"`
	StoppedHighSeconds *float64 `parquet:"stopped_high_seconds,optional" bounds:"stopped [0,1.1*seconds+1]"`
	StoppedIntervals   *int64   `parquet:"stopped_intervals,optional" sql:"-"`
	// Throttled are the levels' parts of throttled time, sums over CPUs: its own quota, the pod's, one further up, one
	// inside.
	ThrottledOwnSeconds    *float64 `parquet:"throttled_own_seconds,optional" bounds:"cpu [0,8192*seconds]"`
	ThrottledPodSeconds    *float64 `parquet:"throttled_pod_seconds,optional" bounds:"cpu [0,8192*seconds]"`
	ThrottledSliceSeconds  *float64 `parquet:"throttled_slice_seconds,optional" bounds:"cpu [0,8192*seconds]"`
	ThrottledInsideSeconds *float64 `parquet:"throttled_inside_seconds,optional" bounds:"cpu [0,8192*seconds]"`
	// Waiting is thread time in which runnable threads had no CPU, by cause: see observe.Waiting. Behind its own quota and
	// an ancestor's is at most, Contention (others or its own threads held the CPUs) at least, and Unclear is by how much
	// both may be off.
	WaitingQuotaSeconds      *float64 `parquet:"waiting_quota_seconds,optional" bounds:"waiting [0,)" since:"3"`
	WaitingAncestorSeconds   *float64 `parquet:"waiting_ancestor_seconds,optional" bounds:"waiting [0,)" since:"3"`
	WaitingContentionSeconds *float64 `parquet:"waiting_contention_seconds,optional" bounds:"waiting [0,)" since:"3"`
	WaitingUnclearSeconds    *float64 `parquet:"waiting_unclear_seconds,optional" bounds:"waiting [0,)" since:"3"`
	Periods                  *int64   `parquet:"periods,optional" sql:"-"`
	ThrottledPeriods         *int64   `parquet:"throttled_periods,optional" sql:"-"`

	// WidthMax is the most CPUs in use at once, WantedP50 to WantedMax are quantiles over time of running and runnable
	// threads.
	WidthMax  *int32 `parquet:"width_max,optional" sql:"-"`
	WantedP50 *int32 `parquet:"wanted_p50,optional" sql:"-"`
	WantedP95 *int32 `parquet:"wanted_p95,optional" sql:"-"`
	WantedP99 *int32 `parquet:"wanted_p99,optional" sql:"-"`
	WantedMax *int32 `parquet:"wanted_max,optional" sql:"-"`
	// Width and Wanted are the histograms: how long so many CPUs were in use, and so many threads ran or were runnable.
	Width  []Level `parquet:"width,list"`
	Wanted []Level `parquet:"wanted,list"`

	// Candidates say what other limits than its own would have done, with a period of PeriodMicroseconds: see package
	// periodmodel. CandidateSeconds is for how much of Seconds that is known; nil: no quota of its own, or no rows per
	// period. CandidateFrom is the least step that serves what came; above the last of Candidates nothing is stopped.
	PeriodMicroseconds *int64      `parquet:"period_microseconds,optional" bounds:"candidates [1000,1000000]" since:"1"`
	CandidateSeconds   *float64    `parquet:"candidate_seconds,optional" bounds:"candidates [0,1.1*seconds+1]" since:"1"`
	CandidateFrom      *int32      `parquet:"candidate_from,optional" bounds:"candidates [-16,37]" since:"1"`
	Candidates         []Candidate `parquet:"candidates,list" since:"1"`
	// LongBursts say the same of bursts in longer periods; none of a period: its periods do not tell. They are known for as much of the
	// time as Candidates.
	LongBursts []LongBurst `parquet:"long_bursts,list" since:"8"`
	// Stops are the lengths of the stops by its own quota, in the CandidateSeconds.
	Stops []Stop `parquet:"stops,list" since:"4"`

	// RecordedSeconds is how much of the slot the agent's recordings are of, that it made by itself because the container
	// was stopped; nil: there is none. Responses are the times from wake-up to sleep in them, by role, of the roles with
	// most of them. Requests are those that clients outside the container sent, and RequestCount is how many there were;
	// nil: the recordings do not show them.
	RecordedSeconds *float64   `parquet:"recorded_seconds,optional" bounds:"recorded (0,3600]" since:"5"`
	Responses       []Response `parquet:"responses,list" since:"5"`
	RequestCount    *int64     `parquet:"request_count,optional" bounds:"recorded [0,1000000000]" since:"5"`
	Requests        []Request  `parquet:"requests,list" since:"5"`

	// HostGroups are how the host's CPUs are grouped: see topology.Machine.GroupText; "": not known. CPUList are those
	// that the container may use, where they are not all of the host's.
	HostGroups string `parquet:"host_groups,dict" since:"5"`
	CPUList    string `parquet:"cpu_list,dict" since:"5"`

	// Pools are the thread pools with most threads in the recordings that the agent made by itself in the slot, because the
	// container was stopped or for its size; nil: there is none.
	Pools []Pool `parquet:"pools,list" since:"6"`

	// HostCPUs are the CPUs that the container's host has online, HostMemoryBytes its memory. MemoryBytes is what the
	// container may need of it: its limit, or without a limit below that what it uses, without file pages that the kernel
	// reclaims first. At the end of the slot.
	HostCPUs        *int32 `parquet:"host_cpus,optional" bounds:"host (0,8192]" since:"2"`
	HostMemoryBytes *int64 `parquet:"host_memory_bytes,optional" bounds:"host (0,1125899906842624]" since:"2"`
	MemoryBytes     *int64 `parquet:"memory_bytes,optional" bounds:"host [0,1125899906842624]" since:"2"`

	// PricedAt is when a recording began that the agent made in the slot for the container's size; nil: there is none.
	PricedAt *time.Time `parquet:"priced_at,optional,timestamp(millisecond)" sql:"priced_at_ms" bounds:"priced [start_ms-86400000,)" since:"6"`
	// Prices are the least CPUs of each remedy in it. PricedOf is whose latency is judged by PricedQuantile, "requests" or a
	// pool's name, and PricedMicroseconds what it was as recorded, or the objective.
	PricedOf           string   `parquet:"priced_of,dict" since:"6"`
	PricedQuantile     *float64 `parquet:"priced_quantile,optional" bounds:"priced (0,1]" since:"6"`
	PricedMicroseconds *int64   `parquet:"priced_microseconds,optional" bounds:"priced [0,3600000000]" since:"6"`
	Prices             []Price  `parquet:"prices,list" since:"6"`

	// LongPrices are those of bursts in longer periods, by the same recording; none of a period: no number of CPUs does, or it was
	// not tried.
	LongPrices []LongPrice `parquet:"long_prices,list" since:"8"`

	// ObjectiveQuantile of its latency must be at most ObjectiveMicroseconds, as its owner or its rule says at the end of the
	// slot; nil: nobody does. A pricing that has the same as what is judged is of the objective and not of what was recorded.
	ObjectiveQuantile     *float64 `parquet:"objective_quantile,optional" bounds:"objective (0,1]" since:"7"`
	ObjectiveMicroseconds *int64   `parquet:"objective_microseconds,optional" bounds:"objective [1,3600000000]" since:"7"`

	// Remedy is what was in force at the end of the slot; "": none of ours.
	Remedy string `parquet:"remedy,dict"`
}

// Level is one level of a histogram.
type Level struct {
	CPUs         int32 `parquet:"cpus" bounds:"[0,8192]"`
	Microseconds int64 `parquet:"microseconds" bounds:"[0,)"`
}

// Candidate is one limit, of 2^(Step/4) CPUs, and what it would have done; the last two with a burst of one quota.
type Candidate struct {
	Step                     int32 `parquet:"step,dict" bounds:"[-16,36]"`
	StoppedMicroseconds      int64 `parquet:"stopped_microseconds,dict" bounds:"[0,1000000*(1.2*seconds+1)]"`
	ThrottledPeriods         int32 `parquet:"throttled_periods,dict" bounds:"[0,1000000]"`
	DelayMicroseconds        int64 `parquet:"delay_microseconds,dict" bounds:"[0,100000000]"`
	BurstStoppedMicroseconds int64 `parquet:"burst_stopped_microseconds,dict" bounds:"[0,1000000*(1.2*seconds+1)]"`
	BurstDelayMicroseconds   int64 `parquet:"burst_delay_microseconds,dict" bounds:"[0,100000000]"`
}

// LongBurst is one limit in a longer period, with a burst of one quota of it, and what it would have done. The least step of a period is
// the least that serves what came; above the last one nothing is stopped.
type LongBurst struct {
	BurstPeriodMicroseconds int64 `parquet:"burst_period_microseconds,dict" bounds:"(0,1000000]"`
	Step                    int32 `parquet:"step,dict" bounds:"[-16,37]"`
	StoppedMicroseconds     int64 `parquet:"stopped_microseconds,dict" bounds:"[0,1000000*(1.2*seconds+1)]"`
	DelayMicroseconds       int64 `parquet:"delay_microseconds,dict" bounds:"[0,100000000]"`
}
