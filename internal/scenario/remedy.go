package scenario

import (
	"fmt"
	"math"
	"slices"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/bandwidth"
)

// Refused is the error for a remedy that cannot be applied.
type Refused struct{ Cgroup, Why string }

func (r *Refused) Error() string { return r.Cgroup + ": " + r.Why }

// Remedied returns the scenario with its cgroups' remedies in force: changed limits and CPUs, and no remedy
// left. It returns nil if all could be applied.
func (s Scenario) Remedied() (Scenario, *Refused) {
	s.Cgroups = slices.Clone(s.Cgroups)
	changed := make([]bool, len(s.Cgroups))
	for i := range s.Cgroups {
		c := &s.Cgroups[i]
		r := c.Remedy
		if r == nil {
			continue
		}
		c.Remedy, changed[i] = nil, true
		if err := s.apply(i, *r); err != "" {
			return s, &Refused{Cgroup: c.Name, Why: err}
		}
	}
	return s, s.checkOrder(changed)
}

// checkOrder refuses remedies that leave a child's limit above its parent's, if the kernel does. It checks them
// together, because one may make room for another.
func (s *Scenario) checkOrder(changed []bool) *Refused {
	for i := range s.Cgroups {
		up, why := s.aboveParent(&s.Cgroups[i])
		switch {
		case why == "":
		case changed[i]:
			return &Refused{Cgroup: s.Cgroups[i].Name, Why: why}
		case changed[up]:
			return &Refused{Cgroup: s.Cgroups[up].Name, Why: s.Cgroups[i].Name + " below it: " + why}
		}
	}
	return nil
}

// effect is what a remedy does to a cgroup of a scenario.
type effect struct {
	kind RemedyKind
	// keys are those of its mapping in a scenario file; "!" marks one that must be there.
	keys []string
	// always: it needs no quota.
	always bool
	// apply puts it in force at a cgroup. The text says why it cannot be in force.
	apply func(s *Scenario, i int, r Remedy) string
}

// effects are those of all remedies that a scenario can have.
var effects = []effect{
	{Pin, []string{"cpus!"}, true, func(s *Scenario, i int, r Remedy) string { return s.pin(i, r.CPUs) }},
	{Burst, []string{"burst!"}, false, func(s *Scenario, i int, r Remedy) string {
		s.Cgroups[i].Limit.Burst = r.Burst
		return ""
	}},
	{Weight, nil, true, func(s *Scenario, i int, _ Remedy) string {
		s.Cgroups[i].Limit.Quota, s.Cgroups[i].Limit.Burst = bandwidth.NoQuota, 0
		return ""
	}},
	{Raise, []string{"factor!"}, false, func(s *Scenario, i int, r Remedy) string {
		l := &s.Cgroups[i].Limit
		l.Quota = bandwidth.QuotaOf(l.CPUs()*r.Factor, l.Period)
		return ""
	}},
	{Narrow, []string{"credit", "widest", "burst"}, false, func(s *Scenario, i int, r Remedy) string { return s.narrow(i, r) }},
	{Period, []string{"period!"}, false, func(s *Scenario, i int, r Remedy) string {
		s.Cgroups[i].Limit = s.Cgroups[i].Limit.In(r.Period)
		return ""
	}},
}

// Kinds are the remedies that a scenario can have.
func Kinds() []RemedyKind {
	kinds := make([]RemedyKind, len(effects))
	for i, e := range effects {
		kinds[i] = e.kind
	}
	return kinds
}

func (s *Scenario) apply(i int, r Remedy) string {
	c := &s.Cgroups[i]
	at := slices.IndexFunc(effects, func(e effect) bool { return e.kind == r.Kind })
	switch {
	case at < 0:
		return fmt.Sprintf("there is no remedy %q", r.Kind)
	case !effects[at].always && !c.Limit.Limited():
		return fmt.Sprintf("%s needs a quota, and this cgroup has none", r.Kind)
	}
	if why := effects[at].apply(s, i, r); why != "" || effects[at].always {
		return why
	}
	if err := c.Limit.Check(&s.Host.Rules); err != nil {
		return err.Error()
	}
	return ""
}

// NarrowPeriod is the period of a quota that narrow keeps without credit.
const NarrowPeriod = 10 * time.Millisecond

// Shortened returns the same limit in a shorter period: that one, or the shortest in whole milliseconds in which the kernel
// takes the quota. It is false, and the limit as it was, where its period is as short already.
func Shortened(l bandwidth.Limit, period time.Duration) (bandwidth.Limit, bool) {
	if l.In(period).Quota < bandwidth.MinQuota {
		period = time.Duration(math.Ceil(float64(bandwidth.MinQuota)/l.CPUs()/float64(time.Millisecond))) * time.Millisecond
	}
	if period = min(period, bandwidth.MaxPeriod); period >= l.Period {
		return l, false
	}
	return l.In(period), true
}

