// Package drawn has services of which it is known what each remedy does to them, to count how often a trial is wrong.
//
// # Model
//
// Requests come in groups at random moments (a Poisson process), one after the other within a group. Stops come at random too, and what
// comes during a stop waits for its end; a remedy changes how long stops last, by a factor. Beside them rare work, such as a compaction,
// comes once in some seconds and makes each request longer while it lasts; no remedy changes that. What leaving the service and each
// remedy do to the judged quantile is then known from a run of half an hour.
//
// # Limits
//
// Turns follow each other without memory, and the load is the same all day. Real services drift.
package drawn

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/trial"
	"github.com/unthrottle/unthrottle/internal/cure/verdict"
	"github.com/unthrottle/unthrottle/internal/stats"
)

// Service is one of them. Rates are per second, times in ms.
type Service struct {
	Name string
	// Groups of Size requests come at a rate; a request takes about BaseMs.
	Groups float64
	Size   int
	BaseMs float64
	// Stops come at a rate and last StopMs on average, 0.5 to 1.5 times as long.
	Stops, StopMs float64
	// Rare work comes at a rate, lasts RareSeconds on average and adds up to RareMs to each request.
	Rare, RareSeconds, RareMs float64
	// Effects are the factors of StopMs by variant; the first, of leaving it, is 1.
	Effects []float64
}

// Turn is a turn of a variant.
func (s Service) Turn(draw *rand.Rand, v int, length time.Duration) trial.Measured {
	end := length.Seconds() * 1000
	stops := spans(draw, s.Stops, end, func() float64 { return s.StopMs * s.Effects[v] * (0.5 + draw.Float64()) })
	rare := spans(draw, s.Rare, end, func() float64 { return 1000 * s.RareSeconds * (0.5 + draw.Float64()) })
	r := verdict.Requests{Window: length}
	for at := gap(draw, s.Groups); at < end; at += gap(draw, s.Groups) {
		now := at
		for range s.Size {
			took := s.BaseMs * math.Exp(0.3*draw.NormFloat64())
			r.CPUs += took / end / 10
			if rare.at(now) > 0 {
				took += s.RareMs * draw.Float64()
			}
			took += stops.at(now)
			now += took
			r.BeganMs, r.TookMs = append(r.BeganMs, at), append(r.TookMs, now-at)
		}
	}
	stopped := 0.0
	for _, one := range stops {
		stopped += (min(one.end, end) - one.from) / end
	}
	background := 0.0
	for _, one := range rare {
		background += (min(one.end, end) - one.from) / end
	}
	r.CPUs += background / 2
	return trial.Measured{Judged: r, Work: []float64{background / 2}, Stopped: &stopped}
}

// span is a time with its end, in ms.
type span struct{ from, end float64 }

type all []span

func gap(draw *rand.Rand, perSecond float64) float64 { return 1000 * draw.ExpFloat64() / perSecond }

func spans(draw *rand.Rand, perSecond, end float64, lasts func() float64) (s all) {
	if perSecond == 0 {
		return nil
	}
	for at := gap(draw, perSecond); at < end; at += gap(draw, perSecond) {
		s = append(s, span{at, at + lasts()})
	}
	return s
}

// at is how long a span still lasts at a moment; 0: none is.
func (s all) at(ms float64) float64 {
	i, found := slices.BinarySearchFunc(s, ms, func(one span, ms float64) int { return cmp.Compare(one.from, ms) })
	if !found {
		i--
	}
	if i < 0 {
		return 0
	}
	return max(0, s[i].end-ms)
}

// Ratios are the quantile under each variant over that of leaving it, of half an hour each.
func (s Service) Ratios(quantile float64) (ratios []float64) {
	var left float64
	for v := range s.Effects {
		took := s.Turn(rand.New(rand.NewPCG(7, 7)), v, 30*time.Minute).Judged.TookMs
		slices.Sort(took)
		ms := stats.Rank(took, quantile)
		if v == 0 {
			left = ms
		}
		ratios = append(ratios, ms/left)
	}
	return ratios
}

// Quantile is the one that fix would judge: the highest that two turns tell.
func (s Service) Quantile(turn time.Duration) float64 {
	n := int(2 * s.Groups * float64(s.Size) * turn.Seconds())
	if q, ok := stats.Tells(n, 0.995); ok {
		return q
	}
	return 0.5
}

// Services are the cells of the table: rates of requests by rates of rare work.
func Services(effects []float64) (of []Service) {
	for _, requests := range []Service{
		{Name: "7 groups of 1", Groups: 7, Size: 1}, {Name: "7 groups of 6", Groups: 7, Size: 6},
		{Name: "40 requests", Groups: 40, Size: 1}, {Name: "300 requests", Groups: 300, Size: 1},
	} {
		for _, rare := range []struct {
			name string
			rate float64
		}{{"none", 0}, {"once in 20 s", 0.05}, {"once in 8 s", 0.125}} {
			one := requests
			one.Name += ", " + rare.name
			one.BaseMs, one.Stops, one.StopMs = 8, 1.5, 90
			one.Rare, one.RareSeconds, one.RareMs, one.Effects = rare.rate, 1, 250, effects
			of = append(of, one)
		}
	}
	return of
}
