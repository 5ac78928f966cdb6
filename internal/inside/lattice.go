package inside

import (
	"math"
	"slices"
	"time"
)

// lattice is the times at which periods end: phase plus whole periods.
type lattice struct {
	period, phase time.Duration
	// late is how much later than at a period's end a stop may be seen to end: 0, or the turn of another thread that the
	// kernel let run first.
	late time.Duration
}

// tolerance is how far from a period's end a stop may be seen to end: a timer is late, and the thread is then chosen.
func tolerance(period time.Duration) time.Duration { return min(time.Millisecond, period/10) }

// width is how long after a period ends a silence may end to be on the lattice.
func (l lattice) width() time.Duration { return 2*tolerance(l.period) + l.late }

// holds says which point of the lattice a time belongs to, if to any.
func (l lattice) holds(at time.Duration) (k int, ok bool) {
	early := tolerance(l.period)
	k = int(math.Floor(float64(at+early-l.phase) / float64(l.period)))
	return k, at+early-l.phase-time.Duration(k)*l.period <= l.width()
}

const (
	minPeriod = 2 * time.Millisecond
	minPoints = 4
	// minShare is the share of all silent time that ends on the lattice.
	minShare = 0.7
	// minHits is the share of the lattice's points, from the first to the last, at which a silence ends.
	minHits = 0.6
	// byChance is how likely a lattice may be one by chance.
	byChance = 1e-6
)

// looked are how many of the longest silences are looked at: turns of other threads are shorter than most stops, and where
// there are few turns, more silences tell more.
var looked = []int{80, 20, 10}

// findLattice returns the lattice with the largest period up to longest on which silences end. tick is the kernel's.
func findLattice(all []silence, tick, maxPeriod time.Duration) (lattice, bool) {
	longest := slices.Clone(all)
	slices.SortFunc(longest, func(a, b silence) int { return int((b.end - b.start) - (a.end - a.start)) })
	if len(longest) < minPoints {
		return lattice{}, false
	}
	first := func(n int) []silence { return longest[:min(len(longest), n)] }
	for _, late := range []time.Duration{0, tick} {
		for period := maxPeriod; period >= minPeriod; period -= time.Millisecond { // as people set it
			for _, n := range looked {
				if l, ok := tryPeriod(first(n), lattice{period: period, late: late}, tick); ok {
					return l, true
				}
			}
		}
	}
	most := first(looked[0])
	begin, end := most[0].end, most[0].end
	for _, s := range most {
		begin, end = min(begin, s.end), max(end, s.end)
	}
	for period := float64(maxPeriod); period >= float64(minPeriod); { // any other
		if l, ok := tryPeriod(most, lattice{period: time.Duration(period)}, tick); ok {
			return l, true
		}
		period -= max(float64(time.Microsecond), float64(tolerance(time.Duration(period)))*period/float64(2*(end-begin)+1))
	}
	return lattice{}, false
}

// tryPeriod looks for the phase at which most of the silent time ends, and judges it.
func tryPeriod(all []silence, l lattice, tick time.Duration) (lattice, bool) {
	period := l.period
	type residue struct{ at, weight time.Duration }
	var residues []residue
	var total time.Duration
	for _, s := range all {
		residues = append(residues, residue{s.end % period, s.end - s.start})
		total += s.end - s.start
	}
	slices.SortFunc(residues, func(a, b residue) int { return int(a.at - b.at) })
	n, width := len(residues), l.width()
	var best, weight time.Duration
	for i, j := 0, 0; i < n; i++ { // the window begins at i; j is behind its end, around the circle
		for ; j < i+n; j++ {
			at := residues[j%n].at + time.Duration(j/n)*period
			if at-residues[i].at > width {
				break
			}
			weight += residues[j%n].weight
		}
		if weight > best {
			best, l.phase = weight, residues[i].at+tolerance(period)
		}
		weight -= residues[i].weight
	}
	if float64(best) < minShare*float64(total) {
		return lattice{}, false
	}
	l, ok := fit(all, l)
	return l, ok && l.judge(all, tick)
}

// fit moves period and phase so that they are nearest to the ends that lie on the lattice (least squares).
func fit(all []silence, l lattice) (lattice, bool) {
	var n, sk, st, skk, skt float64
	for _, s := range all {
		k, ok := l.holds(s.end)
		if !ok {
			continue
		}
		x, y := float64(k), float64(s.end)
		n, sk, st, skk, skt = n+1, sk+x, st+y, skk+x*x, skt+x*y
	}
	det := n*skk - sk*sk
	if det <= 0 {
		return l, false
	}
	period := (n*skt - sk*st) / det
	low, high := all[0].end, all[0].end
	for _, s := range all {
		low, high = min(low, s.end), max(high, s.end)
	}
	whole := math.Round(period/1e6) * 1e6
	if periods := float64(high-low) / period; math.Abs(period-whole)*periods < float64(l.width()) { // people set whole milliseconds
		period = whole
	}
	// The phase is where the earlier ends are: what is late is another thread's turn.
	var behind []time.Duration
	for _, s := range all {
		if k, ok := l.holds(s.end); ok {
			behind = append(behind, s.end-time.Duration(float64(k)*period))
		}
	}
	slices.Sort(behind)
	l.period, l.phase = time.Duration(period), behind[len(behind)/4]
	return l, true
}

// judge says whether the ends are on the lattice more often than chance and the ticks of the kernel's clock make them.
func (l lattice) judge(all []silence, tick time.Duration) bool {
	points, on := map[int]bool{}, 0
	low, high := math.MaxInt, math.MinInt
	for _, s := range all {
		if k, ok := l.holds(s.end); ok {
			on++
			points[k] = true
			low, high = min(low, k), max(high, k)
		}
	}
	if len(points) < minPoints || float64(len(points)) < minHits*float64(high-low+1) {
		return false
	}
	p := float64(max(l.width(), tick)) / float64(l.period)
	return p < 1 && atLeast(on, len(all), p) < byChance/float64(len(looked))*float64(l.width())/float64(l.period)
}

// atLeast is the chance that of n draws at least k hit, each with chance p (binomial; by logarithms, so that it does not
// underflow).
func atLeast(k, n int, p float64) float64 {
	sum := 0.0
	whole, _ := math.Lgamma(float64(n + 1))
	for i := k; i <= n; i++ {
		a, _ := math.Lgamma(float64(i + 1))
		b, _ := math.Lgamma(float64(n - i + 1))
		sum += math.Exp(whole - a - b + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
	}
	return min(sum, 1)
}
