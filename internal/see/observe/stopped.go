package observe

import (
	"cmp"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// Throttle is what the counters of one container and its ancestors gained over a window: the input of Stopped.
type Throttle struct {
	Window time.Duration // above 0
	// CPUs is how many CPUs the container may run on; below 1: not known, and then no lower bound above 0 can be given.
	CPUs int
	// Own is the throttled time of its own quota, a sum over CPUs; nil: not measured.
	Own *time.Duration
	// Local is what cpu.stat.local gained, own and inherited, a sum over CPUs; nil: the kernel has none.
	Local *time.Duration
	// Path is its own cgroup path; Ancestors are the levels above, nearest first, as far as they have a quota.
	Path      string
	Ancestors []LevelThrottle
	// OwnQuota: its own level had a quota at the start or the end of the window. Limit is that of the end.
	OwnQuota bool
	Limit    cgroup.Limit
	// ThrottledPeriods are those of its own quota; Used is the CPU time it used, nil: not measured.
	ThrottledPeriods uint64
	Used             *time.Duration
	// Hidden: there are, or may be, levels above that we cannot see (a cgroup namespace, a bind mount) or could not
	// read.
	Hidden bool
}

// LevelThrottle is the throttled time that one ancestor's quota caused over the window, in all its children together,
// a sum over CPUs.
type LevelThrottle struct {
	Path      string
	Throttled time.Duration
}

// Verdict is what Stopped makes of a Throttle.
type Verdict struct {
	// Low and High bound the stopped time: 0 <= Low <= High <= window; nil: not measured.
	Low, High *time.Duration
	// By and All as Observation.ThrottledBy and ThrottledByAll.
	By  string
	All []Share
}

// Stopped bounds the wall time during which at least one runnable thread was held back, from counters that only know
// sums over CPUs, and says whose quota it was. The rules, with T the time throttled by any level:
//
//   - With cpu.stat.local, T is its gain. At least one CPU was throttled for T / CPUs, if all were throttled together;
//     at most for T, if one at a time; never longer than the window: Low = T / CPUs, High = min(T, window).
//   - Without it (before 6.6), throttled time also counts CPUs on which nothing of the group wanted to run, so Low = 0;
//     an ancestor's throttled time may all have fallen on other children or all on this one: High = min(own +
//     ancestors', window).
//   - No quota at any level at either end of the window, and all levels visible: exactly 0, whatever files there are.
//     Without a quota the kernel never throttles (tg_set_cfs_bandwidth, runtime_enabled).
//   - Neither: nil.
//   - A stop that has not ended is in none of these counters, but nr_throttled goes on. A container whose quota went to
//     pay a debt (since 6.18 a system call runs to its end and is charged afterwards: 60 ms at 1 ms per period are 60
//     periods) shows no throttled time and n throttled periods in which it used less than n - 1 quotas. Then High is
//     n + 1 periods, at most the window.
//
// Shares: the own level's is its own throttled time. What is inherited is T - own; an ancestor's counter holds the
// throttling of all its children, so its share is at most what this child inherited, and where several ancestors
// together claim more, each is scaled down alike. What is inherited and claimed by no visible level is ByUnknown where
// levels are hidden or nobody claims anything; otherwise it is an unthrottling that fell between the reading of two
// files, and the next window has it the other way round.
func Stopped(t Throttle) Verdict {
	limited := t.OwnQuota || len(t.Ancestors) > 0
	if !limited && !t.Hidden {
		return exactly(0)
	}
	own := value(t.Own)
	if t.Local != nil {
		v := Verdict{Low: new(time.Duration), High: new(time.Duration)}
		total := max(*t.Local, own)
		if t.CPUs >= 1 {
			*v.Low = min(total/time.Duration(t.CPUs), t.Window)
		}
		*v.High = min(total, t.Window)
		v.All = shares(t, own, total-own)
		v.By = by(t.Path, v.All)
		return underWay(t, v)
	}
	if t.Own == nil || (t.Hidden && !limited) {
		return Verdict{}
	}
	high := own
	for _, a := range t.Ancestors {
		high = min(high+a.Throttled, t.Window)
	}
	v := Verdict{Low: new(time.Duration), High: new(min(high, t.Window)), All: ownAndAncestors(t, own, 1)}
	v.By = by(t.Path, v.All)
	return underWay(t, v)
}

// underWay widens a verdict of nothing by a stop that goes on.
func underWay(t Throttle, v Verdict) Verdict {
	n := time.Duration(min(t.ThrottledPeriods, 1<<20))
	if *v.High > 0 || n < 2 || t.Used == nil || !t.Limit.Limited() || *t.Used >= (n-1)*t.Limit.Quota {
		return v
	}
	*v.High, v.By = min((n+1)*t.Limit.Period, t.Window), BySelf
	return v
}

// exactly is a verdict without an interval.
func exactly(d time.Duration) Verdict { return Verdict{Low: new(d), High: new(d)} }

// shares divides what cpu.stat.local counted among the levels.
func shares(t Throttle, own, inherited time.Duration) []Share {
	if t.Own != nil && len(t.Ancestors) == 0 && !t.Hidden {
		own, inherited = own+inherited, 0 // there is no other level
	}
	var claimed time.Duration
	t.Ancestors = slices.Clone(t.Ancestors)
	for i := range t.Ancestors {
		a := &t.Ancestors[i]
		a.Throttled = min(a.Throttled, inherited)
		claimed += a.Throttled
	}
	scale := 1.0
	if claimed > inherited {
		scale = float64(inherited) / float64(claimed)
	}
	all := ownAndAncestors(t, own, scale)
	if rest := inherited - claimed; rest > 0 && (t.Hidden || len(all) == 0) {
		all = append(all, Share{ByUnknown, rest.Seconds()})
		sortShares(all)
	}
	return all
}

// ownAndAncestors lists the levels that cost something, the ancestors' parts scaled, most first.
func ownAndAncestors(t Throttle, own time.Duration, scale float64) []Share {
	var all []Share
	if own > 0 {
		all = append(all, Share{t.Path, own.Seconds()})
	}
	for _, a := range t.Ancestors {
		if a.Throttled > 0 {
			all = append(all, Share{a.Path, a.Throttled.Seconds() * scale})
		}
	}
	sortShares(all)
	return all
}

// sortShares puts the dearest first; among equals the order stays: nearest level first.
func sortShares(all []Share) {
	slices.SortStableFunc(all, func(a, b Share) int { return cmp.Compare(b.Seconds, a.Seconds) })
}

// by names the dearest level.
func by(self string, all []Share) string {
	switch {
	case len(all) == 0:
		return ""
	case all[0].Path == self:
		return BySelf
	}
	return all[0].Path
}

func value(d *time.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return *d
}
