package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/strictyaml"
)

// SetHZ takes "continuous" or ticks per second.
func (h *Host) SetHZ(text string) {
	h.HZ, _ = strconv.Atoi(text)
	if h.HZ > 0 {
		h.Rules.Tick = time.Second / time.Duration(h.HZ)
	}
}

// Set overrides a constant of the kernel, for example with "5ms". The error names the known constants, or the
// bounds.
func (h *Host) Set(name, value string) error {
	v, err := time.ParseDuration(value)
	if value == "0" {
		v, err = 0, nil
	}
	if err != nil {
		return fmt.Errorf("%s=%s: give a time with its unit, such as 10ms", strictyaml.Shown(name), strictyaml.Shown(value))
	}
	own := map[string]*time.Duration{"timer_slack": &h.TimerSlack, "base_slice": &h.BaseSlice,
		"unthrottle_ipi": &h.UnthrottleIPI, "wake_cost": &h.WakeCosts.Long,
		"wake_cost_short": &h.WakeCosts.Short, "wake_cost_busy": &h.WakeCosts.Busy, "wake_delay": &h.WakeCosts.Delay,
		"line_own": &h.LineOwn, "line_other": &h.LineOther, "cold_cache": &h.ColdCache}
	if into, ok := own[name]; ok {
		if v < 0 || v > time.Second {
			return fmt.Errorf("%s=%v: give a time from 0 to 1s", name, v)
		}
		*into = v
		return nil
	}
	if !slices.Contains(bandwidth.Constants(), name) {
		return fmt.Errorf("%s: no such constant: choose from %s", strictyaml.Shown(name), strings.Join(Constants(), ", "))
	}
	return h.Rules.Set(name, v)
}

// Constants returns the names that Host.Set knows.
func Constants() []string {
	return append(bandwidth.Constants(), "base_slice", "timer_slack", "unthrottle_ipi", "wake_cost", "wake_cost_short",
		"wake_cost_busy", "wake_delay", "line_own", "line_other", "cold_cache")
}

// All returns the host's CPUs.
func (h *Host) All() cpuset.CPUSet { return upTo(h.CPUs) }

// upTo returns the first n numbers, from 0 on.
func upTo(n int) cpuset.CPUSet {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return cpuset.New(all...)
}

// Memory is about how many bytes a run needs, whatever its duration.
func (s *Scenario) Memory() int {
	const perCell, perThread, perWorkload, perRequest = 256, 256, 40 << 10, 32
	const onTheirWay = 100_000 // outstanding requests of one service, of all its shards together
	sum := (len(s.Cgroups) + 1) * s.Host.CPUs * perCell
	for _, w := range s.Workloads {
		sum += perWorkload + w.AllThreads()*perThread
		if w.Server != nil {
			if w.Shard == 0 {
				// Clients may have so many outstanding, and have figures per class.
				sum += onTheirWay*2*perRequest + (1+len(w.Server.Classes))*perWorkload
			}
			if _, _, simple := w.Server.Simple(); !simple {
				// The I/O threads together have this many unread requests.
				sum += onTheirWay * perRequest
			}
			for _, p := range w.Server.Pools {
				sum += p.Queue * perRequest
			}
		}
	}
	return sum
}

// check finds errors that no single key shows.
func (d *decoder) check(s *Scenario) {
	for i := range s.Cgroups {
		if d.err == nil {
			d.checkCgroup(s, &s.Cgroups[i])
		}
	}
	for _, w := range s.Workloads {
		key := join("workloads", w.Name)
		if w.Kind == Fib && w.Fast > w.Threads {
			d.failAt(join(key, "fast"), "%d of %d threads", w.Fast, w.Threads)
		}
		if w.Start >= s.Duration {
			d.failAt(join(key, "start"), "%v: the scenario ends at %v", w.Start, s.Duration)
		}
	}
	if m := s.Memory(); d.err == nil && m > maxMemory {
		d.failAt("workloads", "this would need %d MiB, and %d are allowed: fewer CPUs, cgroups or threads, or a "+
			"shorter queue", m>>20, maxMemory>>20)
	}
	if d.err == nil {
		if _, err := s.Remedied(); err != nil {
			d.failAt(join(join("cgroups", err.Cgroup), "remedy"), "%s", err.Why)
		}
	}
}

func (d *decoder) checkCgroup(s *Scenario, c *Cgroup) {
	key := join("cgroups", c.Name)
	if err := c.Limit.Check(&s.Host.Rules); err != nil {
		d.failAt(join(key, err.Setting), "%v is %s", err.Value, err.Why)
	}
	if !c.Limit.Limited() && c.Limit.Burst != 0 {
		d.failAt(join(key, "burst"), "%v: there is no quota", c.Limit.Burst)
	}
	if most := s.Host.All(); !c.CPUs.IsSubsetOf(most) {
		d.failAt(join(key, "cpus"), "%s: the host has CPUs 0-%d", c.CPUs, s.Host.CPUs-1)
	}
	if s.Effective(c).IsEmpty() {
		d.failAt(join(key, "cpus"), "%s: none of the parent's CPUs", c.CPUs)
	}
	d.checkMems(s, c, key)
	if _, why := s.aboveParent(c); why != "" {
		d.failAt(join(key, "quota"), "%s", why)
	}
}

// aboveParent returns the reason why cgroup v1 refuses a limit above that of the ancestor with index up
// (tg_cfs_schedulable_down, kernel/sched/core.c), or "".
func (s *Scenario) aboveParent(c *Cgroup) (up int, why string) {
	if s.Host.CgroupVersion != 1 || !c.Limit.Limited() {
		return -1, ""
	}
	for up := c.Parent; up >= 0; up = s.Cgroups[up].Parent {
		p := &s.Cgroups[up]
		if p.Limit.Limited() && p.Limit.CPUs() < c.Limit.CPUs() {
			return up, fmt.Sprintf("%.3g CPUs are more than the %.3g of %s: cgroup v1 refuses that", c.Limit.CPUs(), p.Limit.CPUs(), p.Name)
		}
	}
	return -1, ""
}

// CPUsOf returns the CPUs that a workload may use. These are its cgroup's CPUs, without those of a pinned
// cgroup that does not contain it. A cgroup's cpuset has the CPUs of the cgroups below it, so that its own
// processes would use them.
func (s *Scenario) CPUsOf(w *Workload) cpuset.CPUSet {
	cpus := s.Host.All()
	if w.Cgroup >= 0 {
		cpus = s.Effective(&s.Cgroups[w.Cgroup])
	}
	for i := range s.Cgroups {
		if s.Cgroups[i].Alone && !s.below(w.Cgroup, i) {
			cpus = cpus.Difference(s.Cgroups[i].CPUs)
		}
	}
	return cpus
}

// Effective returns the CPUs that a cgroup may use.
func (s *Scenario) Effective(c *Cgroup) cpuset.CPUSet {
	return s.intersect(s.Host.All(), c, func(c *Cgroup) cpuset.CPUSet { return c.CPUs })
}

// intersect returns the part of all that a cgroup's own set and those of its ancestors leave. An empty set
// leaves everything.
func (s *Scenario) intersect(cpuSet cpuset.CPUSet, c *Cgroup, own func(*Cgroup) cpuset.CPUSet) cpuset.CPUSet {
	for {
		if set := own(c); !set.IsEmpty() {
			cpuSet = cpuSet.Intersection(set)
		}
		if c.Parent < 0 {
			return cpuSet
		}
		c = &s.Cgroups[c.Parent]
	}
}
