package sandbox

import (
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// Group is one cgroup of a home.
type Group struct {
	home  *Home
	at    cgroup.Group
	limit cgroup.Limit // in force
}

// Group makes a cgroup in the home.
func (h *Home) Group(name string) (*Group, error) {
	at, err := h.make(h.top, name)
	if err != nil {
		return nil, err
	}
	limit, err := cgroup.ReadLimit(h.host, at.Path)
	return &Group{home: h, at: at, limit: limit}, err
}

// Group makes a cgroup in this one. On v2 this one can then have no processes of
// its own.
func (g *Group) Group(name string) (*Group, error) {
	if err := g.home.handOn(g.at); err != nil {
		return nil, err
	}
	at, err := g.home.make(g.at, name)
	if err != nil {
		return nil, err
	}
	limit, err := cgroup.ReadLimit(g.home.host, at.Path)
	return &Group{home: g.home, at: at, limit: limit}, err
}

// SetLimit puts a limit in force. Where it was in force already it is written
// nevertheless: that is a free refill of the quota (tg_set_cfs_bandwidth), which
// wipes what an earlier load owed.
func (g *Group) SetLimit(want cgroup.Limit) error {
	v, _ := g.home.host.Version(cgroup.CPU)
	writes := cgroup.LimitWrites(v, g.limit, want)
	if len(writes) == 0 && want.Limited() {
		if err := g.SetLimit(cgroup.Unlimited()); err != nil {
			return err
		}
		return g.SetLimit(want)
	}
	for _, w := range writes {
		if err := g.home.host.Write(cgroup.CPU, g.at.Path, w.File, w.Value); err != nil {
			return err
		}
	}
	g.limit = want
	return nil
}

// SetCPUs confines the group to some of the home's CPUs.
func (g *Group) SetCPUs(cpus cpuset.CPUSet) error {
	_, err := cgroup.WriteCPUs(g.home.host, g.at.CPUSetPath, cpus)
	return err
}

// SetWeight gives the group a cpu.weight, 1 to 10000.
func (g *Group) SetWeight(weight uint64) error {
	return g.home.weigh(g.at, cgroup.SharesOfWeight(weight))
}

// Attach moves a process in, in all hierarchies.
func (g *Group) Attach(pid int) error {
	for _, c := range g.home.hierarchies {
		if err := g.home.host.Attach(c, in(g.at, c), pid); err != nil {
			return err
		}
	}
	return nil
}

// At is where the group is, in each hierarchy.
func (g *Group) At() cgroup.Group { return g.at }

// Stat reads the group's counters.
func (g *Group) Stat() (cgroup.Stat, error) { return cgroup.ReadStat(g.home.host, g.at) }
