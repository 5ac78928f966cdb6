package capacity

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/workload/service"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/text"
)

// variant is one remedy as the bench sets it: the limit and the CPUs of its own
// cgroup, and the service as that remedy has it.
type variant struct {
	name    string
	limit   cgroup.Limit
	cpus    cpuset.CPUSet
	service service.Spec
	granted float64 // CPUs that it may use on average, alone on the host
}

// Learns is how long the library gets to find where the kernel's periods begin.
const Learns = 3 * time.Second

// warm is how long the load runs before it is measured: what the write of a longer period gave must be spent.
func (a variant) warm() time.Duration {
	switch {
	case a.name == Budget:
		return warm + Learns
	case a.limit.Limited():
		return max(warm, forecast.SettlePeriods*a.limit.Period)
	}
	return warm
}

// measured is how long a step of so long takes under the variant.
func (a variant) measured(step time.Duration) time.Duration {
	if !a.limit.Limited() {
		return step
	}
	return max(step, forecast.MeasuredPeriods*a.limit.Period)
}

// The remedies, in the order of the table. The first is what the others are
// compared with.
const (
	Quota   = "quota"         // the plain limit
	Burst   = forecast.Burst  // with a burst as large as the quota
	Burst1s = "burst-1s"      // the same limit over 1 s, with a burst as large as that quota
	Period  = forecast.Period // the same limit over 10 ms
	Raise   = forecast.Raise  // 1.5 times the limit
	Weight  = forecast.Weight // no limit
	Pin     = forecast.Pin    // as many CPUs as the limit, no quota
	Pools   = forecast.Pools  // the limit, with pools sized by it
	Budget  = forecast.Budget // the limit, and long work within the budget of the project's library; where it is asked for
	Fix     = "fix"           // what fix chooses from a recording of the plain limit; where it is asked for
)

// remedies are the variants that are measured by default.
func remedies() []string { return []string{Quota, Burst, Burst1s, Period, Raise, Weight, Pin, Pools} }

// Variants are the names of all variants. Fix is measured only where it is asked for, since it needs a recording; Budget too, since each
// of its steps takes seconds more.
func Variants() []string { return append(remedies(), Budget, Fix) }

// ShortPeriod of the variant Period.
const ShortPeriod = 10 * time.Millisecond

// Raised is by how much the variant Raise raises: twice would be no limit on 2 CPUs.
const Raised = 1.5

// limitCPUs is the limit of a container on a host of so many CPUs.
func limitCPUs(cpus int) int {
	if cpus < 4 {
		return 1
	}
	return 2
}

// variants makes the chosen remedies for a shape.
func variants(names []string, shape Shape, cpus, pinned cpuset.CPUSet, limit int) ([]variant, error) {
	quota := cgroup.Limit{Quota: time.Duration(limit) * cgroup.DefaultPeriod, Period: cgroup.DefaultPeriod}
	var all []variant
	for _, name := range names {
		a := variant{name: name, limit: quota, cpus: cpus, service: shape.Service, granted: float64(limit)}
		switch name {
		case Quota, Fix: // what fix chooses is known only after a recording
		case Burst:
			a.limit.Burst = quota.Quota
		case Burst1s:
			a.limit = bursting(quota, time.Second)
		case Period:
			a.limit = cgroup.Limit{Quota: time.Duration(limit) * ShortPeriod, Period: ShortPeriod}
		case Raise:
			a.limit.Quota = time.Duration(Raised * float64(quota.Quota))
			a.granted = Raised * float64(limit)
		case Weight:
			a.limit, a.granted = cgroup.Unlimited(), float64(cpus.Size())
		case Pin:
			a.limit, a.cpus = cgroup.Unlimited(), pinned
		case Pools:
			a.service = shape.Sized
		case Budget:
			a.service = shape.held(cpus.Size())
		default:
			return nil, fmt.Errorf("remedy %.40q: choose from %s%s", name, strings.Join(Variants(), ", "),
				text.DidYouMean(name, Variants()))
		}
		if slices.ContainsFunc(all, func(b variant) bool { return b.name == name }) {
			return nil, fmt.Errorf("remedy %s: is there twice", name)
		}
		all = append(all, a)
	}
	return all, nil
}

// bursting is a limit in another period, with a burst of one quota.
func bursting(l cgroup.Limit, period time.Duration) cgroup.Limit {
	l = l.In(period)
	l.Burst = l.Quota
	return l
}

// lastCPUs are the n highest-numbered of a set.
func lastCPUs(set cpuset.CPUSet, n int) cpuset.CPUSet {
	list := set.List()
	return cpuset.New(list[max(0, len(list)-n):]...)
}
