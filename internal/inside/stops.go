package inside

import (
	"math"
	"time"
)

// Stops is how often and for how long a quota stopped the threads on some CPU.
type Stops struct {
	// Periods is the number of periods that ended with a stop, as the kernel's nr_throttled counts them.
	Periods int
	// Total and Longest are wall time.
	Total, Longest time.Duration
}

// controls are the other phases, in parts of a period, at which late looks are counted: so many end there by chance. They are
// far enough from 0 and 1 that no stop's end is counted there.
var controls = []float64{0.4, 0.5, 0.6}

// Follow returns the finding with a period that the gaps of a watch make more exact. One that is known to a hundredth of a
// millisecond is off by a whole one after a hundred periods; so it is fitted to twice as long a stretch each time.
func (f Finding) Follow(t Trial, w Watch) Finding {
	if f.Period == 0 {
		return f
	}
	var seen []silence
	next := 0
	for until := 2 * t.End; next < len(w.Gaps); until *= 2 {
		for ; next < len(w.Gaps) && w.Gaps[next].End <= until; next++ {
			if g := w.Gaps[next]; g.End-g.Start >= minSilence {
				seen = append(seen, silence{start: g.Start, end: g.End})
			}
		}
		both := append(silences(t.Gaps, t.CPUs), seen...)
		if l, ok := fit(both, f.at); ok {
			f.at = l
		}
	}
	share := float64(f.Quota) / float64(f.Period)
	f.Period = f.at.period
	f.Quota = time.Duration(share * float64(f.Period))
	return f
}

// TrialStops counts the stops of the trial: its own threads brought most of them about. A quota may stop one CPU alone, which
// its own gaps show; where other threads take turns there, the silences of all CPUs show more.
func (f Finding) TrialStops(t Trial) Stops {
	var quiet []Gap
	for _, s := range silences(t.Gaps, t.CPUs) {
		quiet = append(quiet, Gap{Ran: s.start, Start: s.start, End: s.end})
	}
	stops, all := f.Stops(t.Gaps, 0, t.End), f.Stops(quiet, 0, t.End)
	if stops.Periods >= all.Periods {
		return stops
	}
	return all
}

// Stops counts the stops among gaps between two times: those whose end the lattice has. A point of the lattice may have a
// gap's end by chance; how many do is seen at other phases. What is not clearly more than that is none.
func (f Finding) Stops(gaps []Gap, from, to time.Duration) Stops {
	if f.Period == 0 || to <= from {
		return Stops{}
	}
	points := max(float64(to-from)/float64(f.Period), 1)
	found, _ := f.at.stops(gaps, f.tick)
	chance := 0.0
	for _, part := range controls {
		shifted := f.at
		shifted.phase += time.Duration(part * float64(f.at.period))
		_, ends := shifted.stops(gaps, f.tick)
		chance += float64(ends) / float64(len(controls))
	}
	hits := float64(found.Periods)
	if hits <= chance+3*math.Sqrt(chance) || chance >= points {
		return Stops{}
	}
	// Of the points without a stop, the share chance/points has an end all the same.
	share := (hits - chance) / (points - chance) * points / hits
	share = max(0, min(share, 1))
	found.Periods = int(math.Round(share * hits))
	found.Total = time.Duration(share * float64(found.Total))
	return found
}

// stops counts the gaps that end on the lattice, as if none did by chance. After the refill another thread of the cgroup may
// run first, for a turn or two. ends is the number of points at which
// gaps end; a long gap stops several periods.
func (l lattice) stops(gaps []Gap, tick time.Duration) (s Stops, ends int) {
	early := tolerance(l.period) * 3 / 2
	late := min(early+2*tick, l.period/4)
	endsAt := map[int]bool{}
	starts := map[int]time.Duration{} // of the stop that ends at a point
	for _, g := range gaps {
		k := int(math.Floor(float64(g.End+early-l.phase) / float64(l.period)))
		if point := l.phase + time.Duration(k)*l.period; g.End-point > late || min(g.End, point)-g.Start < minSilence {
			continue
		}
		endsAt[k] = true
		start := (g.Ran + g.Start) / 2                         // it began between two looks
		for ; start < l.phase+time.Duration(k)*l.period; k-- { // a stop may last for several periods
			began := max(start, l.phase+time.Duration(k-1)*l.period)
			if before, ok := starts[k]; !ok || began < before {
				starts[k] = began
			}
		}
	}
	run := time.Duration(0)
	for k, began := range starts {
		end := l.phase + time.Duration(k)*l.period
		s.Periods++
		s.Total += end - began
		run = end - began
		for b := k - 1; began == l.phase+time.Duration(b)*l.period; b-- { // it goes on from the period before
			before, ok := starts[b]
			if !ok {
				break
			}
			began = before
			run = end - began
		}
		s.Longest = max(s.Longest, run)
	}
	return s, len(endsAt)
}
