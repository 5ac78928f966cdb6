package txn

import "time"

// Counters are those of the kernel's bandwidth control of one cgroup at a moment.
type Counters struct {
	// CgroupID tells the cgroup from another one that has its path later.
	CgroupID uint64 `json:"cgroup_id"`
	// Limited: it had a quota.
	Limited bool `json:"limited"`
	// Periods and ThrottledPeriods are nr_periods and nr_throttled, ThrottledSeconds the time throttled by its own quota, a sum over CPUs.
	Periods          uint64  `json:"periods"`
	ThrottledPeriods uint64  `json:"throttled_periods"`
	ThrottledSeconds float64 `json:"throttled_seconds"`
	// LocalSeconds is that of cpu.stat.local, own and inherited; nil: the kernel has none (before 6.6).
	LocalSeconds *float64 `json:"local_throttled_seconds,omitempty"`
}

// Stops are those of a container since a remedy was kept on it.
type Stops struct {
	// Seconds is how long ago that was. The stopped time is in seconds per second, between two bounds.
	Seconds              float64 `json:"seconds"`
	StoppedPerSecondLow  float64 `json:"stopped_per_second_low"`
	StoppedPerSecondHigh float64 `json:"stopped_per_second_high"`
	// Longer: it is stopped longer than before the remedy, whatever was measured as it was kept.
	Longer bool `json:"longer_than_before"`
}

// Counted is a container's and its ancestors' counters at a moment, nearest first.
type Counted struct {
	At     time.Time  `json:"at"`
	Levels []Counters `json:"levels"`
}
