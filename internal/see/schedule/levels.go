package schedule

import "github.com/unthrottle/unthrottle/internal/see/recording"

// MaxLevels bounds the levels of a recording.
const MaxLevels = 64

// Level is a cgroup that may hold the container's threads back.
type Level struct {
	recording.Level
	// Own: it is the container's own cgroup or one below it; Inside: one below it.
	Own, Inside bool
}

// Limit is its quota over its period; ok is false without one.
func (l *Level) Limit() (cpus float64, ok bool) {
	if l.QuotaNS == nil || *l.QuotaNS <= 0 || l.PeriodNS <= 0 {
		return 0, false
	}
	return float64(*l.QuotaNS) / float64(l.PeriodNS), true
}

// Levels has the container's own level, its ancestors, then those below it. It always has one.
type Levels struct {
	All []Level
	// Unknown is the index of the one to blame where the recording does not know: that with the least limit, and of several the nearest.
	// Without any limit it is the container's own.
	Unknown int
	byID    map[uint64]int
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
		ls.All = append(ls.All, Level{l, own, inside})
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
		if cpus, ok := ls.All[i].Limit(); ok && (least == 0 || cpus < least) {
			least, ls.Unknown = cpus, i
		}
	}
	return ls
}

// Find returns the index of the level with that cgroup id.
func (ls *Levels) Find(id uint64) (index int, ok bool) {
	index, ok = ls.byID[id]
	return index, ok
}

// Of returns the index of the level of a held thread's cgroup: Unknown for 0 or a cgroup that is no level.
func (ls *Levels) Of(id uint64) int {
	if i, ok := ls.byID[id]; ok && id != 0 {
		return i
	}
	return ls.Unknown
}
