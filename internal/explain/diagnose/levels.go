package diagnose

import (
	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// level is one cgroup that may hold the container's threads back.
type level struct {
	recording.Level
	own     bool  // the container's own cgroup or one below it
	inside  bool  // one below it
	held    int   // threads that it holds back now
	heldAt  int64 // since when it does without a pause
	stopped int64 // time in which it held any thread back

	// Figures of its period timer.
	expiries, throttled uint64
	left                int64 // sum of what the pool had left at its expiries
}

func (l *level) limit() (cpus float64, ok bool) {
	if l.QuotaNS == nil || *l.QuotaNS <= 0 || l.PeriodNS <= 0 {
		return 0, false
	}
	return float64(*l.QuotaNS) / float64(l.PeriodNS), true
}

func (l *level) expired(p recording.PeriodState) {
	l.expiries++
	l.left += max(0, p.LeftNS)
	if p.StoppedCPUs > 0 {
		l.throttled++
	}
}

// levels has the container's own level, its ancestors, then those below it. It always has one.
type levels struct {
	all        []level
	byID       map[uint64]int
	unknown    int // the level to blame if the recording does not know
	ancestors  int64
	ownTime    int64
	insideTime int64
}

func newLevels(h recording.Header) levels {
	ls := levels{byID: map[uint64]int{}}
	add := func(l recording.Level, own, inside bool) {
		if len(ls.all) == maxLevels {
			return
		}
		if _, ok := ls.byID[l.ID]; !ok {
			ls.byID[l.ID] = len(ls.all)
		}
		ls.all = append(ls.all, level{Level: l, own: own, inside: inside})
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
	// The unknown level is the one with the least limit, and of several the nearest. Without any known limit
	// it is the container's own.
	least := 0.0
	for i := range ls.all {
		if cpus, ok := ls.all[i].limit(); ok && (least == 0 || cpus < least) {
			least, ls.unknown = cpus, i
		}
	}
	return ls
}

// limit is the effective limit: the least of its own and its ancestors', or nil without any. A level below
// the container holds back only a part of it.
func (ls *levels) limit() *float64 {
	var least *float64
	below := len(ls.all)
	for i := range ls.all {
		if i > 0 && ls.all[i].own {
			below = i
			break
		}
	}
	for i := range ls.all[:below] {
		if cpus, ok := ls.all[i].limit(); ok && (least == nil || cpus < *least) {
			least = &cpus
		}
	}
	return least
}

func (ls *levels) find(id uint64) (int, bool) {
	i, ok := ls.byID[id]
	return i, ok
}

// levelOf returns the level of a held thread's cgroup. For 0 or an unknown cgroup it returns the likeliest.
func (ls *levels) levelOf(id uint64) int {
	if i, ok := ls.byID[id]; ok && id != 0 {
		return i
	}
	return ls.unknown
}

func (ls *levels) add(d int64) {
	own, inside, ancestor := false, false, false
	for i := range ls.all {
		l := &ls.all[i]
		if l.held == 0 {
			continue
		}
		l.stopped += d
		own, inside = own || l.own, inside || l.inside
		ancestor = ancestor || !l.own
	}
	if own {
		ls.ownTime += d
	}
	if inside {
		ls.insideTime += d
	}
	if ancestor {
		ls.ancestors += d
	}
}

// binding returns the level that held threads back longest. If none did, it returns the one with the least
// limit. -1: no level has a limit.
func (ls *levels) binding() int {
	best := -1
	for i := range ls.all {
		if ls.all[i].stopped > 0 && (best < 0 || ls.all[i].stopped > ls.all[best].stopped) {
			best = i
		}
	}
	if best >= 0 {
		return best
	}
	if _, ok := ls.all[ls.unknown].limit(); ok {
		return ls.unknown
	}
	return -1
}
