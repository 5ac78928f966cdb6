package observe

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// Delta returns the observation of the window between two samples of one container; cur is the later one. Three pairs
// are no window: another cgroup under the same path, a counter that went backwards, no time between the samples. Then
// no counter is measured, Window is 0 and NotMeasured says why. The later sample starts the next window.
func Delta(prev, cur *Sample) Observation {
	o := Observation{Container: cur.Container, CgroupID: cur.cgroupID, Start: cur.At, CPUsAllowed: cur.CPUs, CPUsOnline: cur.online}
	for _, l := range cur.Levels {
		o.Levels = append(o.Levels, l.Level)
	}
	if cpus, limited, at := cgroup.Effective(o.Levels); limited {
		o.LimitCPUs, o.LimitAt = new(cpus), at
	}
	for _, note := range cur.NotMeasured {
		o.NotMeasured = appendNote(o.NotMeasured, note)
	}
	if why := restarted(prev, cur); why != "" {
		o.NotMeasured = appendNote(o.NotMeasured, "all counters: "+why)
		return o
	}
	o.Start, o.Window = prev.At, cur.At.Sub(prev.At)
	t := Throttle{Window: o.Window, CPUs: max(prev.CPUs.Size(), cur.CPUs.Size()), Path: cur.Container.Group.Path,
		Hidden: prev.Hidden || cur.Hidden,
		Late:   prev.took + cur.early, Early: cur.took + prev.early}
	if prev.HasUsage && cur.HasUsage {
		t.Used = new(cur.Usage - prev.Usage)
		o.UsedCPUs = new(t.Used.Seconds() / o.Window.Seconds())
	}
	if prev.HasLocal && cur.HasLocal {
		t.Local = new(cur.Local - prev.Local)
		o.ThrottledSeconds = new(t.Local.Seconds())
	}
	o.LimitChanges = limitChanges(prev.Levels, cur.Levels)
	ownLevel(&o, &t, prev, cur)
	o.ThrottledBefore = ThrottledBefore(prev.Levels)
	for i := 1; i < len(cur.Levels); i++ {
		ancestor(&t, &prev.Levels[i], &cur.Levels[i])
	}
	gainInside(&t, prev, cur)
	v := Stopped(t)
	o.StoppedLow, o.StoppedHigh, o.ThrottledBy, o.ThrottledByAll = v.Low, v.High, v.By, v.All
	o.Cells = cells(o.Start, cur.Levels, cur.Inside)
	if !o.exact(prev.counts, cur.counts) && v.NotMeasured != "" {
		o.NotMeasured = appendNote(o.NotMeasured, v.NotMeasured)
	}
	return o
}

// limitChanges compares the same levels at both ends of a window.
func limitChanges(prev, cur []LevelSample) []recording.LimitChange {
	var changes []recording.LimitChange
	for i := range cur {
		if was, is := prev[i].Level, cur[i].Level; was.Limit != is.Limit {
			changes = append(changes, CompareLimits([]cgroup.Level{was}, []cgroup.Level{is})...)
		}
	}
	return changes
}

// CompareLimits compares the limits of the cgroups that both lists have, as recording.CompareLimits does.
func CompareLimits(before, after []cgroup.Level) []recording.LimitChange {
	return recording.CompareLimits(withIDs(before), withIDs(after))
}

// withIDs are levels as a recording has them, with their IDs as far as they are known.
func withIDs(all []cgroup.Level) []recording.Level {
	levels := RecordingLevels(all)
	for i := range levels {
		levels[i].ID = all[i].ID
	}
	return levels
}

// RecordingLevels are levels as a recording has them: see RecordingLevel.
func RecordingLevels(all []cgroup.Level) []recording.Level {
	levels := make([]recording.Level, 0, len(all))
	for _, l := range all {
		levels = append(levels, RecordingLevel(l))
	}
	return levels
}

// RecordingLevel is a level as a recording has it, without its id and weight.
func RecordingLevel(l cgroup.Level) recording.Level {
	level := recording.Level{Path: l.Path, PeriodNS: l.Limit.Period.Nanoseconds(), BurstNS: l.Limit.Burst.Nanoseconds()}
	if l.Limit.Limited() {
		level.QuotaNS = new(l.Limit.Quota.Nanoseconds())
	}
	return level
}

