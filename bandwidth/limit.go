package bandwidth

import (
	"fmt"
	"time"
)

// Bounds of a Limit, from the kernel's tg_set_cfs_bandwidth.
const (
	MinPeriod = time.Millisecond
	MaxPeriod = time.Second
	MinQuota  = time.Millisecond
)

// NoQuota is the Quota of a Limit that limits nothing.
const NoQuota time.Duration = -1

// Limit is the setting of one cgroup level: cpu.max and cpu.max.burst.
type Limit struct {
	Quota  time.Duration // CPU time per period; NoQuota: none
	Period time.Duration // MinPeriod to MaxPeriod
	Burst  time.Duration // unused quota that later periods may spend, 0 to Quota
}

// Limited reports whether there is a quota.
func (l Limit) Limited() bool { return l.Quota >= 0 }

// CPUs is quota / period. It has a meaning only if the level is limited.
func (l Limit) CPUs() float64 { return float64(l.Quota) / float64(l.Period) }

// Refused is a setting that the kernel does not know, or refuses with EINVAL.
type Refused struct {
	Setting string // "quota", "period" or "burst"
	Value   time.Duration
	Why     string
}

func (r *Refused) Error() string { return fmt.Sprintf("%s %v: %s", r.Setting, r.Value, r.Why) }

// Check returns the reason why a kernel with these rules would refuse the limit, or nil.
func (l Limit) Check(r *Rules) *Refused {
	switch {
	case l.Period < MinPeriod || l.Period > MaxPeriod:
		return &Refused{"period", l.Period, fmt.Sprintf("the kernel takes %v to %v", MinPeriod, MaxPeriod)}
	case !l.Limited() && l.Burst != 0:
		return &Refused{"burst", l.Burst, "there is no quota"}
	case l.Limited() && l.Quota < MinQuota:
		return &Refused{"quota", l.Quota, fmt.Sprintf("the kernel takes %v or more", MinQuota)}
	case l.Burst < 0 || l.Limited() && l.Burst > l.Quota:
		return &Refused{"burst", l.Burst, fmt.Sprintf("the kernel takes 0 to the quota, %v", l.Quota)}
	case l.Burst > 0 && !r.Has(Since5_14):
		return &Refused{"burst", l.Burst, fmt.Sprintf("kernel %s has no burst, which came with 5.14", r.Kernel)}
	}
	return nil
}
