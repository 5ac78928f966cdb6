package remedy

import (
	"slices"
	"strconv"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// OtherPeriods are the transactions in force that hold a limit in another period than its owner's, of a container whose owner is about to
// write one. They are to be taken back before: on cgroup v1 a runtime writes period and quota one after the other, and where the
// kernel refuses the second (EINVAL, tg_cfs_schedulable_down: more than the pod has) the container is left with the quota of one
// period in the other, such as 40 ms in 1 s. The kubelet compares quotas of pods without their periods, and so may not raise the pod
// first (kuberuntime_manager.go, doPodResizeAction, 1.36).
func OtherPeriods(held []txn.InForce, at func(path string) bool) (ids []string) {
	for _, h := range held {
		if at(h.Target) && slices.ContainsFunc(h.Changes, func(c change.Change) bool {
			return c.Kind == change.KindFile && cgroup.OtherPeriod(c.File, c.From, c.To)
		}) {
			ids = append(ids, h.ID)
		}
	}
	return ids
}

// BurstsAbove lowers the bursts of transactions in force for a resize: the owner of the cgroup that at names is about to write a quota
// there, in a period (0: it stays), and then one that differs by as many CPUs to its pod. The kernel refuses a quota below the burst
// (EINVAL, tg_set_cfs_bandwidth). limit is that of a cgroup now; false: it cannot be read. Each part takes the place of one
// transaction.
func BurstsAbove(held []txn.InForce, at func(path string) bool, want cgroup.Limit,
	limit func(path string) (cgroup.Limit, bool)) []txn.Part {
	if want.Quota <= 0 {
		return nil // no quota: any burst goes with it
	}
	var parts []txn.Part
	for _, h := range held {
		var lower []change.Change
		for _, c := range h.Changes {
			us, err := strconv.ParseInt(c.To, 10, 64)
			if c.Kind != change.KindFile || !cgroup.IsBurst(c.File) || err != nil {
				continue
			}
			room, ok := roomFor(h.Target, c.Path, at, want, limit)
			if !ok || time.Duration(us)*time.Microsecond <= room {
				continue
			}
			c.From, c.To, c.Why = c.To, strconv.FormatInt(room.Microseconds(), 10),
				"its owner sets a limit, and the kernel refuses a quota below a burst"
			lower = append(lower, c)
		}
		if len(lower) > 0 {
			parts = append(parts, txn.Part{
				Purpose: txn.Purpose{Target: txn.Target{Path: h.Target, Name: h.Name}, Remedy: h.Remedy,
					Parameters: h.Parameters, Expected: h.Expected},
				Changes: lower, Replaces: []string{h.ID}})
		}
	}
	return parts
}

// roomFor is the largest burst that a cgroup of a transaction may keep; false: the resize is not about it.
func roomFor(target, path string, at func(string) bool, want cgroup.Limit,
	limit func(string) (cgroup.Limit, bool)) (time.Duration, bool) {
	if at(path) {
		return want.Quota, true
	}
	own, ok := limit(target)
	above, known := limit(path)
	if !at(target) || !cgroup.Below(target, path) || !ok || !known || !own.Limited() || !above.Limited() || own.Period <= 0 {
		return 0, false
	}
	if want.Period == 0 {
		want.Period = own.Period
	}
	was, _ := own.Bound()
	is, _ := want.Bound()
	pod, _ := above.Bound()
	return max(0, bandwidth.QuotaOf(max(0, pod+is-was), want.Period)), true
}
