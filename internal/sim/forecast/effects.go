package forecast

import (
	"fmt"
	"math"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/text"
)

// shortPeriod is the period of a burst that is combined with a shorter one. LongPeriods are those longer than the default of which
// there are rows: where demand stays below the limit over one of them, requests take as long as without a limit.
const shortPeriod = 20 * time.Millisecond

// LongPeriods are in ascending order, up to the longest that the kernel takes.
var LongPeriods = []time.Duration{300 * time.Millisecond, bandwidth.MaxPeriod}

// Of a limit whose period is long, what was saved up before, or what its write gave, is a large part of a short measurement. So one begins
// SettlePeriods of it after the write, and lasts MeasuredPeriods at least.
const SettlePeriods, MeasuredPeriods = 2, 10

// TakesPeriod reports whether a level with a limit gets the period that a plan asks for (0: none). The container and the level whose
// quota binds it (concerned) do, and where the period is longer each level that the plan changes: a quota that is refilled more often
// would stop what a longer period lets through.
func TakesPeriod(level bandwidth.Limit, asked time.Duration, concerned bool) bool {
	return asked > 0 && (concerned || asked > level.Period)
}

// PinEffect is that of exclusive CPUs. They are taken from others even while they are idle.
var PinEffect = &Effect{
	Name: Pin, Change: 4, NoQuota: true,
	Rows: func(c Container) []Remedy { return []Remedy{{Name: Pin, CPUs: c.CPUs}} },
	Simulate: func(s *scenario.Scenario, at Cgroups, r Remedy) {
		s.Cgroups[at.Container].Remedy = &scenario.Remedy{Kind: scenario.Pin, CPUs: r.CPUs}
	},
	Granted:    func(_ float64, r Remedy) *float64 { return new(float64(r.CPUs)) },
	Text:       func(_ float64, r Remedy) string { return "pin to " + text.Count(r.CPUs, "CPU") },
	Parameters: func(r Remedy) map[string]any { return map[string]any{"cpus": r.CPUs} },
	Price: func(r Remedy, p Pricing) string {
		return fmt.Sprintf("%s that no other container gets, %.2f used", text.Count(r.CPUs, "CPU"), p.Used)
	},
}

// creditPerCPU is the credit of a narrow by sched_ext for each CPU of the limit: as much as a quota of one CPU and a
// burst of the same size let be spent at once.
const creditPerCPU = 2 * bandwidth.DefaultPeriod

// longCredit is by how much more is saved in the longer of the two: as much as a quota of 1 s and a burst of the same size let be
// spent at once, for the reason of [LongPeriods].
const longCredit = time.Second / bandwidth.DefaultPeriod

func creditOf(cpus float64) time.Duration {
	return time.Duration(cpus * float64(creditPerCPU)).Round(time.Microsecond)
}

// NarrowEffect is that of as many CPUs as the limit, which others may use too. By a cpuset a limit with a fraction keeps
// its quota in short periods, or together with a burst in the periods that it has. By sched_ext there is no quota, and
// the container is wide while it has credit.
var NarrowEffect = &Effect{
	Name: Narrow, Change: 3,
	Rows: func(c Container) []Remedy {
		remedies := []Remedy{{Name: Narrow}}
		if c.Limit != math.Trunc(c.Limit) {
			remedies = append(remedies, Remedy{Name: Narrow, Burst: c.Quota.Quota})
		}
		if c.SchedExt {
			remedies = append(remedies, Remedy{Name: Narrow, Credit: creditOf(c.Limit)},
				Remedy{Name: Narrow, Credit: longCredit * creditOf(c.Limit)})
		}
		return remedies
	},
	Parts: func(r Remedy) []Remedy {
		if r.Burst == 0 {
			return nil
		}
		return []Remedy{{Name: Narrow}, {Name: Burst, Burst: r.Burst}}
	},
	Simulate: func(s *scenario.Scenario, at Cgroups, r Remedy) {
		if at.Container != at.Binding {
			narrowInside(s, at, r)
			return
		}
		cgroup := &s.Cgroups[at.Binding]
		if r.CPUs > 0 {
			cgroup.Limit.Quota = time.Duration(r.CPUs) * cgroup.Limit.Period
		}
		cgroup.Remedy = &scenario.Remedy{Kind: scenario.Narrow, Burst: r.Burst, Credit: r.Credit}
		soften(s, at, r)
	},
	Text: func(_ float64, r Remedy) string {
		switch {
		case r.Credit > 0:
			return fmt.Sprintf("narrow, credit %v", r.Credit)
		case r.Burst > 0:
			return fmt.Sprintf("narrow, burst %v", r.Burst)
		}
		return Narrow
	},
	Parameters: func(r Remedy) map[string]any {
		switch {
		case r.Credit > 0:
			return map[string]any{"via": "sched_ext", "credit_seconds": r.Credit.Seconds()}
		case r.Burst > 0:
			return map[string]any{"burst_seconds": r.Burst.Seconds()}
		}
		return map[string]any{}
	},
	Price: func(r Remedy, p Pricing) string {
		never := fmt.Sprintf("never wider than %d", int(math.Ceil(p.Limit)))
		if r.Credit > 0 {
			return fmt.Sprintf("a scheduler of our own (--via sched_ext --credit %v); %s, but up to %s on credit",
				r.Credit, never, text.Count(p.Widest, "CPU"))
		}
		return never
	},
}

