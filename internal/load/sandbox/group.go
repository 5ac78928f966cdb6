package sandbox

import (
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// Group is one cgroup of a sandbox.
type Group struct {
	sandbox *Sandbox
	at      cgroup.Group
}

// Group makes a cgroup in this one, with the CPUs and memory nodes of this one. On
// v2 this one can then have no process.
func (g *Group) Group(name string) (*Group, error) {
	s := g.sandbox
	if err := s.enableBelow(g.at); err != nil {
		return nil, err
	}
	at := below(g.at, name)
	if err := s.make(at); err != nil {
		return nil, err
	}
	// On v2 an empty list inherits. On v1 it lets no task in.
	if v, _ := s.fs.Version(cgroup.CPUSet); v == cgroup.V1 {
		for _, file := range []string{cgroup.FileMems, cgroup.FileCPUs} {
			value, err := s.fs.Read(cgroup.CPUSet, g.at.CPUSetPath, file)
			if err != nil {
				return nil, err
			}
			if err := s.fs.Write(cgroup.CPUSet, at.CPUSetPath, file, value); err != nil {
				return nil, err
			}
		}
	}
	return &Group{sandbox: s, at: at}, nil
}

// SetLimit puts a limit in force. It writes a limit that is in force already once
// more: the kernel then refills the quota (tg_set_cfs_bandwidth), so that earlier
// load leaves no debt.
func (g *Group) SetLimit(want cgroup.Limit) error {
	fs := g.sandbox.fs
	v, _ := fs.Version(cgroup.CPU)
	now, err := cgroup.ReadLimit(fs, g.at.Path)
	if err != nil {
		return err
	}
	writes := cgroup.LimitWrites(v, now, want, true)
	if len(writes) == 0 && want.Limited() {
		writes = append(cgroup.LimitWrites(v, now, cgroup.Unlimited(), true), cgroup.LimitWrites(v, cgroup.Unlimited(), want, false)...)
	}
	for _, w := range writes {
		if err := fs.Write(cgroup.CPU, g.at.Path, w.File, w.Value); err != nil {
			return err
		}
	}
	return nil
}

// SetCPUs confines the group to some of the sandbox's CPUs.
func (g *Group) SetCPUs(cpus cpuset.CPUSet) error {
	_, err := cgroup.WriteCPUs(g.sandbox.fs, g.at.CPUSetPath, cpus)
	return err
}

// SetWeight gives the group a cpu.weight, 1 to 10000.
func (g *Group) SetWeight(weight uint64) error { return g.SetShares(cgroup.SharesOfWeight(weight)) }

// SetShares gives the group cpu.shares of v1, 2 to 262144, or the cpu.weight of v2
// that means the same.
func (g *Group) SetShares(shares uint64) error {
	v, _ := g.sandbox.fs.Version(cgroup.CPU)
	w := cgroup.SharesWrite(v, shares)
	return g.sandbox.fs.Write(cgroup.CPU, g.at.Path, w.File, w.Value)
}

// Attach moves a process into the group, in all hierarchies.
func (g *Group) Attach(pid int) error {
	for _, h := range g.sandbox.all() {
		if err := h.attach(g.at, pid); err != nil {
			return err
		}
	}
	return nil
}

// At returns the group's path in each hierarchy.
func (g *Group) At() cgroup.Group { return g.at }

// Stat reads the group's counters.
func (g *Group) Stat() (cgroup.Stat, error) { return cgroup.ReadStat(g.sandbox.fs, g.at) }
