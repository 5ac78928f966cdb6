package forecast

import (
	"errors"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/scenario"
)

// The kubelet gives a pod the sum of its containers' limits: a pod of one container has the same quota twice. A remedy of
// the container's quota alone then leaves its pod's, which stops it as before. Plans change both, and so do forecasts.

// isPod reports whether a cgroup is a pod's by its name: "pod<uid>" or, of the systemd driver, "...-pod<uid>.slice" (kubelet,
// pkg/kubelet/cm/pod_container_manager_linux.go). CRI-O appends ":<driver>".
func isPod(path string) bool {
	base, _, _ := strings.Cut(path[strings.LastIndexByte(path, '/')+1:], ":")
	slice, isSlice := strings.CutSuffix(base, ".slice")
	return strings.HasPrefix(base, "pod") && !isSlice || isSlice && strings.Contains(slice, "-pod")
}

// limited returns the cgroups whose limit a plan changes: the container's, the one that binds it, and its pods', from
// the container up.
func (at Cgroups) limited(s *scenario.Scenario) (all []int) {
	for i := at.Container; i >= 0; i = s.Cgroups[i].Parent {
		if s.Cgroups[i].Limit.Limited() && (i == at.Container || i == at.Binding || slices.Contains(at.Pods, i)) {
			all = append(all, i)
		}
	}
	return all
}

// above returns those of limited that are above the one that binds.
func (at Cgroups) above(s *scenario.Scenario) []int {
	all := at.limited(s)
	return all[slices.Index(all, at.Binding)+1:]
}

// burst puts a burst in force, as BurstEffect says.
func burst(s *scenario.Scenario, at Cgroups, r Remedy) {
	for _, i := range at.limited(s) {
		cgroup := &s.Cgroups[i]
		if TakesPeriod(cgroup.Limit, r.Period, i == at.Container || i == at.Binding) {
			cgroup.Limit = cgroup.Limit.In(r.Period)
		}
		most := r.Burst
		if i != at.Container && i != at.Binding {
			most = min(most, cgroup.Limit.Quota)
		}
		cgroup.Remedy = &scenario.Remedy{Kind: scenario.Burst, Burst: most}
	}
}

// raise puts a larger limit in force: ancestors get as much more, and what binds at least as much as is asked for.
func raise(s *scenario.Scenario, at Cgroups, r Remedy) {
	limit := s.Cgroups[at.Binding].Limit.CPUs()
	to := limit * r.Factor
	more := to - limit
	if own := s.Cgroups[at.Container].Limit; own.Limited() {
		more = max(0, to-own.CPUs())
	}
	for _, i := range at.limited(s) {
		cgroup := &s.Cgroups[i]
		now := cgroup.Limit.CPUs()
		want := max(now, to)
		if i != at.Container {
			want = max(to, now+more)
		}
		if i == at.Binding {
			cgroup.Remedy = &scenario.Remedy{Kind: scenario.Raise, Factor: r.Factor}
		} else if want > now {
			cgroup.Remedy = &scenario.Remedy{Kind: scenario.Raise, Factor: want / now}
		}
	}
}

// limitedTo returns a scenario with another limit in force, and no burst.
func limitedTo(s scenario.Scenario, at Cgroups, cpus float64) (scenario.Scenario, error) {
	for _, i := range at.limited(&s) {
		s.Cgroups[i].Limit.Burst = 0
	}
	raise(&s, at, Remedy{Factor: cpus / s.Cgroups[at.Binding].Limit.CPUs()})
	limited, refused := s.Remedied()
	if refused != nil {
		return s, errors.New(refused.Why)
	}
	return limited, nil
}

// soften makes the stops of the pods' quotas above the one that binds shorter or rarer, as a narrow does.
func soften(s *scenario.Scenario, at Cgroups, r Remedy) {
	for _, i := range at.above(s) {
		l := &s.Cgroups[i].Limit
		switch {
		case r.Credit > 0:
			l.Quota, l.Burst = bandwidth.NoQuota, 0
		case r.Burst > 0:
			l.Burst = min(r.Burst, l.Quota)
		default:
			*l, _ = scenario.Shortened(*l, scenario.NarrowPeriod)
		}
	}
}
