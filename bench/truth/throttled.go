package main

import (
	"math"

	"github.com/unthrottle/unthrottle/bench/services"
	"github.com/unthrottle/unthrottle/internal/stats"
)

// throttledShares compare the share of periods that were throttled, which other tools show, with p99.
type throttledShares struct {
	// Services are those that are stopped and of which no limit was measured. Across is the rank correlation over them, of the
	// share and of how many times p99 is that without a limit.
	Services int
	Across   float64
	// Band are those with a share from LowShare to HighShare; their p99 is Least to Most times that without a limit.
	Band        int
	Least, Most float64
	// Within is the median over Measured services of the rank correlation over a service's own runs, of share and p99. Negative
	// are those in which p99 falls where the share rises.
	Within             float64
	Measured, Negative int
}

// LowShare and HighShare bound the band of shares, in percent.
func (throttledShares) LowShare() float64  { return 100 * bandLow }
func (throttledShares) HighShare() float64 { return 100 * bandHigh }

// The band has half of the services that are stopped, and alerts begin within it (the kubernetes-mixin's at a quarter).
const bandLow, bandHigh = 0.1, 0.33

// throttledOf compares them over all results.
func throttledOf(testCases []services.Case, runs []caseRun) *throttledShares {
	t := &throttledShares{Least: math.Inf(1)}
	var shares, times, within []float64
	for i, k := range runs {
		if testCases[i].Healthy || !k.Complete || k.work() {
			continue
		}
		var share, p99, alone []float64
		for _, r := range k.Runs {
			if r.P99 == nil || r.Periods == 0 || r.Round == 0 {
				continue
			}
			of := float64(r.Throttled) / float64(r.Periods)
			share, p99 = append(share, of), append(p99, *r.P99)
			if r.Variant == leaveIt {
				alone = append(alone, of)
			}
		}
		if rises := stats.RankCorrelation(share, p99); !math.IsNaN(rises) {
			within = append(within, rises)
			t.Measured++
			t.Negative += count(rises < 0)
		}
		left, none := k.figures(leaveIt), k.figures(noLimit)
		if len(alone) == 0 || none.Rounds == 0 || stats.Median(alone) == 0 {
			continue
		}
		of, longer := stats.Median(alone), left.Median/none.Median
		shares, times = append(shares, of), append(times, longer)
		if of >= bandLow && of <= bandHigh {
			t.Band++
			t.Least, t.Most = min(t.Least, longer), max(t.Most, longer)
		}
	}
	if t.Services = len(shares); t.Services < 3 || t.Band < 2 {
		return nil
	}
	t.Across, t.Within = stats.RankCorrelation(shares, times), stats.Median(within)
	return t
}
