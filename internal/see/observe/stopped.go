package observe

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// Throttle is the input of Stopped: what the counters of one container and its ancestors gained over a window.
type Throttle struct {
	Window time.Duration // above 0
	// CPUs is how many CPUs the container may run on. Below 1 means not known; then the lower bound is 0.
	CPUs int
	// Own is the throttled time of the container's own quota, a sum over CPUs; nil means not measured.
	Own *time.Duration
	// Local is the gain of cpu.stat.local, own and inherited, a sum over CPUs; nil where the kernel has none.
	Local *time.Duration
	// Path is the container's own cgroup path. Ancestors are the levels above that have a quota, nearest first.
	Path      string
	Ancestors []LevelThrottle
	// OwnQuota reports that the container's own level had a quota at the start or the end of the window. Limit is that
	// of the end.
	OwnQuota bool
	Limit    cgroup.Limit
	// Periods and ThrottledPeriods are those of the own quota. Used is the CPU time used; nil means not measured.
	Periods, ThrottledPeriods uint64
	Used                      *time.Duration
	// Inside are the cgroups below that have a quota. InsideUnknown reports that there may be others.
	Inside        []LevelThrottle
	InsideUnknown bool
	// Late is how much shorter than the window the time between the readings of one counter may be, because a reading
	// took long: its gain may lack so much. Early is how much longer it may be.
	Late, Early time.Duration
	// Hidden reports levels above that we may be unable to see (a cgroup namespace, a bind mount) or to read.
	Hidden bool
}

// LevelThrottle is the throttled time that the quota of one cgroup above or below caused over the window, in all its
// children together, a sum over CPUs.
type LevelThrottle struct {
	Path      string
	Throttled time.Duration
	// Period is the length of the quota's period; Periods and ThrottledPeriods are those that ended in the window.
	Period                    time.Duration
	Periods, ThrottledPeriods uint64
}

// Verdict is the result of Stopped.
type Verdict struct {
	// Low and High bound the stopped time: 0 <= Low <= High <= window; nil means not measured.
	Low, High *time.Duration
	// By and All are Observation.ThrottledBy and ThrottledByAll.
	By  string
	All []Share
	// NotMeasured says why there are no bounds, where it is not plain from the input; "" otherwise.
	NotMeasured string
}

// Stopped bounds the wall time during which a quota held back at least one runnable thread, from counters that only
// know sums over CPUs. It also says whose quota it was. The rules, where T is the time throttled by any level:
//
//   - With cpu.stat.local, T is its gain. If the kernel throttled all CPUs together, the container was stopped for T /
//     CPUs; if one CPU after the other, for T. So Low = T / CPUs, High = min(T, window).
//   - Without it (before 6.6), throttled time also counts CPUs on which no thread of the group was runnable, so Low =
//     0. An ancestor's throttled time may all belong to other children, or all to this one. So High = min(own +
//     ancestors', window).
//   - Without a quota at any level at either end of the window, and with all levels visible, stopped time is exactly 0.
//     The kernel then never throttles (tg_set_cfs_bandwidth, runtime_enabled).
//   - In all other cases it is nil.
//   - A stop that has not ended is in none of these counters, but nr_throttled grows. Since 6.18 a system call runs to
//     its end and the kernel charges it afterwards: 60 ms at 1 ms per period take 60 periods. Such a container shows no
//     throttled time and n throttled periods in which it used less than n - 1 quotas. Then High is n + 1 periods, at
//     most the window.
//   - A quota of a cgroup below holds back threads of the container too, and only that cgroup's cpu.stat counts it. It
//     raises High by its throttled time, and Low to that time / CPUs where there is cpu.stat.local.
//   - A throttled queue is in the counters when a period ends. Where none ended in a window shorter than two periods,
//     the result is nil: the quota may have held the container back all the time, or it was idle. Where every period
//     of a quota of its own or below ended throttled, a stop of up to a period is under way at the window's end: High
//     is higher by a period.
//   - A reading that the host delayed by more than a thousandth of the window moves both bounds by so much.
//
// Shares: the own level's share is its own throttled time, and the inherited time is T - own. An ancestor's counter
// holds the throttling of all its children, so its share is at most the inherited time. Where several ancestors
// together claim more, Stopped scales them down alike. If levels are hidden or no level claims anything, the unclaimed
// inherited time is ByUnknown. Otherwise the kernel unthrottled between the reading of two files, and the next window
// has the opposite difference.
func Stopped(t Throttle) Verdict {
	v := edges(t, inside(t, fromAbove(t)))
	if v.High == nil || v.NotMeasured != "" {
		v.Low, v.High = nil, nil
	}
	return v
}

