package forecast

import (
	"math"
	"time"

	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

// Range is from Low to High.
type Range struct{ Low, High float64 }

// scaled is a range so much wider at both ends, as a logarithm, that still has a point in it.
func (r *Range) scaled(off, point float64) *Range {
	widen := math.Exp(off)
	return &Range{math.Min(point, r.Low/widen), math.Max(point, r.High*widen)}
}

// Coverage is how often what really comes should be within the error of a row.
const Coverage = 0.9

// Error is how far off the figures of a row may be: within these ranges in Coverage of all cases. nil: not known of that figure.
type Error struct {
	P50, P99, Max    *Range // in milliseconds
	ThrottledPeriods *Range
	Stopped          *Range // in seconds
	// Tested is how many forecasts of this remedy were held against what came for real; 0: the error is the self-check's
	// and the seeds' only.
	Tested int
}

// Figure is one figure as recorded and as replayed; nil: not measured.
type Figure struct{ Recorded, Replayed *float64 }

// ratio is how far apart they are, as the logarithm of one over the other; 0 where one is missing or both are nothing.
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

// SelfCheck holds the replay of what was recorded against the recording.
type SelfCheck struct {
	ThrottledPeriods Figure
	Stopped          Figure // seconds
	P50, P99, Max    Figure // of all pools' responses, milliseconds
	CPU              Figure // seconds
}

func (l *Load) selfCheck(f Figures, pool string) SelfCheck {
	c := SelfCheck{
		ThrottledPeriods: Figure{Replayed: &f.ThrottledPeriods},
		Stopped:          Figure{Replayed: new(f.Stopped.Seconds())},
		CPU:              Figure{new(l.Recorded.CPU.Seconds()), new(f.CPU.Seconds())},
	}
	if n := l.Recorded.ThrottledPeriods; n != nil {
		c.ThrottledPeriods.Recorded = new(float64(*n))
	}
	if d := l.Recorded.Stopped; d != nil {
		c.Stopped.Recorded = new(d.Seconds())
	}
	recorded, response := simulate.NewTimes(), f.Response
	for i, p := range l.Pools {
		if pool == "" || p.Name == pool {
			recorded.Merge(p.Recorded.Response)
		}
		if pool != "" && p.Name == pool {
			response = f.Pools[i].Response
		}
	}
	was := quantilesOf(recorded)
	c.P50, c.P99, c.Max = Figure{was.P50, response.P50}, Figure{was.P99, response.P99}, Figure{was.Max, response.Max}
	return c
}

// Residual is how far beyond what a forecast expects by itself things came when the remedy was applied for real, in
// Coverage of the runs; below 0: it expects too little of itself.
type Residual struct {
	N int `json:"n"` // forecasts
	// P50, P99 and Max are logarithms of ratios, ThrottledPeriods and Stopped differences as a share of the periods and of
	// the time.
	P50              float64 `json:"p50"`
	P99              float64 `json:"p99"`
	Max              float64 `json:"max"`
	ThrottledPeriods float64 `json:"throttled_periods"`
	Stopped          float64 `json:"stopped"`
}

// counted is the residual if enough forecasts were tested, else none.
func (r Residual) counted() Residual {
	if r.N < enough {
		return Residual{}
	}
	return r
}

// Calibration are residuals by remedy.
type Calibration map[string]Residual

// enough forecasts of a remedy must have been tested for their residual to count.
const enough = 10

// sides of a normal distribution within which Coverage of it lies, in its deviations.
const sides = 1.645

// errorOf is the error of a row: over the seeds, over which of the moments the recording happened to catch, by what the
// self-check was off, and by how much more than that earlier forecasts were.
func (l *Load) errorOf(results []Result, check SelfCheck, o Objective, tested Residual) *Error {
	tested = tested.counted()
	periods := l.Window.Seconds() / l.Scenario.Cgroups[l.Binding].Limit.Period.Seconds()
	e := &Error{Tested: tested.N}
	all := l.summed(results, o.Pool)
	one := float64(all.Response.Count()) / float64(len(results))
	quantile := func(q float64, check Figure, off float64) *Range {
		r := spread(results, func(r *Result) *float64 {
			times := l.summed([]Result{*r}, o.Pool)
			return times.Response.Quantile(q)
		})
		if r == nil {
			return nil
		}
		caught := sampled(all.Response, q, one)
		widen := math.Exp(check.ratio())
		own := Range{math.Min(r.Low, caught.Low) / widen, math.Max(r.High, caught.High) * widen}
		return own.scaled(off, *all.Response.Quantile(q))
	}
	e.P50, e.P99 = quantile(0.5, check.P50, tested.P50), quantile(0.99, check.P99, tested.P99)
	e.Max = quantile(1, check.Max, tested.Max)
	sum := func(figure func(*Result) float64, off float64) *Range {
		r := spread(results, func(r *Result) *float64 { return new(figure(r)) })
		middle := median(results, figure)
		return &Range{math.Max(0, math.Min(middle, r.Low-off)), math.Max(middle, r.High+off)}
	}
	e.ThrottledPeriods = sum(func(r *Result) float64 { return float64(r.ThrottledPeriods) },
		check.ThrottledPeriods.apart()+tested.ThrottledPeriods*periods)
	e.Stopped = sum(func(r *Result) float64 { return r.Stopped.Seconds() },
		check.Stopped.apart()+tested.Stopped*l.Window.Seconds())
	e.Stopped.High = math.Min(e.Stopped.High, l.Window.Seconds())
	return e
}

// sampled is where a quantile may be by chance in Coverage of cases, where n responses were seen: so many more or less of
// them may have been above. There are some.
func sampled(of *simulate.Times, q, n float64) *Range {
	d := sides * math.Sqrt(q*(1-q)/math.Max(1, n))
	return &Range{*of.Quantile(math.Max(0, q-d)), *of.Quantile(math.Min(1, q+d))}
}

// limitless remedies leave no quota that could throttle: what the self-check is off there says nothing of them.
func (r Remedy) limitless() bool { return r.Name == Pin || r.Name == Weight }

// unthrottled is a check without the figures that need a quota.
func (c SelfCheck) unthrottled() SelfCheck {
	c.ThrottledPeriods, c.Stopped = Figure{}, Figure{}
	return c
}

func pick(d time.Duration, of *float64) bool { return of != nil && *of <= milliseconds(d) }
