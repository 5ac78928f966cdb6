package report

import (
	"context"
	"time"

	"github.com/unthrottle/unthrottle/fleet/engine"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/demand/periodmodel"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

// applied says what remedies did.
func applied(ctx context.Context, e engine.Engine, _ Options, d *view.Document) error {
	foretold, err := forecasts(ctx, e)
	if err != nil {
		return err
	}
	return engine.Each(ctx, e, "applied", func(a view.Applied) {
		if share, ok := foretold[a.Remedy]; ok {
			a.StoppedForecast = &share
		}
		round(a.StoppedForecast, a.StoppedBefore, a.StoppedAfter, a.CoresBefore, a.CoresAfter)
		d.Applied = append(d.Applied, a)
	})
}

// treated is a container with a remedy, and what its periods before said of it.
type treated struct {
	ContainerNo             int64
	Remedy                  string
	LimitCPUs, KnownSeconds *float64
	Seconds                 float64
	CandidateFrom           *int32
	before                  periodmodel.Curve
}

// forecasts are the stopped shares that the periods before each remedy foretold, over all its containers. A remedy of
// which they do not tell that of every container has none: it would be compared with others.
func forecasts(ctx context.Context, e engine.Engine) (map[string]float64, error) {
	var containers []treated
	if err := engine.Each(ctx, e, "forecasts", func(line struct {
		treated
		Step                      *int
		StoppedUS, BurstStoppedUS *int64
	}) {
		if n := len(containers); n == 0 || containers[n-1].ContainerNo != line.ContainerNo || containers[n-1].Remedy != line.Remedy {
			containers = append(containers, line.treated)
		}
		if line.Step != nil && line.StoppedUS != nil && line.BurstStoppedUS != nil && line.CandidateFrom != nil {
			with := periodmodel.Candidate{
				Step: *line.Step, Stopped: microseconds(*line.StoppedUS), BurstStopped: microseconds(*line.BurstStoppedUS),
			}
			containers[len(containers)-1].before.Add(
				periodmodel.Outcome{From: int(*line.CandidateFrom), Candidates: []periodmodel.Candidate{with}})
		}
	}); err != nil {
		return nil, err
	}
	type total struct{ stopped, seconds float64 }
	totals, unknown := map[string]total{}, map[string]bool{}
	for i := range containers {
		t := &containers[i]
		share, ok := t.forecast()
		if !ok {
			unknown[t.Remedy] = true
			continue
		}
		so := totals[t.Remedy]
		totals[t.Remedy] = total{so.stopped + share*t.Seconds, so.seconds + t.Seconds}
	}
	shares := map[string]float64{}
	for name, t := range totals {
		if !unknown[name] {
			shares[name] = t.stopped / t.seconds
		}
	}
	return shares, nil
}

// forecast is the share of the time for which the remedy would have left it stopped. Periods tell that of a larger
// limit and of a burst.
func (t *treated) forecast() (share float64, ok bool) {
	kind, _ := remedy.Find(remedy.Kind(t.Remedy))
	if kind.Kind != remedy.Burst && !kind.LargerLimit || t.LimitCPUs == nil || t.KnownSeconds == nil || t.CandidateFrom == nil ||
		*t.KnownSeconds < leastKnown*t.Seconds {
		return 0, false
	}
	t.before.Add(periodmodel.Outcome{From: int(*t.CandidateFrom)}) // where no limit would have stopped it
	p, ok := t.before.At(*t.LimitCPUs, kind.Kind == remedy.Burst)
	return p.Stopped.Seconds() / *t.KnownSeconds, ok
}

func microseconds(us int64) time.Duration { return time.Duration(us) * time.Microsecond }
