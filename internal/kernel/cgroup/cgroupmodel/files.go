package cgroupmodel

import (
	"slices"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"golang.org/x/sys/unix"
)

// settings returns the writable files of a cgroup, in a fixed order.
func (k *Kernel) settings(t *tree, g *group) []string {
	var all []string
	add := func(when bool, files ...string) {
		if when {
			all = append(all, files...)
		}
	}
	inner := g.parent != nil
	if t.version == cgroup.V1 {
		add(true, cgroup.FileCloneChildren)
		add(g.cpu != nil, "cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.shares")
		add(g.cpu != nil && !k.config.NoBurst, "cpu.cfs_burst_us")
		add(g.cpu != nil && !k.config.NoIdle, cgroup.FileIdle)
		add(g.set != nil, cgroup.FileCPUs, cgroup.FileMems, cgroup.FileExclusiveV1, cgroup.FileSchedLoadBalanceV1)
		return all
	}
	add(true, cgroup.FileSubtreeControl)
	add(inner, cgroup.FileType)
	add(inner && g.cpu != nil, "cpu.max", "cpu.weight")
	add(inner && g.cpu != nil && !k.config.NoBurst, "cpu.max.burst")
	add(inner && g.cpu != nil && !k.config.NoIdle, cgroup.FileIdle)
	add(inner && g.set != nil, cgroup.FileCPUs, cgroup.FileMems, cgroup.FilePartition, cgroup.FileExclusive)
	return all
}

// files returns all files of a cgroup.
func (k *Kernel) files(t *tree, g *group) []string {
	all := append(k.settings(t, g), cgroup.FileProcs, cgroup.ThreadsFile(t.version))
	if t.version == cgroup.V2 {
		all = append(all, cgroup.FileControllers, cgroup.FileStat)
		if g.cpu != nil && !k.config.NoStatLocal {
			all = append(all, cgroup.FileStatLocal)
		}
		if g.set != nil {
			all = append(all, cgroup.EffectiveCPUsFile(t.version), cgroup.EffectiveMemsFile(t.version), "cpuset.cpus.exclusive.effective")
		}
		return all
	}
	if g.cpu != nil {
		all = append(all, cgroup.FileStat)
		if !k.config.NoStatLocal {
			all = append(all, cgroup.FileStatLocal)
		}
	}
	if g.set != nil {
		all = append(all, cgroup.EffectiveCPUsFile(t.version), cgroup.EffectiveMemsFile(t.version))
	}
	if slices.Contains(t.controllers, cgroup.CPUAcct) {
		all = append(all, "cpuacct.usage")
	}
	return all
}

// content reads a file.
func (k *Kernel) content(t *tree, g *group, file string) (string, error) {
	if !k.hasFile(t, g, file) {
		return "", errNoFile
	}
	if text, ok := g.pinned[file]; ok {
		return text, nil
	}
	switch file {
	case cgroup.FileProcs:
		if t.version == cgroup.V2 && g.threaded {
			return "", unix.EOPNOTSUPP
		}
		return k.list(t, g, false), nil
	case cgroup.ThreadsFile(t.version):
		return k.list(t, g, true), nil
	case cgroup.FileCloneChildren:
		return flag(g.clone), nil
	case cgroup.FileSubtreeControl:
		var on []cgroup.Controller
		for c := range g.subtree {
			on = append(on, c)
		}
		return join(on), nil
	case cgroup.FileControllers:
		return join(t.enabled(g)), nil
	case cgroup.FileType:
		return k.kind(t, g), nil
	case "cpuacct.usage":
		return "0", nil
	case cgroup.FileStatLocal:
		if t.version == cgroup.V2 {
			return "throttled_usec 0", nil
		}
		return "throttled_time 0", nil
	case cgroup.FileStat:
		return statText(t, g), nil
	}
	if g.cpu != nil {
		if text, ok := g.readBandwidth(file); ok {
			return text, nil
		}
	}
	if g.set != nil {
		if text, ok := k.readCPUs(t, g, file); ok {
			return text, nil
		}
	}
	return "", errNoFile
}

// statText returns a cpu.stat whose counters are zero.
func statText(t *tree, g *group) string {
	switch {
	case t.version == cgroup.V1:
		return "nr_periods 0\nnr_throttled 0\nthrottled_time 0\nnr_bursts 0\nburst_time 0"
	case g.cpu == nil:
		return "usage_usec 0\nuser_usec 0\nsystem_usec 0"
	}
	return "usage_usec 0\nuser_usec 0\nsystem_usec 0\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\nnr_bursts 0\nburst_usec 0"
}

// store writes a file.
func (k *Kernel) store(t *tree, g *group, file, value string) error {
	if !k.hasFile(t, g, file) {
		return errNoFile
	}
	if !slices.Contains(k.settings(t, g), file) {
		return unix.EINVAL
	}
	switch file {
	case cgroup.FileCloneChildren:
		n, err := parseUnsigned(value)
		if err == nil {
			g.clone = n != 0
		}
		return err
	case cgroup.FileSubtreeControl:
		return k.setSubtree(t, g, value)
	case cgroup.FileType:
		return k.setType(t, g, value)
	}
	if g.cpu != nil {
		if _, ok := g.readBandwidth(file); ok {
			return k.writeBandwidth(t, g, file, value)
		}
	}
	return k.writeCPUs(t, g, file, value)
}

// Pin makes a file read as text from now on, whatever is written. It serves for counters, and for state that is not
// modelled. text "" ends it. It reports whether the cgroup exists.
func (k *Kernel) Pin(c cgroup.Controller, path, file, text string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, g, err := k.lookup(c, path)
	if err != nil {
		return false
	}
	if text == "" {
		delete(g.pinned, file)
	} else {
		g.pinned[file] = text
	}
	return true
}
