package inside

import (
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
)

// Finding is what the trial says of the limit.
type Finding struct {
	// Limited is nil where the trial cannot tell; Why then says why.
	Limited *bool
	Why     string
	// Period and Quota are those of the limit; 0: none is known.
	Period, Quota time.Duration

	at   lattice
	tick time.Duration
}

// LimitCPUs is the limit; 0: none is known.
func (f Finding) LimitCPUs() float64 {
	if f.Period == 0 {
		return 0
	}
	return float64(f.Quota) / float64(f.Period)
}

const (
	// allCPUs is the share of the CPUs' time that shows that no quota held the threads back.
	allCPUs = 0.9
	// sameUse is the share of the use at full speed that a quota still allows at half speed: nearly all. A neighbour that
	// takes the CPUs at fixed times leaves half.
	sameUse = 0.75
)

// LongestPeriod is the longest period that a trial of a length can tell: with fewer points its ends are no lattice. The kernel knows none
// above a second.
func LongestPeriod(trial time.Duration) time.Duration {
	return min(trial/minPoints, bandwidth.MaxPeriod)
}

// Find finds the limit from a trial.
func Find(t Trial) Finding {
	all := silences(t.Gaps, t.CPUs)
	l, ok := findLattice(all, t.Tick, LongestPeriod(t.End))
	full := float64(t.UsedFull) / float64(max(t.Light, 1))
	switch {
	case !ok && full >= allCPUs*float64(t.CPUs):
		return Finding{Limited: pointer(false)}
	case !ok:
		return Finding{Why: fmt.Sprintf("no quota stopped it while the processes in sight used %.2f of %d CPUs, and "+
			"other work had the rest; a larger limit would not show", full, t.CPUs)}
	}
	atFull, fullPeriods := l.use(all, 0, t.Light)
	atHalf, halfPeriods := l.use(all, t.Light, t.End)
	if periods := fullPeriods + halfPeriods; periods == 0 {
		return Finding{Why: "it was stopped at regular times, but never in two periods one after the other"}
	} else if fullPeriods > 0 && halfPeriods > 0 && float64(atHalf)/float64(halfPeriods) < sameUse*float64(atFull)/float64(fullPeriods) {
		return Finding{Why: "every CPU is taken at regular times, but no later after less work: other work that " +
			"comes regularly, not a quota"}
	}
	quota := (atFull + atHalf) / time.Duration(fullPeriods+halfPeriods)
	return Finding{Limited: pointer(true), Period: l.period, Quota: quota, at: l, tick: t.Tick}
}

func pointer[T any](v T) *T { return &v }

// use is what was used between points of the lattice that follow each other, where silences end at both: each of these
// periods used up its quota. A period counts where its middle is between two times.
func (l lattice) use(all []silence, from, to time.Duration) (used time.Duration, periods int) {
	seen := false
	var last int
	var before silence
	for _, s := range all {
		k, ok := l.holds(s.end)
		if !ok || seen && k == last {
			continue
		}
		if middle := (before.end + s.end) / 2; seen && k == last+1 && middle >= from && middle < to {
			used += s.used - before.used
			periods++
		}
		seen, last, before = true, k, s
	}
	return used, periods
}
