package forecast

import (
	"math"
	"time"

	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

// Range is from Low to High.
type Range struct{ Low, High float64 }

// scaled widens a range by off at both ends, on a logarithmic scale, after it made the range include point.
func (r *Range) scaled(off, point float64) *Range {
	widen := math.Exp(off)
	return &Range{math.Min(point, r.Low/widen), math.Max(point, r.High*widen)}
}

// Coverage is the share of real results that should lie within the error of a row.
const Coverage = 0.9

// Error is the error of a row: Coverage of all real results should lie in these ranges. nil: the figure has
// no known error.
type Error struct {
	P50, P99, Max    *Range // in milliseconds
	ThrottledPeriods *Range
	Stopped          *Range // in seconds
	// judged is that of the objective's quantile, or of the one that is judged without one; beyond p99 that of the longest.
	judged *Range
	// Tested is how many forecasts of this remedy were compared with real runs. 0: the error comes from the
	// self-check and the seeds only.
	Tested int
}

// Figure is one figure as recorded and as replayed; nil: not measured.
type Figure struct{ Recorded, Replayed *float64 }

// ratio is the logarithm of the larger figure over the smaller one. It is 0 if one is missing or both are 0.
func (f Figure) ratio() float64 {
	if f.Recorded == nil || f.Replayed == nil || *f.Recorded <= 0 || *f.Replayed <= 0 {
		return 0
	}
	return math.Abs(math.Log(*f.Replayed / *f.Recorded))
}

func (f Figure) apart() float64 {
	if f.Recorded == nil || f.Replayed == nil {
		return 0
	}
	return math.Abs(*f.Replayed - *f.Recorded)
}

// far reports whether the replayed figure is from the recorded one by least and more, and by more than the factor ratio.
func (f Figure) far(least, ratio float64) bool {
	if f.Recorded == nil || f.Replayed == nil || f.apart() < least {
		return false
	}
	low, high := math.Min(*f.Recorded, *f.Replayed), math.Max(*f.Recorded, *f.Replayed)
	return high > ratio*low
}

// SelfCheck compares the replay of the unchanged recording with the recording.
type SelfCheck struct {
	ThrottledPeriods Figure
	Stopped          Figure // seconds
	P50, P99, Max    Figure // of all pools' responses, milliseconds
	CPU              Figure // seconds
	Judged           Figure // the judged latency, milliseconds
}

// selfCheck compares the figures of the row without a remedy with what was recorded.
func (l *Load) selfCheck(f Figures, pool string) SelfCheck {
	c := SelfCheck{
		ThrottledPeriods: Figure{Replayed: &f.ThrottledPeriods},
		Stopped:          Figure{Replayed: new(f.Stopped.Seconds())},
		CPU:              Figure{new(l.recorded.cpu.Seconds()), new(f.CPU.Seconds())},
	}
	if n := l.recorded.throttledPeriods; n != nil {
		c.ThrottledPeriods.Recorded = new(float64(*n))
	}
	if d := l.recorded.stopped; d != nil {
		c.Stopped.Recorded = new(d.Seconds())
	}
	recorded, response := l.recordedResponses(pool), f.Response
	for i, p := range l.Pools {
		if pool != "" && p.Name == pool {
			response = f.Pools[i].Response
		}
	}
	was := quantilesOf(recorded)
	c.P50, c.P99, c.Max = Figure{was.P50, response.P50}, Figure{was.P99, response.P99}, Figure{was.Max, response.Max}
	return c
}

// recordedResponses are those of the pools of that name ("": of all) in the recording.
func (l *Load) recordedResponses(pool string) *simulate.Times {
	times := simulate.NewTimes()
	for _, p := range l.Pools {
		if pool == "" || p.Name == pool {
			times.Merge(p.recorded.Response)
		}
	}
	return times
}

// Residual is how far real results of a remedy lie beyond the error that a forecast computes by itself, in
// Coverage of the runs. Below 0 that error is too large.
type Residual struct {
	N int `json:"n"` // number of forecasts
	// P50, P99 and Max are logarithms of ratios. ThrottledPeriods and Stopped are differences, as a share of
	// the periods and of the time.
	P50              float64 `json:"p50"`
	P99              float64 `json:"p99"`
	Max              float64 `json:"max"`
	ThrottledPeriods float64 `json:"throttled_periods"`
	Stopped          float64 `json:"stopped"`
}

// ifTested returns the residual if enough forecasts were tested, else a zero one.
func (r Residual) ifTested() Residual {
	if r.N < minTested {
		return Residual{}
	}
	return r
}

// Calibration has the residuals by remedy.
type Calibration map[string]Residual

// minTested is how many tested forecasts of a remedy make its residual count.
const minTested = 10

// normalDeviations is the half width, in standard deviations, in which Coverage of a normal distribution
// lies.
const normalDeviations = 1.645

// errorOf computes the error of a row from four parts: the spread over seeds, the moments that the recording
// happened to catch (of one pool also between parts of its time: otherTimesOf), the self-check, and the residual of
// earlier forecasts.
func (l *Load) errorOf(results []result, check SelfCheck, o Objective, tested Residual) *Error {
	tested = tested.ifTested()
	periods := l.window.Seconds() / l.recordedScenario.Cgroups[l.binding].Limit.Period.Seconds()
	e := &Error{Tested: tested.N}
	e.P50 = l.rangeOf(results, o.Pool, 0.5, check.P50, tested.P50)
	e.P99 = l.rangeOf(results, o.Pool, objective.P99, check.P99, tested.P99)
	e.Max = l.rangeOf(results, o.Pool, 1, check.Max, tested.Max)
	switch {
	case o.Quantile > objective.P99:
		e.judged = e.Max
	case o.Quantile == objective.P99:
		e.judged = e.P99
	case o.Quantile <= 0.5:
		e.judged = l.rangeOf(results, o.Pool, o.Quantile, check.P50, tested.P50)
	default:
		e.judged = l.rangeOf(results, o.Pool, o.Quantile, check.P99, tested.P99)
	}
	sum := func(figure func(*result) float64, off float64) *Range {
		r := spread(results, func(r *result) *float64 { return new(figure(r)) })
		middle := median(results, figure)
		return &Range{math.Max(0, math.Min(middle, r.Low-off)), math.Max(middle, r.High+off)}
	}
	e.ThrottledPeriods = sum(func(r *result) float64 { return float64(r.throttledPeriods) },
		check.ThrottledPeriods.apart()+tested.ThrottledPeriods*periods)
	e.Stopped = sum(func(r *result) float64 { return r.stopped.Seconds() },
		check.Stopped.apart()+tested.Stopped*l.window.Seconds())
	e.Stopped.High = math.Min(e.Stopped.High, l.window.Seconds())
	return e
}

// rangeOf is the error of one quantile of the responses of a pool ("": of all): see errorOf. nil: there are no
// responses.
func (l *Load) rangeOf(results []result, pool string, q float64, check Figure, off float64) *Range {
	replayTimes := l.mergedTimes(results, pool)
	r := spread(results, func(r *result) *float64 {
		times := l.mergedTimes([]result{*r}, pool)
		return times.Response.Quantile(q)
	})
	if r == nil {
		return nil
	}
	caught := sampled(replayTimes.Response, q, float64(replayTimes.Response.Count())/float64(len(results)))
	if other := l.otherTimesOf(results, pool, q); other != nil {
		caught = &Range{math.Min(caught.Low, other.Low), math.Max(caught.High, other.High)}
	}
	widen := math.Exp(check.ratio())
	own := Range{math.Min(r.Low, caught.Low) / widen, math.Max(r.High, caught.High) * widen}
	return own.scaled(off, *replayTimes.Response.Quantile(q))
}

// sampled returns the range of a quantile in Coverage of samples of n responses. The number of responses
// above the quantile varies by chance. The distribution must not be empty.
func sampled(times *simulate.Times, q, n float64) *Range {
	d := normalDeviations * math.Sqrt(q*(1-q)/math.Max(1, n))
	return &Range{*times.Quantile(math.Max(0, q-d)), *times.Quantile(math.Min(1, q+d))}
}

// limitless reports whether the remedy leaves no quota that could throttle. The self-check's error of
// throttling then does not apply.
func (r Remedy) limitless() bool { return r.effect().NoQuota }

// unthrottled returns the check without the figures that need a quota.
func (c SelfCheck) unthrottled() SelfCheck {
	c.ThrottledPeriods, c.Stopped = Figure{}, Figure{}
	return c
}

func withinBound(d time.Duration, of *float64) bool { return of != nil && *of <= milliseconds(d) }
