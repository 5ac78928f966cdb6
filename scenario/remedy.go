package scenario

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/bandwidth"
)

// Refused is a remedy that cannot be applied.
type Refused struct{ Cgroup, Why string }

func (r *Refused) Error() string { return r.Cgroup + ": " + r.Why }

// Remedied is the scenario after its cgroups' remedies: limits and CPUs are
// changed, and no remedy is left to do. nil: all could be applied.
func (s Scenario) Remedied() (Scenario, *Refused) {
	s.Cgroups = slices.Clone(s.Cgroups)
	for i := range s.Cgroups {
		c := &s.Cgroups[i]
		r := c.Remedy
		if r == nil {
			continue
		}
		c.Remedy = nil
		if err := s.apply(i, *r); err != "" {
			return s, &Refused{Cgroup: c.Name, Why: err}
		}
	}
	return s, nil
}

func (s *Scenario) apply(i int, r Remedy) string {
	c := &s.Cgroups[i]
	switch r.Kind {
	case Pin:
		return s.pin(i, r.CPUs)
	case Weight:
		c.Limit.Quota, c.Limit.Burst = bandwidth.NoQuota, 0
		return ""
	}
	if !c.Limit.Limited() {
		return fmt.Sprintf("%s needs a quota, and this cgroup has none", r.Kind)
	}
	if r.Kind == Burst {
		c.Limit.Burst = r.Burst
	} else {
		c.Limit.Quota = time.Duration(float64(c.Limit.Quota) * r.Factor)
	}
	if err := c.Limit.Check(&s.Host.Rules); err != nil {
		return err.Error()
	}
	return ""
}

// pin gives a cgroup the highest-numbered n of its CPUs to itself: everybody
// not below it loses them, and no quota at or above it is left.
func (s *Scenario) pin(i, n int) string {
	have := s.Effective(&s.Cgroups[i]).List()
	if len(have) <= n && len(have) == s.Host.CPUs {
		return fmt.Sprintf("pin to %d of %d CPUs leaves none for others", n, len(have))
	}
	if len(have) < n {
		return fmt.Sprintf("pin to %d CPUs: it may use %d", n, len(have))
	}
	own := cpuset.New(have[len(have)-n:]...)
	s.Cgroups[i].CPUs = own
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
	return ""
}

// related says whether one of two cgroups lies at or below the other.
func (s *Scenario) related(i, j int) bool {
	below := func(a, b int) bool {
		for ; a >= 0; a = s.Cgroups[a].Parent {
			if a == b {
				return true
			}
		}
		return false
	}
	return below(i, j) || below(j, i)
}
