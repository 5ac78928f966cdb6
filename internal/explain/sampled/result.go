package sampled

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
)

// result are the figures.
func (a *Analysis) result(hostUsed *time.Duration) diagnose.Sampled {
	t, sum := &a.target, &a.sums
	s := diagnose.Sampled{
		Target: t.Name, Path: t.Path, Kernel: t.Kernel, Start: t.Start, Window: sum.window, CPUsAllowed: t.CPUsAllowed,
		CPUsOnline: t.CPUsOnline, Used: sum.used, Stops: sum.stops, LongestStop: sum.longestStop, Width: sum.width, Wanted: sum.wanted,
		LimitUnknown: a.unknown, Widest: sum.widest, Above: sum.above, Throttled: sum.throttled, AllowedWaiting: sum.allowedWait,
	}
	if sum.window > 0 {
		s.Below, s.BelowOwn = float64(sum.below)/float64(sum.window), float64(sum.belowOwn)/float64(sum.window)
	}
	if a.first != nil && a.before.Used != nil && a.before.At > a.first.At && *a.before.Used >= *a.first.Used {
		s.Use = new((*a.before.Used - *a.first.Used).Seconds() / (a.before.At - a.first.At).Seconds())
	}
	known := true
	for i, l := range t.Levels {
		one, q := diagnose.SampledLevel{Level: l}, &a.quotas[i]
		if q.read {
			one.Counters = &q.gained
			one.Counters.Stopped = sum.byLevel[i]
		}
		known = known && (q.read || q.quota == 0)
		s.Levels = append(s.Levels, one)
		if i == 0 {
			s.OwnStopped = sum.byLevel[i]
		} else {
			s.AncestorStopped += sum.byLevel[i]
		}
	}
	if known && len(t.Levels) > 0 {
		s.Stopped = &sum.stopped
	}
	own, divided := a.ownShare(hostUsed)
	if s.Divided = divided; divided {
		s.BehindOwn = time.Duration(own * float64(sum.queuedWall))
		s.BehindOthers = sum.queuedWall - s.BehindOwn
	} else {
		s.NotMeasured = append(s.NotMeasured, "who held the CPUs while threads waited: what the host's tasks used could not be read")
	}
	for _, p := range a.pools {
		waited := p.byOwnQuota + p.byAncestor + p.byCPU
		if p.cpu == 0 && waited == 0 {
			continue
		}
		one := diagnose.SampledPool{Name: p.key.name, Process: p.key.process, Threads: p.threads,
			Working: diagnose.Working(p.byThread, p.cpu),
			Main:    !p.beside, Helper: !p.serves,
			CPU: p.cpu, CPUThrottled: p.throttled, Most: p.most, Large: p.large, Widest: p.widest, Stopped: p.stopped, Holds: p.holds,
			ByOwnQuota: p.byOwnQuota, ByAncestor: p.byAncestor, Waited: p.waited}
		if divided {
			one.ByOwnThreads = time.Duration(own * float64(p.byCPU))
			one.ByOthers = p.byCPU - one.ByOwnThreads
		}
		s.Pools = append(s.Pools, one)
	}
	return s
}

// ownShare is the share of the waiting for CPUs that was behind the container's own threads. Others used as much of the CPUs as on
// the mean, if the container left them so much. ok is false where what others used is not known.
//
// Worked example: two CPUs, of which others use 0.5. While the container uses both, its threads wait for each other. While it
// uses 0.5, its share of the waiting is a half.
func (a *Analysis) ownShare(hostUsed *time.Duration) (share float64, ok bool) {
	allowed := float64(a.target.CPUsAllowed)
	if hostUsed == nil || a.sums.window <= 0 || allowed <= 0 {
		return 0, false
	}
	others := max(0, *hostUsed-a.sums.used).Seconds() / a.sums.window.Seconds()
	if online := float64(a.target.CPUsOnline); online > allowed {
		others *= allowed / online
	}
	own, all := 0.0, 0.0
	for i, queued := range a.sums.queued {
		width := (float64(i) + 0.5) / shares * allowed
		own += queued.Seconds() * width / (width + min(others, max(0, allowed-width)))
		all += queued.Seconds()
	}
	if all == 0 {
		return 1, true
	}
	return own / all, true
}
