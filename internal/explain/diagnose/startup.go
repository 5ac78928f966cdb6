package diagnose

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
)

// StartupAge is the age of a container up to which it is starting: that of its oldest process. Programs load, compile and
// fill caches in their first seconds, wider than they ever are afterwards.
const StartupAge = 30 * time.Second

// WarmingUp is the share of the CPU time that the program's own compiler used, where it is so large that the program is warming up: it will
// need less. 0: it is not, or has no compiler of its own.
func (e *Explanation) WarmingUp() float64 {
	compiled, all := time.Duration(0), time.Duration(0)
	for _, p := range e.Pools {
		if all += p.CPU; threadpool.Compiles(p.Name) {
			compiled += p.CPU
		}
	}
	if share := float64(compiled) / float64(max(1, all)); share >= WarmingUpShare {
		return share
	}
	return 0
}

// WarmingUpShare is the share of its CPU time from which on a program's compiler shows that it is warming up.
const WarmingUpShare = 0.05

const (
	// startupShare is the share of the stopped time that must lie in the start-up.
	startupShare = 0.9
	// leastAfter is how much of the recording must lie after the start-up to tell that it is over.
	leastAfter = 2 * time.Second
)

// Startup says that a quota stopped the container while it started, and not otherwise as far as the recording shows.
type Startup struct {
	// Age is that of the container's oldest process at the beginning of the recording.
	Age time.Duration
	// Stopped is the stopped time up to StartupAge, After how much of the recording is later.
	Stopped, After time.Duration
	// Over: the recording shows that the stops ended with the start-up.
	Over bool
}

// starting is what an analysis counts for Startup.
type starting struct {
	known   bool
	ageNS   int64
	until   int64 // the time of the recording at which the start-up ends; below 0: it was over before
	stopped int64 // stopped time up to then
}

func newStarting(ageNS *int64) starting {
	if ageNS == nil || *ageNS < 0 {
		return starting{}
	}
	return starting{known: true, ageNS: *ageNS, until: int64(StartupAge) - *ageNS}
}

// add counts a time in which the container was stopped.
func (s *starting) add(from, to int64) {
	if end := min(to, s.until); end > from {
		s.stopped += end - from
	}
}

// startup judges the stopped time. nil: it is no finding, it does not lie in a start-up, or the age is not known.
func (s *starting) startup(recorded *figures) *Startup {
	if !s.known || s.until <= 0 || !recorded.throttled() || float64(s.stopped) < startupShare*float64(recorded.stopped) {
		return nil
	}
	out := &Startup{Age: span(s.ageNS), Stopped: span(s.stopped), After: span(recorded.window - s.until)}
	if out.After < leastAfter {
		return out
	}
	if float64(recorded.stopped-s.stopped) >= Negligible*float64(out.After) {
		return nil // it goes on, if less
	}
	out.Over = true
	return out
}
