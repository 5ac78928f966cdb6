package bandwidth

import (
	"fmt"
	"math"
	"math/bits"
	"time"
)

// Bounds of a Limit, from the kernel's tg_set_cfs_bandwidth.
const (
	MinPeriod = time.Millisecond
	MaxPeriod = time.Second
	MinQuota  = time.Millisecond
)

// Unit is what the kernel's files of a limit count in. Quota, period and burst are whole numbers of it.
const Unit = time.Microsecond

// DefaultPeriod is the period of a new cgroup (kernel/sched/sched.h: default_cfs_period).
const DefaultPeriod = 100 * time.Millisecond

// NoQuota is the Quota of a Limit that limits nothing.
const NoQuota time.Duration = -1

// Limit is the setting of one cgroup level: cpu.max and cpu.max.burst.
type Limit struct {
	Quota  time.Duration // CPU time per period; NoQuota: none
	Period time.Duration // MinPeriod to MaxPeriod
	Burst  time.Duration // unused quota that later periods may spend, 0 to Quota; 0 on kernels before 5.14, which have none
}

// Unlimited is the limit of a new cgroup.
func Unlimited() Limit { return Limit{Quota: NoQuota, Period: DefaultPeriod} }

// Limited reports whether there is a quota.
func (l Limit) Limited() bool { return l.Quota >= 0 }

// CPUs is quota / period. It has a meaning only if the level is limited.
func (l Limit) CPUs() float64 { return float64(l.Quota) / float64(l.Period) }

// Bound is CPUs; false without a quota, or without a period to divide it by.
func (l Limit) Bound() (cpus float64, limited bool) {
	if !l.Limited() || l.Period <= 0 {
		return 0, false
	}
	return l.CPUs(), true
}

// In returns the same limit in another period: the quota in whole units and never more than the limit, since cgroup v1 refuses a
// child more than its parent has; and of the burst no more than the quota. 1 of 3 ms in a period of 10 ms is 3.333 ms.
func (l Limit) In(period time.Duration) Limit {
	if l.Limited() && l.Period > 0 && period > 0 {
		high, low := bits.Mul64(uint64(l.Quota), uint64(period))
		quota := uint64(math.MaxInt64)
		if high < uint64(l.Period) {
			quota, _ = bits.Div64(high, low, uint64(l.Period))
		}
		l.Quota = time.Duration(min(quota, math.MaxInt64)).Truncate(Unit)
		l.Burst = min(l.Burst, l.Quota)
	}
	l.Period = period
	return l
}

// QuotaOf is the quota of so many CPUs in a period, rounded as In does; what CPUs are off by as a quotient does not count.
func QuotaOf(cpus float64, period time.Duration) time.Duration {
	return time.Duration(cpus * float64(period) * (1 + 1e-12)).Truncate(Unit)
}

// Refused is a setting that the kernel does not know, or refuses with EINVAL.
type Refused struct {
	Setting string // "quota", "period" or "burst"
	Value   time.Duration
	Why     string // what the value is: "above the quota 50ms"
}

func (r *Refused) Error() string { return fmt.Sprintf("%s %v is %s", r.Setting, r.Value, r.Why) }

// Check returns the reason why a kernel with these rules would refuse the limit, or nil.
func (l Limit) Check(r *Rules) *Refused {
	if refused := l.refused(); refused != nil {
		return refused
	}
	if l.Limited() && l.Burst > 0 && !r.Has(Since5_14) {
		return &Refused{"burst", l.Burst, fmt.Sprintf("a setting that kernel %s does not have: it came with 5.14", r.Kernel)}
	}
	return nil
}

// CheckBounds is Check for the newest kernel: the error is a *Refused, or nil. Neither asks whether an ancestor or a child forbids
// the limit on cgroup v1.
func (l Limit) CheckBounds() error {
	if refused := l.refused(); refused != nil {
		return refused
	}
	return nil
}

// refused is the first of the kernel's bounds that the limit breaks. Without a quota the kernel takes any burst, which then has
// no effect: tg_set_cfs_bandwidth compares the two only if quota is not RUNTIME_INF.
func (l Limit) refused() *Refused {
	if l.Period < MinPeriod || l.Period > MaxPeriod {
		return &Refused{"period", l.Period, fmt.Sprintf("not within %v to %v", MinPeriod, MaxPeriod)}
	}
	for _, s := range []Refused{{Setting: "period", Value: l.Period}, {Setting: "burst", Value: l.Burst},
		{Setting: "quota", Value: max(0, l.Quota)}} {
		if s.Value%Unit != 0 {
			s.Why = "no whole number of microseconds, in which the kernel counts"
			return &s
		}
	}
	switch {
	case l.Burst < 0:
		return &Refused{"burst", l.Burst, "negative"}
	case l.Limited() && l.Quota < MinQuota:
		return &Refused{"quota", l.Quota, fmt.Sprintf("below the least of %v", MinQuota)}
	case l.Limited() && l.Burst > l.Quota:
		return &Refused{"burst", l.Burst, fmt.Sprintf("above the quota %v", l.Quota)}
	}
	return nil
}
