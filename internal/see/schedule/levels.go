package schedule

import "github.com/unthrottle/unthrottle/internal/see/recording"

// MaxLevels bounds the levels of a recording, without that of cgroups that it does not list.
const MaxLevels = 64

// Level is a cgroup that may hold the container's threads back.
type Level struct {
	recording.Level
	// Own: it is the container's own cgroup or one below it; Inside: one below it.
	Own, Inside bool
	// Unlisted: it stands for the cgroups that the recording does not list. Since a container's ancestors do not change, these are
	// mostly cgroups below it that were made later, so it is Own; it has neither path nor limit.
	Unlisted bool
}

// Limit is its quota over its period; ok is false without one.
func (l *Level) Limit() (cpus float64, ok bool) {
	if l.QuotaNS == nil || *l.QuotaNS <= 0 || l.PeriodNS <= 0 {
		return 0, false
	}
	return float64(*l.QuotaNS) / float64(l.PeriodNS), true
}

// Levels has the container's own level, its ancestors, those below it, and in the end that of cgroups that are not listed.
type Levels struct {
	All []Level
	// Least is the index of the one with the least limit, and of several the nearest. Without any limit it is the container's own.
	Least int
	// limits is how many have one.
	limits int
	byID   map[uint64]int
}

// NewLevels are the levels of a recording, MaxLevels at most.
func NewLevels(h *recording.Header) *Levels {
	ls := &Levels{byID: map[uint64]int{}}
	add := func(l recording.Level, own, inside bool) {
		if len(ls.All) == MaxLevels {
			return
		}
		if _, known := ls.byID[l.ID]; !known {
			ls.byID[l.ID] = len(ls.All)
		}
		ls.All = append(ls.All, Level{Level: l, Own: own, Inside: inside})
	}
	for i, l := range h.Levels {
		add(l, i == 0, false)
	}
	if len(h.Levels) == 0 {
		add(recording.Level{Path: h.Target.Path, ID: h.Target.ID}, true, false)
	}
	for _, l := range h.SubLevels {
		add(l, true, true)
	}
	least := 0.0
	for i := range ls.All {
		cpus, ok := ls.All[i].Limit()
		if !ok {
			continue
		}
		ls.limits++
		if least == 0 || cpus < least {
			least, ls.Least = cpus, i
		}
	}
	ls.All = append(ls.All, Level{Own: true, Unlisted: true})
	return ls
}

// Find returns the index of the level with that cgroup id.
func (ls *Levels) Find(id uint64) (index int, ok bool) {
	index, ok = ls.byID[id]
	return index, ok
}

// Of returns the index of the level whose quota, that of the cgroup with an id, holds a thread back. Where the event names none (0) it is
// the only level with a limit, if one alone has one. Where the quota is of no level, or may be of several, it is the level of cgroups that
// are not listed, and none is blamed by guess.
func (ls *Levels) Of(id uint64) int {
	if i, ok := ls.byID[id]; ok && id != 0 {
		return i
	}
	if id == 0 && ls.limits <= 1 {
		return ls.Least
	}
	return len(ls.All) - 1
}
