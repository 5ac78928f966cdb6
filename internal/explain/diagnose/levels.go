package diagnose

import (
	"math"

	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/see/schedule"
)

// level is one cgroup that may hold the container's threads back, and when it did.
type level struct {
	schedule.Level
	held    int   // threads that it holds back now
	heldAt  int64 // since when it does without a pause
	stopped int64 // time in which it held any thread back
	// idleHeld is when it did and none of the container ran; its long intervals are those of a period of the level or more.
	idleHeld interval

	// Figures of its period timer.
	expiries, throttled uint64
	left                int64 // sum of what the pool had left at its expiries
}

func (l *level) expired(p recording.PeriodState) {
	l.expiries++
	l.left += max(0, p.LeftNS)
	if p.StoppedCPUs > 0 {
		l.throttled++
	}
}

// most is the most CPU time that its quota lets be used within a length of time: what is left just before a refill, the refills
// within, and what a burst has saved. It must have a limit.
func (l *level) most(ns int64) float64 {
	refills := math.Ceil(float64(ns)/float64(l.PeriodNS)) + 1
	return refills*float64(*l.QuotaNS) + float64(l.BurstNS)
}

// levels are those of the recording, in the same order.
type levels struct {
	known      *schedule.Levels
	all        []level
	ancestors  int64
	ownTime    int64
	insideTime int64
}

// unlisted is the level of cgroups that the recording does not list.
func (ls *levels) unlisted() *level { return &ls.all[len(ls.all)-1] }

func newLevels(h *recording.Header) levels {
	ls := levels{known: schedule.NewLevels(h)}
	for _, l := range ls.known.All {
		ls.all = append(ls.all, level{Level: l, idleHeld: interval{bound: max(1, l.PeriodNS)}})
	}
	return ls
}

// limit is the effective limit: the least of its own and its ancestors', or nil without any. A level below
// the container holds back only a part of it.
func (ls *levels) limit() *float64 {
	var least *float64
	below := len(ls.all)
	for i := range ls.all {
		if i > 0 && ls.all[i].Own {
			below = i
			break
		}
	}
	for i := range ls.all[:below] {
		if cpus, ok := ls.all[i].Limit(); ok && (least == nil || cpus < *least) {
			least = &cpus
		}
	}
	return least
}

// add counts a stretch of time in which that many CPUs were in use.
func (ls *levels) add(d int64, width int) {
	own, inside, ancestor := false, false, false
	for i := range ls.all {
		l := &ls.all[i]
		l.idleHeld.add(l.held > 0 && width == 0, d)
		if l.held == 0 {
			continue
		}
		l.stopped += d
		if l.Unlisted {
			continue
		}
		own, inside = own || l.Own, inside || l.Inside
		ancestor = ancestor || !l.Own
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

// longestAncestor is the ancestor that held threads back longest; nil: none did.
func (ls *levels) longestAncestor() (longest *level) {
	for i := range ls.all {
		l := &ls.all[i]
		if !l.Own && l.stopped > 0 && (longest == nil || l.stopped > longest.stopped) {
			longest = l
		}
	}
	return longest
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
	if _, ok := ls.all[ls.known.Least].Limit(); ok {
		return ls.known.Least
	}
	return -1
}
