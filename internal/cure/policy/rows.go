package policy

import (
	"fmt"

	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/txn"
)

// seeds is how often each row is replayed, with other phases.
const seeds = 5

// Forecast replays a recording under every remedy, as explain and fix do before they choose. objective is nil where
// there is none, each and schedExt as in forecast.Options. The errors are those of forecast.Make.
func Forecast(l *forecast.Load, objective *forecast.Objective, schedExt bool,
	each func(n int, do func(i int) error) error) (*forecast.Forecast, error) {
	return rowsOf(l, remedy.Effects(), objective, schedExt, each)
}

// ForecastAsked is Forecast where a remedy is asked for by name: its row has the settings asked for.
func ForecastAsked(l *forecast.Load, asked remedy.Request, objective *forecast.Objective, schedExt bool,
	each func(n int, do func(i int) error) error) (*forecast.Forecast, error) {
	return rowsOf(l, remedy.EffectsAsked(asked), objective, schedExt, each)
}

func rowsOf(l *forecast.Load, effects []*forecast.Effect, objective *forecast.Objective, schedExt bool,
	each func(n int, do func(i int) error) error) (*forecast.Forecast, error) {
	made, err := forecast.Make(l, forecast.Options{Seeds: seeds, Seed: 1, Calibration: forecast.Tested(),
		Objective: objective, Each: each, Effects: effects, SchedExt: schedExt})
	if err != nil {
		return nil, fmt.Errorf("forecast: %w", err)
	}
	return made, nil
}

// forecast plans every row of the forecast, and takes the one that Choose recommends.
func (c *chooser) forecast(known *Known) (Proposal, error) {
	here := Here{Facts: c.f, Target: c.o.Container, Settings: c.w.Request}
	here.Settings.Observed = &c.seen
	plans, refused, err := here.plans(known.Forecast)
	if err != nil {
		return c.out, err
	}
	choice := Choose(known.Forecast, Terms{May: c.w.May, Refused: refused, Tried: known.Tried, Trial: true})
	c.out.Choice, c.out.Why = &choice, c.found+"; "+choice.Why
	for _, n := range choice.Not {
		c.not(remedy.Kind(known.Forecast.Rows[n.Row].Remedy.Name), n.Why)
	}
	if p, ok := plans[choice.Row]; ok {
		c.out.Plan, c.out.Request = p.plan, p.request
		c.out.Plan.Expected = expected(c.raw, choice.Row)
	}
	return c.out, nil
}

// expected is a row as the journal keeps it. The forecast must be the replay's own: Corrections compare outcomes with it, and
// would learn from what they left over if they had moved it.
func expected(f *forecast.Forecast, i int) *txn.Expected {
	var e txn.Expected
	row := &f.Rows[i]
	if row.Error != nil && row.Error.Stopped != nil {
		e.StoppedPerSecondLow = new(row.Error.Stopped.Low / f.Window.Seconds())
		e.StoppedPerSecondHigh = new(row.Error.Stopped.High / f.Window.Seconds())
	}
	if r := row.JudgedRange; r != nil && f.Judged.Quantile == objective.P99 {
		if f.Judged.Of == forecast.OfRequests {
			e.RequestsP99MsLow, e.RequestsP99MsHigh = new(r.Low), new(r.High)
		} else {
			e.PoolP99MsLow, e.PoolP99MsHigh = new(r.Low), new(r.High)
		}
	}
	return &e
}
