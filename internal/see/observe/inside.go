package observe

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// lookShare bounds how often a Watcher looks for quotas inside containers, or lists them without a notice: it waits so many
// times as long as the last time took.
const lookShare = 100

// below are the cgroups inside a container that had a quota at the last look.
type below struct {
	paths []string
	whole bool   // the look saw all cgroups
	look  uint64 // Sampler.look at that time
}

// fillInside reads the cgroups inside a container that have a quota: the kernel counts a quota's throttling in the cgroup
// that has it, and in none above. Cgroups of other sampled containers are theirs. A container that rests is looked into
// when it does not.
func (s *Sampler) fillInside(dst *Sample, own *level, rests bool) {
	if own.below.look != s.look && !rests {
		s.lookInside(own)
	}
	dst.InsideUnknown = !own.below.whole
	for _, path := range own.below.paths {
		l := s.level(path)
		if l == nil {
			continue
		}
		s.readLevel(l, dst.At, false, rests)
		if !l.gone && l.statRead {
			dst.Inside = dst.add(dst.Inside, l)
		}
	}
}

// lookInside finds the quotas inside a container.
func (s *Sampler) lookInside(own *level) {
	begun := s.opt.Now()
	limited, whole := cgroup.QuotasBelow(s.host, own.path, s.sampled)
	paths := own.below.paths[:0]
	for _, l := range limited {
		paths = append(paths, l.Path)
	}
	own.below = below{paths, whole, s.look}
	s.looking += s.opt.Now().Sub(begun)
}

// sampled reports whether a cgroup is a container of this round.
func (s *Sampler) sampled(path string) bool {
	l := s.levels[path]
	return l != nil && l.sampled == s.round
}

// gainInside adds what the cgroups inside gained. A quota that is younger than the window, or whose cgroup is, has at most
// its whole counter. One that is gone leaves its part unknown.
func gainInside(t *Throttle, prev, cur *Sample) {
	t.InsideUnknown = prev.InsideUnknown || cur.InsideUnknown
	for i := range cur.Inside {
		is := &cur.Inside[i]
		was := same(prev.Inside, is, i)
		if !is.Stat.HasBandwidth {
			t.InsideUnknown = true
			continue
		}
		most := t.Window * time.Duration(max(t.CPUs, 1))
		gained := LevelThrottle{Path: is.Path, Period: is.Limit.Period, Throttled: min(is.Stat.Throttled, most),
			Periods: is.Stat.Periods, ThrottledPeriods: is.Stat.ThrottledPeriods}
		if was != nil && was.Stat.HasBandwidth && !is.Stat.before(was.Stat) {
			gained = gain(was, is)
		}
		t.Inside = append(t.Inside, gained)
	}
	for i := range prev.Inside {
		was := &prev.Inside[i]
		t.InsideUnknown = t.InsideUnknown || was.Limit.Limited() && same(cur.Inside, was, i) == nil
	}
}

// same is the reading of the same cgroup in the other sample, where it is mostly at the same place.
func same(samples []LevelSample, sample *LevelSample, at int) *LevelSample {
	for i := range samples {
		other := &samples[(at+i)%len(samples)]
		if other.Path == sample.Path && (other.ID == sample.ID || other.ID == 0 || sample.ID == 0) {
			return other
		}
	}
	return nil
}

// gain is what one level's counters gained.
func gain(was, is *LevelSample) LevelThrottle {
	period := is.Limit.Period
	if !is.Limit.Limited() {
		period = was.Limit.Period
	}
	return LevelThrottle{Path: is.Path, Period: period, Throttled: is.Stat.Throttled - was.Stat.Throttled,
		Periods: is.Stat.Periods - was.Stat.Periods, ThrottledPeriods: is.Stat.ThrottledPeriods - was.Stat.ThrottledPeriods}
}
