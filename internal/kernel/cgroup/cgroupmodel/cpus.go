package cgroupmodel

import (
	"strconv"
	"strings"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/topology"
	"golang.org/x/sys/unix"
	"k8s.io/utils/cpuset"
)

// cpus is the cpuset controller's state.
type cpus struct {
	configured, mems cpuset.CPUSet
	exclusive        bool          // v1: cpuset.cpu_exclusive
	balance          bool          // v1: cpuset.sched_load_balance
	exclusiveCPUs    cpuset.CPUSet // v2: cpuset.cpus.exclusive
}

// effective returns the CPUs that the tasks of g may run on. On v1 these are the configured ones. On v2 they are the
// configured ones that the parent has, or all of the parent's if none is left.
func (k *Kernel) effective(t *tree, g *group) cpuset.CPUSet {
	return inForce(t, g, k.config.CPUs, func(c *cpus) cpuset.CPUSet { return c.configured })
}

func (k *Kernel) effectiveMems(t *tree, g *group) cpuset.CPUSet {
	return inForce(t, g, k.config.Mems, func(c *cpus) cpuset.CPUSet { return c.mems })
}

func inForce(t *tree, g *group, cpuSet cpuset.CPUSet, given func(*cpus) cpuset.CPUSet) cpuset.CPUSet {
	if g.parent == nil {
		return cpuSet
	}
	above := inForce(t, g.parent, cpuSet, given)
	if g.set == nil {
		return above
	}
	own := given(g.set).Intersection(above)
	if t.version == cgroup.V2 && own.IsEmpty() {
		return above
	}
	return own
}

// cloneFrom copies the parent's CPUs and memory nodes into a new child (v1, cgroup.clone_children), unless a sibling is
// exclusive.
func (g *group) cloneFrom(parent *group) {
	for _, sibling := range parent.children {
		if sibling.set.exclusive {
			return
		}
	}
	g.set.configured, g.set.mems = parent.set.configured, parent.set.mems
}

// readCPUs returns a file of the cpuset controller; false for other files.
func (k *Kernel) readCPUs(t *tree, g *group, file string) (string, bool) {
	switch file {
	case "cpuset.cpus":
		return g.set.configured.String(), true
	case "cpuset.mems":
		return g.set.mems.String(), true
	case "cpuset.effective_cpus", "cpuset.cpus.effective":
		return k.effective(t, g).String(), true
	case "cpuset.effective_mems", "cpuset.mems.effective":
		return k.effectiveMems(t, g).String(), true
	case "cpuset.cpu_exclusive":
		return flag(g.set.exclusive), true
	case "cpuset.sched_load_balance":
		return flag(g.set.balance), true
	case "cpuset.cpus.partition":
		return "member", true
	case "cpuset.cpus.exclusive":
		return g.set.exclusiveCPUs.String(), true
	case "cpuset.cpus.exclusive.effective":
		return "", true
	}
	return "", false
}

func flag(on bool) string {
	if on {
		return "1"
	}
	return "0"
}

// writeCPUs sets one of the cpuset controller's files.
func (k *Kernel) writeCPUs(t *tree, g *group, file, value string) error {
	want := *g.set
	switch file {
	case "cpuset.cpus", "cpuset.mems", "cpuset.cpus.exclusive":
		if g.parent == nil {
			return unix.EACCES
		}
		cpuSet, list := k.config.CPUs, &want.configured
		switch file {
		case "cpuset.mems":
			cpuSet, list = k.config.Mems, &want.mems
		case "cpuset.cpus.exclusive":
			list = &want.exclusiveCPUs
		}
		set, err := parseSet(value, cpuSet)
		if err != nil {
			return err
		}
		if set.Equals(*list) {
			return nil
		}
		*list = set
	case "cpuset.cpu_exclusive", "cpuset.sched_load_balance":
		n, err := parseUnsigned(value)
		if err != nil {
			return err
		}
		if file == "cpuset.sched_load_balance" {
			want.balance = n != 0
		} else {
			want.exclusive = n != 0
		}
	case "cpuset.cpus.partition":
		if value != "member" {
			return unix.EOPNOTSUPP // not modelled: this project makes no partitions
		}
	default:
		return unix.EINVAL
	}
	if err := k.validate(t, g, want); err != nil {
		return err
	}
	*g.set = want
	return nil
}

// parseSet models bitmap_parselist: a number beyond the mask is ERANGE, all other faults are EINVAL. Then
// update_cpumask: a number that does not exist is EINVAL.
func parseSet(value string, cpuSet cpuset.CPUSet) (cpuset.CPUSet, error) {
	list := cpuSet.List()
	last := uint64(list[len(list)-1])
	if tooLarge(value, last) {
		return cpuset.CPUSet{}, unix.ERANGE
	}
	set, err := topology.ParseList(value)
	if err != nil || !set.IsSubsetOf(cpuSet) {
		return set, unix.EINVAL
	}
	return set, nil
}

// tooLarge reports whether the first wrong part is wrong because of a number above last.
func tooLarge(value string, last uint64) bool {
	for part := range strings.SplitSeq(value, ",") {
		part, _, _ = strings.Cut(part, ":")
		low, high, ranged := strings.Cut(part, "-")
		if !ranged {
			high = low
		}
		a, errA := strconv.ParseUint(low, 10, 32)
		b, errB := strconv.ParseUint(high, 10, 32)
		if errA != nil || errB != nil || a > b {
			return false
		}
		if b > last {
			return true
		}
	}
	return false
}

// validate models validate_change of kernel/cgroup/cpuset.c, the v1 part first.
func (k *Kernel) validate(t *tree, g *group, want cpus) error {
	if t.version == cgroup.V1 {
		for _, child := range g.children {
			if !child.set.within(&want) {
				return unix.EBUSY
			}
		}
		if g.parent != nil && !want.within(g.parent.set) {
			return unix.EACCES
		}
	}
	if g.parent == nil {
		return nil
	}
	if (t.version == cgroup.V1 || !k.config.ClearsPopulated) && k.populated(t, g, true) {
		if !g.set.configured.IsEmpty() && want.configured.IsEmpty() || !g.set.mems.IsEmpty() && want.mems.IsEmpty() {
			return unix.ENOSPC
		}
	}
	for _, sibling := range g.parent.children {
		if sibling == g || sibling.set == nil {
			continue
		}
		if (want.exclusive || sibling.set.exclusive) && !want.configured.Intersection(sibling.set.configured).IsEmpty() ||
			!want.exclusiveCPUs.Intersection(sibling.set.exclusiveCPUs).IsEmpty() {
			return unix.EINVAL
		}
	}
	return nil
}

// within models is_cpuset_subset.
func (c *cpus) within(outer *cpus) bool {
	return c.configured.IsSubsetOf(outer.configured) && c.mems.IsSubsetOf(outer.mems) && (!c.exclusive || outer.exclusive)
}
