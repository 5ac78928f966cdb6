package bandwidth

import (
	"fmt"
	"time"
)

// Bounds of the kernel's tg_set_cfs_bandwidth.
const (
	MinPeriod = time.Millisecond
	MaxPeriod = time.Second
	MinQuota  = time.Millisecond
)

// NoQuota as a Limit's quota is no limit.
const NoQuota time.Duration = -1

// Limit is one level's setting: cpu.max and cpu.max.burst.
type Limit struct {
	Quota  time.Duration // CPU time per period; NoQuota: none
	Period time.Duration // MinPeriod to MaxPeriod
	Burst  time.Duration // unused quota that may be kept, 0 to Quota
}

// Limited says whether there is a quota.
func (l Limit) Limited() bool { return l.Quota >= 0 }

// CPUs is quota / period; only for a limited level.
func (l Limit) CPUs() float64 { return float64(l.Quota) / float64(l.Period) }

// Check says why the kernel would refuse the limit with EINVAL.
func (l Limit) Check(r *Rules) error {
	switch {
	case l.Period < MinPeriod || l.Period > MaxPeriod:
		return fmt.Errorf("period %v: the kernel takes %v to %v", l.Period, MinPeriod, MaxPeriod)
	case !l.Limited() && l.Burst != 0:
		return fmt.Errorf("burst %v without a quota", l.Burst)
	case l.Limited() && l.Quota < MinQuota:
		return fmt.Errorf("quota %v: the kernel takes %v or more", l.Quota, MinQuota)
	case l.Burst < 0 || l.Limited() && l.Burst > l.Quota:
		return fmt.Errorf("burst %v: the kernel takes 0 to the quota, %v", l.Burst, l.Quota)
	case l.Burst > 0 && !r.Has(EraD):
		return fmt.Errorf("burst %v: kernel %s has no burst, 5.14 was the first", l.Burst, r.Kernel)
	}
	return nil
}
