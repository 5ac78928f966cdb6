package capacity

import "math"

// search finds the highest load that is met, step by step.
type search struct {
	met, missed float64 // highest met, lowest missed above it; 0: none yet
	guess       float64 // first step
	factor      float64 // from one step to the next while only one side is known
	most        float64 // never more than this
	steps       int     // left
	spare       int     // more steps while nothing has been met
}

// closeEnough ends a search: the interval is then narrower than repeats scatter.
const closeEnough = 1.03

// next is the load of the next step; false: the search is over.
func (s *search) next() (float64, bool) {
	if s.steps <= 0 && (s.met > 0 || s.spare <= 0) {
		return 0, false
	}
	switch {
	case s.met == 0 && s.missed == 0:
		return min(s.guess, s.most), true
	case s.met == 0:
		return s.missed / s.factor, true
	case s.missed == 0:
		return min(s.met*s.factor, s.most), s.met < s.most
	}
	return math.Sqrt(s.met * s.missed), s.missed/s.met > closeEnough
}

// note takes what came of a step. A load that is missed below one that was met
// counts: the lower end then starts over, since one of both was luck.
func (s *search) note(load float64, met bool) {
	if s.steps--; s.steps < 0 {
		s.spare--
	}
	switch {
	case met:
		s.met = max(s.met, load)
		if s.missed <= s.met {
			s.missed = 0
		}
	default:
		s.missed = load
		if s.met >= load {
			s.met = 0
		}
	}
}

// firstSearch knows nothing but about what load the granted CPUs can carry.
func firstSearch(capacity float64, steps int) search {
	return search{guess: 0.65 * capacity, factor: 1.4, most: MostShare * capacity, steps: steps, spare: 6}
}

// nextSearch begins where the last one ended.
func nextSearch(found, capacity float64, steps int) search {
	if found <= 0 {
		return firstSearch(capacity, steps)
	}
	return search{guess: found, factor: 1.12, most: MostShare * capacity, steps: steps, spare: 6}
}

// resolution is how far the knee can lie above the found load, as a logarithm. The
// knee lies between the highest load that was met and the lowest that was missed.
func (s *search) resolution() float64 {
	if s.met > 0 && s.missed > s.met {
		return math.Log(s.missed / s.met)
	}
	return math.Log(s.factor)
}