// fromAbove is the verdict about the container's own quota and its ancestors'.
func fromAbove(t Throttle) Verdict {
	limited := t.OwnQuota || len(t.Ancestors) > 0
	if !limited && !t.Hidden {
		return exactly(0)
	}
	own := value(t.Own)
	if t.Local != nil {
		v := Verdict{Low: new(time.Duration), High: new(time.Duration)}
		total := max(*t.Local, own)
		*v.Low = together(t, total)
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

// together is the wall time of throttled time if all CPUs were throttled together. Without a number of CPUs it is 0.
func together(t Throttle, throttled time.Duration) time.Duration {
	if t.CPUs < 1 {
		return 0
	}
	return min(throttled/time.Duration(t.CPUs), t.Window)
}

// inside adds what the quotas of cgroups below did.
func inside(t Throttle, v Verdict) Verdict {
	if t.InsideUnknown {
		v.NotMeasured = notMeasuredInside
	}
	for _, l := range t.Inside {
		if l.Throttled <= 0 {
			continue
		}
		v.All = append(v.All, Share{l.Path, l.Throttled.Seconds()})
		if v.High == nil {
			continue
		}
		*v.High = min(*v.High+l.Throttled, t.Window)
		if t.Local != nil {
			*v.Low = max(*v.Low, together(t, l.Throttled))
		}
	}
	if len(t.Inside) > 0 {
		sortShares(v.All)
		v.By = cmp.Or(by(t.Path, v.All), v.By)
	}
	return v
}

const notMeasuredInside = "stopped time: cgroups in it may have quotas that were not read: they are too many, or came and went meanwhile"

// edges widens the bounds by what the counters cannot tell of the window's ends.
func edges(t Throttle, v Verdict) Verdict {
	if v.High == nil {
		return v
	}
	levels := slices.Concat(t.Ancestors, t.Inside)
	if t.OwnQuota {
		levels = append(levels, LevelThrottle{Path: t.Path, Period: t.Limit.Period, Periods: t.Periods,
			ThrottledPeriods: t.ThrottledPeriods})
	}
	tooMuch, tooLittle := time.Duration(0), time.Duration(0) // in Low, and in High
	for i, l := range levels {
		short := t.Window < 2*l.Period
		switch {
		case short && l.Periods == 0:
			v.NotMeasured = fmt.Sprintf("stopped time: no period of the quota of %s ended in the window of %v: look "+
				"for %v or longer", l.Path, t.Window.Round(time.Millisecond), 2*l.Period)
			return v
		case short:
			tooMuch, tooLittle = max(tooMuch, l.Period), max(tooLittle, l.Period)
		case i >= len(t.Ancestors) && l.Periods > 0 && l.ThrottledPeriods > 0 && l.ThrottledPeriods >= l.Periods-1:
			tooLittle = max(tooLittle, l.Period)
		}
	}
	if exact := t.Window / exactPart; t.Late > exact || t.Early > exact {
		tooMuch, tooLittle = tooMuch+t.Early, tooLittle+t.Late
	}
	if *v.High > 0 {
		*v.Low, *v.High = max(0, *v.Low-tooMuch), min(*v.High+tooLittle, t.Window)
	}
	return v
}

// underWay widens a zero verdict where a stop has not ended.
func underWay(t Throttle, v Verdict) Verdict {
	n := time.Duration(min(t.ThrottledPeriods, 1<<20))
	if *v.High > 0 || n < 2 || t.Used == nil || !t.Limit.Limited() || *t.Used >= (n-1)*t.Limit.Quota {
		return v
	}
	*v.High, v.By = min((n+1)*t.Limit.Period, t.Window), BySelf
	return v
}

// exactly returns a verdict whose bounds are equal.
func exactly(d time.Duration) Verdict { return Verdict{Low: new(d), High: new(d)} }

// shares divides the time of cpu.stat.local among the levels.
func shares(t Throttle, own, inherited time.Duration) []Share {
	if t.Own != nil && len(t.Ancestors) == 0 && !t.Hidden {
		own, inherited = own+inherited, 0 // the only level
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

// sortShares sorts by cost, highest first; equal levels keep their order, nearest first.
func sortShares(all []Share) {
	slices.SortStableFunc(all, func(a, b Share) int { return cmp.Compare(b.Seconds, a.Seconds) })
}

// by names the level that cost most.
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