// BurstEffect is that of unused quota that later periods may spend, also with a shorter or a longer period. The container may be
// wide then, at the cost of others.
var BurstEffect = &Effect{
	Name: Burst, Change: 1,
	Rows: func(c Container) []Remedy {
		remedies := []Remedy{{Name: Burst, Burst: c.Quota.Quota}}
		if c.Quota.Period > shortPeriod {
			remedies = append(remedies, Remedy{Name: Burst, Burst: bandwidth.QuotaOf(c.Limit, shortPeriod), Period: shortPeriod})
		}
		for _, period := range LongPeriods {
			if period > c.Quota.Period {
				remedies = append(remedies, Remedy{Name: Burst, Burst: bandwidth.QuotaOf(c.Limit, period), Period: period})
			}
		}
		return remedies
	},
	Simulate: burst,
	Text: func(_ float64, r Remedy) string {
		if r.Period > 0 {
			return fmt.Sprintf("burst %v, period %v", r.Burst, r.Period)
		}
		return fmt.Sprintf("burst %v", r.Burst)
	},
	Parameters: func(r Remedy) map[string]any {
		p := map[string]any{"burst_seconds": r.Burst.Seconds()}
		if r.Period > 0 {
			p["period_seconds"] = r.Period.Seconds()
		}
		return p
	},
	Price: func(r Remedy, p Pricing) string {
		price := fmt.Sprintf("up to %s at once from others, from earlier unused quota", text.Count(p.Widest, "CPU"))
		if r.Period > bandwidth.DefaultPeriod {
			price += fmt.Sprintf("; where it wants its limit for seconds, stops of up to %s", text.Duration(r.Period))
		}
		return price
	},
}

// PeriodEffect is that of the same limit in another period.
var PeriodEffect = &Effect{
	Name: Period, Change: 2,
	Rows: func(c Container) (remedies []Remedy) {
		for _, period := range []time.Duration{10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond, bandwidth.MaxPeriod} {
			if period != c.Quota.Period {
				remedies = append(remedies, Remedy{Name: Period, Period: period})
			}
		}
		return remedies
	},
	Simulate: func(s *scenario.Scenario, at Cgroups, r Remedy) {
		for _, i := range at.limited(s) {
			if TakesPeriod(s.Cgroups[i].Limit, r.Period, i == at.Container || i == at.Binding) {
				s.Cgroups[i].Remedy = &scenario.Remedy{Kind: scenario.Period, Period: r.Period}
			}
		}
	},
	Text:       func(_ float64, r Remedy) string { return fmt.Sprintf("period %v", r.Period) },
	Parameters: func(r Remedy) map[string]any { return map[string]any{"period_seconds": r.Period.Seconds()} },
	Price: func(r Remedy, p Pricing) string {
		return fmt.Sprintf("a refill every %s; one stretch gets %s at most", text.Duration(r.Period),
			text.Duration(time.Duration(float64(r.Period)*p.Limit)))
	},
}

// WeightEffect is that of no quota at all. A quota left at any level would still throttle, so all of them go.
var WeightEffect = &Effect{
	Name: Weight, Change: 6, NoQuota: true,
	Rows: func(Container) []Remedy { return []Remedy{{Name: Weight}} },
	Simulate: func(s *scenario.Scenario, at Cgroups, _ Remedy) {
		for up := at.Container; up >= 0; up = s.Cgroups[up].Parent {
			s.Cgroups[up].Limit.Quota, s.Cgroups[up].Limit.Burst = bandwidth.NoQuota, 0
		}
	},
	Granted: func(float64, Remedy) *float64 { return nil },
	Price: func(_ Remedy, p Pricing) string {
		return fmt.Sprintf("no bound: up to %s at once", text.Count(p.Widest, "CPU"))
	},
}

// RaiseEffect is that of a larger limit.
var RaiseEffect = &Effect{
	Name: Raise, Change: 5,
	Rows:       func(Container) []Remedy { return []Remedy{{Name: Raise, Factor: 1.5}, {Name: Raise, Factor: 2}} },
	Simulate:   raise,
	Granted:    func(limit float64, r Remedy) *float64 { return new(limit * r.Factor) },
	Text:       func(limit float64, r Remedy) string { return "raise to " + text.CPUs(limit*r.Factor) },
	Parameters: factorOf,
	Price:      func(r Remedy, p Pricing) string { return text.CPUs(p.Limit*(r.Factor-1)) + " more of limit" },
}

// limitEffect is that of Remedy.Limit alone.
var limitEffect = &Effect{
	Name: Limit, Change: 5,
	Text: func(_ float64, r Remedy) string { return "limit of " + text.CPUs(r.Limit) },
}

// poolsEffect is that of fewer threads in a pool, shardsEffect that of more or fewer containers.
var (
	poolsEffect = &Effect{
		Name: Pools, Modelled: true,
		Text: func(_ float64, r Remedy) string {
			if r.Pool == AllPools {
				return fmt.Sprintf("all pools of %d", r.CPUs)
			}
			return fmt.Sprintf("pool of %d", r.CPUs)
		},
		Parameters: func(r Remedy) map[string]any {
			p := map[string]any{"threads": r.CPUs}
			if r.Pool == AllPools {
				p["all_pools"] = true
			}
			return p
		},
		Price: func(r Remedy, p Pricing) string {
			which := p.Pool
			if which == "" {
				which = "each pool"
			}
			return fmt.Sprintf("a setting of the service: %s of %s", which, text.Count(r.CPUs, "thread"))
		},
	}
	shardsEffect = &Effect{
		Name: Shards, Modelled: true,
		Text: func(_ float64, r Remedy) string {
			if r.Factor < 1 {
				return "half the shards"
			}
			return "twice the shards"
		},
		Parameters: factorOf,
		Price:      func(r Remedy, p Pricing) string { return fmt.Sprintf("limits of %s each", text.CPUs(p.Limit/r.Factor)) },
	}
)

func factorOf(r Remedy) map[string]any { return map[string]any{"factor": r.Factor} }
