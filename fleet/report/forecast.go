package report

import (
	"context"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/fleet/engine"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/demand/periodmodel"
)

// treated is a container with a remedy, and what its periods before said of it.
type treated struct {
	no      int64
	remedy  string
	limit   *float64
	seconds float64
	known   *float64
	from    *int32
	before  periodmodel.Curve
}

// forecasts are the stopped shares that the periods before each remedy foretold, over all its containers. A remedy of which they do not tell
// that of every container has none: it would be compared with others.
func forecasts(ctx context.Context, e engine.Engine) (map[string]float64, error) {
	var all []treated
	err := e.Ask(ctx, "forecasts", func(scan func(...any) error) error {
		var t treated
		var step *int32
		var stopped, burst *int64
		if err := scan(&t.no, &t.remedy, &t.limit, &t.seconds, &t.known, &t.from, &step, &stopped, &burst); err != nil {
			return err
		}
		if n := len(all); n == 0 || all[n-1].no != t.no || all[n-1].remedy != t.remedy {
			all = append(all, t)
		}
		if step != nil && stopped != nil && burst != nil && t.from != nil {
			all[len(all)-1].before.Add(periodmodel.Outcome{From: int(*t.from), Candidates: []periodmodel.Candidate{{Step: int(*step),
				Stopped: time.Duration(*stopped) * time.Microsecond, BurstStopped: time.Duration(*burst) * time.Microsecond}}})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	sums, unknown := map[string][2]float64{}, map[string]bool{}
	for i := range all {
		t := &all[i]
		share, ok := t.forecast()
		if !ok {
			unknown[t.remedy] = true
			continue
		}
		of := sums[t.remedy]
		sums[t.remedy] = [2]float64{of[0] + share*t.seconds, of[1] + t.seconds}
	}
	shares := map[string]float64{}
	for name, of := range sums {
		if !unknown[name] {
			shares[name] = of[0] / of[1]
		}
	}
	return shares, nil
}

// forecast is the share of the time for which the remedy would have left it stopped.
func (t *treated) forecast() (share float64, ok bool) {
	tells := []remedy.Kind{remedy.Burst, remedy.Raise}
	if !slices.Contains(tells, remedy.Kind(t.remedy)) || t.limit == nil || t.known == nil || t.from == nil || *t.known < leastKnown*t.seconds {
		return 0, false
	}
	t.before.Add(periodmodel.Outcome{From: int(*t.from)}) // where no limit would have stopped it
	p, ok := t.before.At(*t.limit, t.remedy == string(remedy.Burst))
	return p.Stopped.Seconds() / *t.known, ok
}
