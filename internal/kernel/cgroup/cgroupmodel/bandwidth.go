package cgroupmodel

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// bandwidth is the cpu controller's state, in the kernel's units.
type bandwidth struct {
	quota, period, burst int64 // us; quota < 0: no quota
	weight               uint64
	idle                 bool
}

func newBandwidth(v cgroup.Version) *bandwidth {
	b := &bandwidth{quota: -1, period: cgroup.DefaultPeriod.Microseconds(), weight: cgroup.DefaultShares}
	if v == cgroup.V2 {
		b.weight = cgroup.DefaultWeight
	}
	return b
}

// The kernel's bounds (kernel/sched/core.c), in us.
const (
	minQuota, minPeriod, maxPeriod = 1000, 1000, 1000000
	maxRuntime                     = 1<<44 - 1 // MAX_BW
	ratioShift                     = 20        // BW_SHIFT
)

// setBandwidth models tg_set_cfs_bandwidth: bounds first, then on v1 the limits of ancestors and children.
func (k *Kernel) setBandwidth(t *tree, g *group, want bandwidth) error {
	switch {
	case g.parent == nil,
		want.quota >= 0 && want.quota < minQuota,
		want.period < minPeriod || want.period > maxPeriod,
		want.quota > maxRuntime,
		want.quota >= 0 && (want.burst > want.quota || want.burst+want.quota > maxRuntime):
		return unix.EINVAL
	}
	old := *g.cpu
	*g.cpu = want
	if t.version == cgroup.V1 && !schedulable(t.root, -1) {
		*g.cpu = old
		return unix.EINVAL
	}
	return nil
}

// schedulable models tg_cfs_schedulable_down on v1. A group without a quota takes its parent's ratio; one with a quota
// must not exceed it.
func schedulable(g *group, parent int64) bool {
	ratio := parent
	if g.parent != nil && g.cpu.quota >= 0 {
		ratio = g.cpu.quota << ratioShift / g.cpu.period
		if parent >= 0 && ratio > parent {
			return false
		}
	}
	for _, child := range g.children {
		if !schedulable(child, ratio) {
			return false
		}
	}
	return true
}

// readBandwidth returns a file of the cpu controller; false for other files.
func (g *group) readBandwidth(file string) (string, bool) {
	b := g.cpu
	switch file {
	case "cpu.cfs_quota_us":
		return strconv.FormatInt(b.quota, 10), true
	case "cpu.cfs_period_us":
		return strconv.FormatInt(b.period, 10), true
	case "cpu.cfs_burst_us", "cpu.max.burst":
		return strconv.FormatInt(b.burst, 10), true
	case "cpu.shares", "cpu.weight":
		if b.idle {
			return map[string]string{"cpu.shares": "3", "cpu.weight": "0"}[file], true // WEIGHT_IDLEPRIO
		}
		return strconv.FormatUint(b.weight, 10), true
	case cgroup.FileIdle:
		return flag(b.idle), true
	case "cpu.max":
		if b.quota < 0 {
			return fmt.Sprintf("max %d", b.period), true
		}
		return fmt.Sprintf("%d %d", b.quota, b.period), true
	case "cpu.stat":
		return "nr_periods 0\nnr_throttled 0\nthrottled_time 0", true
	}
	return "", false
}

// writeBandwidth sets one of the cpu controller's files.
func (k *Kernel) writeBandwidth(t *tree, g *group, file, value string) error {
	want := *g.cpu
	var err error
	switch file {
	case "cpu.cfs_quota_us":
		if want.quota, err = parseSigned(value); want.quota < 0 {
			want.quota = -1
		}
	case "cpu.cfs_period_us":
		want.period, err = parseUnsigned(value)
	case "cpu.cfs_burst_us", "cpu.max.burst":
		want.burst, err = parseUnsigned(value)
	case "cpu.max":
		want, err = parseMax(want, value)
	case "cpu.shares":
		return g.setShares(value)
	case "cpu.weight":
		return g.setWeight(value)
	case cgroup.FileIdle:
		return g.setIdle(t.version, value)
	default:
		return unix.EINVAL
	}
	if err != nil {
		return err
	}
	return k.setBandwidth(t, g, want)
}

// parseMax models cpu_period_quota_parse; the period stays when the text has only a quota.
func parseMax(b bandwidth, value string) (bandwidth, error) {
	f := strings.Fields(value)
	if len(f) == 0 {
		return b, unix.EINVAL
	}
	var err error
	if f[0] == "max" {
		b.quota = -1
	} else if b.quota, err = parseUnsigned(f[0]); err != nil {
		return b, unix.EINVAL
	}
	if len(f) > 1 {
		if b.period, err = parseUnsigned(f[1]); err != nil {
			return b, unix.EINVAL
		}
	}
	return b, nil
}

func (g *group) setShares(value string) error {
	n, err := parseUnsigned(value)
	if err != nil {
		return err
	}
	if g.parent == nil || g.cpu.idle {
		return unix.EINVAL
	}
	g.cpu.weight = min(max(uint64(n), cgroup.MinShares), cgroup.MaxShares)
	return nil
}

func (g *group) setWeight(value string) error {
	n, err := parseUnsigned(value)
	if err != nil {
		return err
	}
	if n < cgroup.MinWeight || n > cgroup.MaxWeight {
		return unix.ERANGE
	}
	if g.cpu.idle {
		return unix.EINVAL
	}
	g.cpu.weight = uint64(n)
	return nil
}

// setIdle models sched_group_set_idle: clearing it leaves the default weight, not the previous one.
func (g *group) setIdle(v cgroup.Version, value string) error {
	n, err := parseSigned(value)
	switch {
	case err != nil:
		return err
	case g.parent == nil || n < 0 || n > 1:
		return unix.EINVAL
	case g.cpu.idle == (n == 1):
		return nil
	}
	g.cpu.idle, g.cpu.weight = n == 1, newBandwidth(v).weight
	return nil
}

// parseSigned models kstrtoll in base 0, parseUnsigned kstrtoull, cut to an int64.
func parseSigned(value string) (int64, error) {
	n, err := strconv.ParseInt(value, 0, 64)
	return n, numberError(err)
}

func parseUnsigned(value string) (int64, error) {
	n, err := strconv.ParseUint(value, 0, 64)
	return int64(min(n, 1<<62)), numberError(err)
}

func numberError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, strconv.ErrRange):
		return unix.ERANGE
	}
	return unix.EINVAL
}
