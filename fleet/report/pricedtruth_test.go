package report

import (
	"math"
	"testing"

	"github.com/unthrottle/unthrottle/fleet/generate"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

// Of fleets of which recordings tell a part, and whose truth is known: cores by remedy are within a tenth of what is needed
// with the remedy that the report chose, what comes back is within a tenth of what the best remedies bring, and few services
// have another one than that or as good a one. Containers without recordings are told apart, and so are pools.
func TestTruthOfPrices(t *testing.T) {
	services, best, longer, lines := 0, 0, 0, map[string]int{}
	told, comes := 0.0, 0.0
	for seed := range uint64(4) {
		dir := t.TempDir()
		truth, err := generate.Make(t.Context(), dir, generate.Options{Hosts: 5, Containers: 800, Seed: seed, Start: noon, Hours: 2,
			Bound: 0.001, Drawn: true, Priced: 0.6})
		if err != nil {
			t.Fatal(err)
		}
		d, err := asked(t, dir, 0)
		if err != nil {
			t.Fatal(err)
		}
		priced, threads, has := 0, map[string]int64{}, map[string]int64{}
		after, now := map[string]float64{}, map[string]float64{}
		for _, want := range truth.Services {
			got := serviceOf(t, d, want.Name)
			if want.Priced == nil {
				if got.Priced != 0 || len(got.Prices) != 0 || got.KneeShare != nil {
					t.Errorf("%s has no recording: %+v", want.Name, got)
				}
				continue
			}
			priced, services = priced+want.Containers, services+1
			threads[want.Priced.Pool] += int64(want.Containers) * int64(want.Priced.Threads)
			cores := float64(want.Containers) * want.LimitCPUs
			needs, by := func(remedy string) float64 {
				for _, l := range want.Priced.LongBursts {
					if remedy == forecast.Burst && got.BurstPeriodMS != nil && *got.BurstPeriodMS == 1000*l.PeriodSeconds {
						return min(cores, l.Cores)
					}
				}
				return min(cores, want.Priced.Cores[remedy])
			}, shownAs(*got.Remedy)
			if got.BurstPeriodMS != nil {
				longer++
			}
			need := cores
			if *got.Remedy != view.Leave {
				need = needs(by)
			}
			after[*got.Remedy], now[*got.Remedy] = after[*got.Remedy]+need, now[*got.Remedy]+cores
			cheapest := cores
			for remedy := range want.Priced.Cores {
				cheapest = min(cheapest, needs(remedy))
			}
			for _, l := range want.Priced.LongBursts {
				cheapest = min(cheapest, l.Cores)
			}
			told, comes = told+cores-*got.CoresAfter, comes+cores-cheapest
			step := 0.1 * float64(want.Containers)
			if need < cheapest+0.1*cores+step {
				best++
			}
			for _, p := range got.Prices {
				if need := needs(shownAs(p.Remedy)); need < p.CoresAfterLow-step-1e-6 || need > p.CoresAfterHigh+step+1e-6 {
					t.Errorf("seed %d, %s: needs %.1f with %s, told %.1f to %.1f", seed, want.Name, need, p.Remedy, p.CoresAfterLow,
						p.CoresAfterHigh)
				}
			}
		}
		byRemedy := map[string]view.ByRemedy{}
		for _, l := range d.ByRemedy {
			if !l.Priced {
				continue
			}
			if sum, there := byRemedy[l.Remedy]; there { // a burst in another period
				l.CoresNow, l.CoresAfter = l.CoresNow+sum.CoresNow, l.CoresAfter+sum.CoresAfter
			} else {
				lines[l.Remedy]++
			}
			byRemedy[l.Remedy] = l
		}
		for _, l := range byRemedy {
			if math.Abs(l.CoresNow-now[l.Remedy]) > 1e-3 || math.Abs(l.CoresAfter/after[l.Remedy]-1) > 0.1 {
				t.Errorf("seed %d, %s: %.1f of %.1f cores, told %.1f of %.1f", seed, l.Remedy, after[l.Remedy], now[l.Remedy],
					l.CoresAfter, l.CoresNow)
			}
		}
		if d.Priced != priced || d.Defaults.Containers != priced || priced == 0 || priced == truth.Containers {
			t.Errorf("seed %d: recordings of %d of %d containers, told %d, with pools %d", seed, priced, truth.Containers, d.Priced,
				d.Defaults.Containers)
		}
		for _, p := range d.Defaults.Pools {
			if p.Pool != nil {
				has[*p.Pool] = p.Threads
			} else {
				has[*p.Name] = p.Threads
			}
		}
		for pool, want := range threads {
			if has[pool] != want {
				t.Errorf("seed %d: %d threads of %s, told %d", seed, want, pool, has[pool])
			}
		}
	}
	t.Logf("%d services with recordings, %d with the best remedy or one as good; %v fleets by remedy; %.1f cores can go, told %.1f", services,
		best, lines, comes, told)
	if longer == 0 {
		t.Error("no burst is in a longer period")
	}
	if best*10 < services*9 || math.Abs(told/comes-1) > 0.1 || len(lines) < 5 {
		t.Errorf("%d of %d services with the best remedy or one as good; by remedy %v; %.1f cores can go, told %.1f", best, services, lines,
			comes, told)
	}
}

// shownAs is the forecast's name of a remedy of the report.
func shownAs(remedy string) string {
	for _, r := range view.Remedies {
		if r.Remedy == remedy {
			return r.Name
		}
	}
	return forecast.Limit
}
