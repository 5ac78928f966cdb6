package apply

import (
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/txn"
)

// Count reads the bandwidth counters of a cgroup and its ancestors; nil: its own cannot be read. Levels whose own cannot be read are left
// out from there on.
func Count(env Env, path string) *txn.Counted {
	counted := &txn.Counted{At: env.now()}
	for ; path != "/" && path != ""; path = cgroup.Parent(path) {
		stat, err := cgroup.ReadStat(env.FS, cgroup.Group{Path: path})
		if err != nil || !stat.Bandwidth {
			break
		}
		id, err := env.FS.ID(cgroup.CPU, path)
		if err != nil {
			break
		}
		limit, err := cgroup.ReadLimit(env.FS, path)
		if err != nil {
			break
		}
		level := txn.Counters{CgroupID: id, Limited: limit.Limited(), Periods: stat.Periods, ThrottledPeriods: stat.ThrottledPeriods,
			ThrottledSeconds: stat.Throttled.Seconds()}
		if stat.ThrottledTotal != nil {
			level.LocalSeconds = new(stat.ThrottledTotal.Seconds())
		}
		counted.Levels = append(counted.Levels, level)
	}
	if len(counted.Levels) == 0 {
		return nil
	}
	return counted
}