// ownLevel copies the gain of the container's own counters.
func ownLevel(o *Observation, t *Throttle, prev, cur *Sample) {
	was, is := &prev.Levels[0], &cur.Levels[0]
	t.OwnQuota = was.Limit.Limited() || is.Limit.Limited()
	if was.Stat.HasBandwidth && is.Stat.HasBandwidth {
		t.Limit, t.Periods, t.ThrottledPeriods = is.Limit, is.Stat.Periods-was.Stat.Periods,
			is.Stat.ThrottledPeriods-was.Stat.ThrottledPeriods
		t.Own = new(is.Stat.Throttled - was.Stat.Throttled)
		o.Periods = new(is.Stat.Periods - was.Stat.Periods)
		o.ThrottledPeriods = new(t.ThrottledPeriods)
		o.OwnThrottledSeconds = new(t.Own.Seconds())
	}
}

// ThrottledBefore is Observation.ThrottledBefore by the counters at the start of a window.
func ThrottledBefore(levels []LevelSample) *float64 {
	var most *float64
	for i := range levels {
		is := &levels[i].Stat
		if !is.HasBandwidth || is.Periods == 0 || !levels[i].Limit.Limited() {
			continue
		}
		if share := float64(is.ThrottledPeriods) / float64(is.Periods); most == nil || share > *most {
			most = &share
		}
	}
	return most
}

// ancestor adds one level above, if it has or had a quota.
func ancestor(t *Throttle, was, is *LevelSample) {
	switch {
	case !was.Limit.Limited() && !is.Limit.Limited():
	case was.Stat.HasBandwidth && is.Stat.HasBandwidth:
		t.Ancestors = append(t.Ancestors, gain(was, is))
	case !was.Limit.Limited() && is.Stat.HasBandwidth:
		// The quota is younger than the window, so the earlier sample has no counter. At most the whole counter is new,
		// and at most all CPUs for the whole window.
		most := t.Window * time.Duration(max(t.CPUs, 1))
		t.Ancestors = append(t.Ancestors, LevelThrottle{Path: is.Path, Throttled: min(is.Stat.Throttled, most),
			Period: is.Limit.Period, Periods: is.Stat.Periods, ThrottledPeriods: is.Stat.ThrottledPeriods})
	default:
		t.Hidden = true
	}
}

// restarted says why two samples are no window. It returns "" if they are one.
func restarted(prev, cur *Sample) string {
	switch {
	case prev == nil:
		return "only one reading yet"
	case prev.Gone || cur.Gone || len(prev.Levels) == 0 || len(cur.Levels) == 0:
		return "the cgroup was not there at both ends of the window"
	case !cur.At.After(prev.At):
		return "no time between the two readings"
	case len(prev.Levels) != len(cur.Levels):
		return "the levels above changed"
	case prev.HasLocal && cur.HasLocal && cur.Local < prev.Local,
		prev.HasUsage && cur.HasUsage && cur.Usage < prev.Usage:
		return wentBack
	}
	for i := range cur.Levels {
		was, is := &prev.Levels[i], &cur.Levels[i]
		if was.Path != is.Path || was.ID != is.ID && was.ID != 0 && is.ID != 0 {
			return "the cgroup was made anew during the window"
		}
		if was.Stat.HasBandwidth && is.Stat.HasBandwidth && is.Stat.before(was.Stat) {
			return wentBack
		}
	}
	return ""
}

const wentBack = "a counter went backwards"

// before reports whether a counter is lower than in the earlier sample.
func (c Counters) before(was Counters) bool {
	return c.Periods < was.Periods || c.ThrottledPeriods < was.ThrottledPeriods || c.Throttled < was.Throttled
}

// cells joins the readings between two full samples of all levels with a quota. Each poll reads all of these levels or
// none.
func cells(start time.Time, lists ...[]LevelSample) []Cell {
	var all []Cell
	for _, levels := range lists {
		for i := range levels {
			all = addCells(all, start, levels[i].cells)
		}
	}
	return all
}

func addCells(all []Cell, start time.Time, readings []reading) []Cell {
	for i, r := range readings {
		end := r.at.Sub(start)
		if end <= 0 {
			continue
		}
		if i < len(all) {
			all[i].Throttled += r.throttled
			all[i].End = max(all[i].End, end)
		} else {
			all = append(all, Cell{End: end, Throttled: r.throttled})
		}
	}
	return all
}