// narrow bounds the CPUs that a cgroup uses at once. With credit it does what the scheduler of sched_ext does: the
// limit is kept without a quota, whatever limits stand above and below. Without, it does what a cpuset does: a
// limit of whole CPUs then needs no quota. Another limit keeps its quota: in short periods, or with a burst in
// the periods that it has.
func (s *Scenario) narrow(i int, r Remedy) string {
	c := &s.Cgroups[i]
	cpus := c.Limit.CPUs()
	whole := cpus == math.Trunc(cpus)
	switch {
	case r.Burst > 0 && (whole || r.Credit > 0):
		return fmt.Sprintf("narrow with a burst needs a quota that stays: no whole limit, and no credit; this limit is %.3g CPUs", cpus)
	case r.Credit > 0:
		return s.narrowWithCredit(i, r)
	case r.Widest > 0:
		return "narrow: widest is how wide it may be while it has credit: give credit too"
	}
	for j := range s.Cgroups {
		if j != i && s.below(j, i) && (s.Cgroups[j].Limit.Limited() || s.Cgroups[j].Width > 0) {
			return fmt.Sprintf("narrow: %s below it has a limit of its own: narrow that one", s.Cgroups[j].Name)
		}
	}
	c.Width = int(math.Ceil(cpus))
	switch {
	case r.Burst > 0:
		c.Limit.Burst = r.Burst
	case whole:
		c.Limit.Quota, c.Limit.Burst = bandwidth.NoQuota, 0
	default:
		c.Limit, _ = Shortened(c.Limit, NarrowPeriod)
	}
	return ""
}

// narrowWithCredit keeps a limit by width and saved CPU time.
func (s *Scenario) narrowWithCredit(i int, r Remedy) string {
	c := &s.Cgroups[i]
	cpus := c.Limit.CPUs()
	if r.Widest > 0 && float64(r.Widest) < cpus {
		return fmt.Sprintf("narrow: widest %d is below the limit of %.3g CPUs: give that or more", r.Widest, cpus)
	}
	c.Width, c.Cap, c.Credit, c.Widest = int(math.Ceil(cpus)), cpus, r.Credit, r.Widest
	c.Limit.Quota, c.Limit.Burst = bandwidth.NoQuota, 0
	return ""
}

// pin gives a cgroup the n highest-numbered of its CPUs. All cgroups that are not below it lose them, and no
// quota at or above it stays.
func (s *Scenario) pin(i, n int) string {
	have := s.Effective(&s.Cgroups[i]).List()
	if len(have) <= n && len(have) == s.Host.CPUs {
		return fmt.Sprintf("pin to %d of %d CPUs leaves none for others", n, len(have))
	}
	if len(have) < n {
		return fmt.Sprintf("pin to %d CPUs: it may use %d", n, len(have))
	}
	own := cpuset.New(have[len(have)-n:]...)
	s.Cgroups[i].CPUs, s.Cgroups[i].Alone = own, true
	s.Host.Reserved = s.Host.Reserved.Union(own)
	for up := i; up >= 0; up = s.Cgroups[up].Parent {
		s.Cgroups[up].Limit.Quota, s.Cgroups[up].Limit.Burst = bandwidth.NoQuota, 0
	}
	for j := range s.Cgroups {
		if s.related(i, j) {
			continue
		}
		s.Cgroups[j].CPUs = s.Effective(&s.Cgroups[j]).Difference(own)
		if s.Cgroups[j].CPUs.IsEmpty() {
			return fmt.Sprintf("pin to %d CPUs leaves none for %s", n, s.Cgroups[j].Name)
		}
	}
	for j := range s.Workloads {
		if w := &s.Workloads[j]; s.CPUsOf(w).IsEmpty() {
			return fmt.Sprintf("pin to %d CPUs leaves none for workload %s", n, w.Name)
		}
	}
	return ""
}

// related reports whether one of two cgroups is the other or a descendant of it.
func (s *Scenario) related(i, j int) bool { return s.below(i, j) || s.below(j, i) }

// below reports whether a cgroup is another one or a descendant of it; -1, the root, is not.
func (s *Scenario) below(i, above int) bool {
	for ; i >= 0; i = s.Cgroups[i].Parent {
		if i == above {
			return true
		}
	}
	return false
}
