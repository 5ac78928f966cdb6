package report

import (
	"context"
	"time"

	"github.com/unthrottle/unthrottle/fleet/engine"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/demand/leastlimit"
	"github.com/unthrottle/unthrottle/internal/demand/periodmodel"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/stats"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

// treatment is a remedy in a container that has rows before it and with it.
type treatment struct {
	container int64
	remedy    string
}

// worse are those of which it is known whether they are worse than promised, and which are.
type worse map[treatment]bool

func (w worse) add(container int64, remedy string, is bool) {
	t := treatment{container, remedy}
	w[t] = w[t] || is
}

// applied says what remedies did, beside what was promised.
func applied(ctx context.Context, e engine.Engine, _ Options, d *view.Document) error {
	are := worse{}
	foretold, err := forecasts(ctx, e, are)
	if err != nil {
		return err
	}
	promises, err := promises(ctx, e, are)
	if err != nil {
		return err
	}
	days, err := appliedDays(ctx, e)
	if err != nil {
		return err
	}
	if err := engine.Each(ctx, e, "applied", func(a view.Applied) {
		if share, ok := foretold[a.Remedy]; ok {
			a.StoppedForecast = &share
		}
		promises[a.Remedy].into(&a)
		a.Days = days[a.Remedy]
		for t, is := range are {
			if t.remedy == a.Remedy {
				if a.Compared++; is {
					a.Worse++
				}
			}
		}
		round(a.StoppedForecast, a.StoppedBefore, a.StoppedAfter, a.CoresBefore, a.CoresAfter, a.SavedPromised, a.SavedLow, a.SavedHigh,
			a.Came)
		d.Applied = append(d.Applied, a)
	}); err != nil {
		return err
	}
	if err := requestsOf(ctx, e, d.Applied); err != nil {
		return err
	}
	for i := range d.Applied {
		d.Applied[i].Remedy = reportName(d.Applied[i].Remedy)
	}
	return nil
}

// promise is what recordings before a remedy said that it saves, in all its containers of which there is one.
type promise struct {
	containers int
	saved      size
	came       float64
	// unknown: the cores of one are not known.
	unknown bool
}

func (p *promise) into(a *view.Applied) {
	if p == nil {
		return
	}
	if a.Promised = p.containers; !p.unknown {
		a.SavedPromised, a.SavedLow, a.SavedHigh, a.Came = &p.saved.cpus, &p.saved.low, &p.saved.high, &p.came
	}
}

// promises reads them by remedy, and which containers got as many CPUs as was promised, and are slower.
func promises(ctx context.Context, e engine.Engine, are worse) (map[string]*promise, error) {
	byRemedy := map[string]*promise{}
	return byRemedy, engine.Each(ctx, e, "promised", func(line struct {
		ContainerNo                 int64
		Remedy                      string
		CoresBefore, CoresAfter     *float64
		MilliCPUs                   int32
		LowMilliCPUs, HighMilliCPUs *int32
		BeforeUS, AfterUS           *int64
	}) {
		p := byRemedy[line.Remedy]
		if p == nil {
			p = &promise{}
			byRemedy[line.Remedy] = p
		}
		need := needOf(line.MilliCPUs, line.LowMilliCPUs, line.HighMilliCPUs)
		if p.containers++; line.CoresBefore == nil || line.CoresAfter == nil {
			p.unknown = true
		} else {
			whole := leastlimit.Tenths
			if line.Remedy == string(remedy.Pin) {
				whole = leastlimit.Whole
			}
			saves := func(cpus float64) float64 { return max(0, *line.CoresBefore-whole(cpus)) }
			p.saved = size{p.saved.cpus + saves(need.cpus), p.saved.low + saves(need.high), p.saved.high + saves(need.low)}
			p.came += *line.CoresBefore - *line.CoresAfter
		}
		if fewer := line.CoresAfter != nil && *line.CoresAfter < need.cpus; !fewer && line.BeforeUS != nil && line.AfterUS != nil {
			before, after := microseconds(*line.BeforeUS), microseconds(*line.AfterUS)
			are.add(line.ContainerNo, line.Remedy, !stats.Alike(before.Seconds()*1000, after.Seconds()*1000))
		}
	})
}

// appliedDays are what came of each remedy, by the day.
func appliedDays(ctx context.Context, e engine.Engine) (map[string][]view.AppliedDay, error) {
	days := map[string][]view.AppliedDay{}
	return days, engine.Each(ctx, e, "applied_days", func(line struct {
		Remedy string
		DayNo  int
		view.AppliedDay
	}) {
		line.Day = line.DayNo
		round(&line.StoppedShare, line.Cores)
		days[line.Remedy] = append(days[line.Remedy], line.AppliedDay)
	})
}

// requestsOf adds how long requests took before remedies and with them.
func requestsOf(ctx context.Context, e engine.Engine, all []view.Applied) error {
	type key struct {
		remedy string
		day    int
	}
	took := map[key]lengths{}
	if err := engine.Each(ctx, e, "applied_requests", func(line struct {
		Remedy string
		DayNo  int
		length
	}) {
		k := key{line.Remedy, line.DayNo}
		took[k] = append(took[k], line.length)
	}); err != nil {
		return err
	}
	for i := range all {
		a := &all[i]
		var after []lengths
		for j := range a.Days {
			day := took[key{a.Remedy, a.Days[j].Day}]
			a.Days[j].RequestP99 = day.requestP99()
			after = append(after, day)
		}
		a.RequestP99Before, a.RequestP99After = took[key{a.Remedy, -1}].requestP99(), merged(after...).requestP99()
	}
	return nil
}

// rollouts are what some containers of services with a remedy in force were stopped, before it and with it.
func rollouts(ctx context.Context, e engine.Engine, _ Options, d *view.Document) error {
	if err := engine.Each(ctx, e, "rollouts", func(line struct {
		ServiceNo, LineNo, Containers, Slot int
		Service, Remedy, Cluster, Node, Pod string
		SinceMS                             int64
		StoppedShare                        float64
	}) {
		if len(d.Rollouts) < line.ServiceNo {
			d.Rollouts = append(d.Rollouts, view.Rollout{
				Service: line.Service, Remedy: reportName(line.Remedy), Containers: line.Containers})
		}
		of := &d.Rollouts[len(d.Rollouts)-1]
		if len(of.Lines) < line.LineNo {
			of.Lines = append(of.Lines, view.RolloutLine{Host: hostName(line.Cluster, line.Node), Pod: line.Pod,
				Since: time.UnixMilli(line.SinceMS).UTC(), StoppedShare: make([]*float64, 2*rolloutSlots)})
		}
		of.Lines[len(of.Lines)-1].StoppedShare[rolloutSlots+line.Slot] = new(rounded(line.StoppedShare))
	}); err != nil {
		return err
	}
	return rolloutRequests(ctx, e, d.Rollouts)
}

// rolloutRequests adds how long requests took in the containers of rollouts, the day before the remedy and the day after.
func rolloutRequests(ctx context.Context, e engine.Engine, all []view.Rollout) error {
	type key struct{ service, line, withIt int }
	took := map[key]lengths{}
	if err := engine.Each(ctx, e, "rollout_requests", func(line struct {
		ServiceNo, LineNo, WithIt int
		length
	}) {
		k := key{line.ServiceNo, line.LineNo, line.WithIt}
		took[k] = append(took[k], line.length)
	}); err != nil {
		return err
	}
	for i := range all {
		for j := range all[i].Lines {
			line := &all[i].Lines[j]
			line.RequestP99Before, line.RequestP99After = took[key{i + 1, j + 1, 0}].requestP99(), took[key{i + 1, j + 1, 1}].requestP99()
		}
	}
	return nil
}

// treated is a container with a remedy, and what its periods before said of it.
type treated struct {
	ContainerNo             int64
	Remedy                  string
	LimitCPUs, KnownSeconds *float64
	Seconds                 float64
	// Was and Came are the shares of the time for which it was stopped before and with it.
	Was, Came     float64
	CandidateFrom *int32
	// LongerUS is the period that came with a burst, where it is longer than the limit's before; else 0.
	LongerUS int64
	before   periodmodel.Curve
}

// forecasts are the stopped shares that the periods before each remedy foretold, over all its containers. A remedy of
// which they do not tell that of every container has none: it would be compared with others.
func forecasts(ctx context.Context, e engine.Engine, are worse) (map[string]float64, error) {
	var containers []treated
	if err := engine.Each(ctx, e, "forecasts", func(line struct {
		treated
		Step                      *int
		StoppedUS, BurstStoppedUS *int64
	}) {
		if n := len(containers); n == 0 || containers[n-1].ContainerNo != line.ContainerNo || containers[n-1].Remedy != line.Remedy {
			containers = append(containers, line.treated)
		}
		if line.Step == nil || line.StoppedUS == nil || line.BurstStoppedUS == nil || line.CandidateFrom == nil {
			return
		}
		from, told := int(*line.CandidateFrom), periodmodel.Outcome{}
		if line.LongerUS > 0 {
			with := periodmodel.Burst{Step: *line.Step, Stopped: microseconds(*line.BurstStoppedUS)}
			told.Long = []periodmodel.Long{{Period: microseconds(line.LongerUS), From: from, Bursts: []periodmodel.Burst{with}}}
		} else {
			with := periodmodel.Candidate{
				Step: *line.Step, Stopped: microseconds(*line.StoppedUS), BurstStopped: microseconds(*line.BurstStoppedUS),
			}
			told.From, told.Candidates = from, []periodmodel.Candidate{with}
		}
		containers[len(containers)-1].before.Add(told)
	}); err != nil {
		return nil, err
	}
	type total struct{ stopped, seconds float64 }
	totals, unknown := map[string]total{}, map[string]bool{}
	for i := range containers {
		t := &containers[i]
		share, most, ok := t.forecast()
		if most != nil {
			are.add(t.ContainerNo, t.Remedy, t.Came > *most)
		}
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

// forecast is the share of the time for which the remedy would have left it stopped, and at most: with a limit by as much
// smaller as the model may be off by; nil: that would not serve it. Periods tell that of another limit and of a burst.
func (t *treated) forecast() (share float64, most *float64, ok bool) {
	kind, _ := remedy.Find(remedy.Kind(t.Remedy))
	told := kind.Kind == remedy.Burst || kind.LargerLimit || t.Remedy == forecast.Limit
	if !told || t.LimitCPUs == nil || t.KnownSeconds == nil || t.CandidateFrom == nil || *t.KnownSeconds < leastKnown*t.Seconds {
		return 0, nil, false
	}
	with := periodmodel.Setting{Burst: kind.Kind == remedy.Burst, Period: microseconds(t.LongerUS)}
	if with.Period == 0 {
		t.before.Add(periodmodel.Outcome{From: int(*t.CandidateFrom)}) // where no limit would have stopped it
	}
	p, ok := t.before.At(*t.LimitCPUs, with)
	if less, served := t.before.At(*t.LimitCPUs/(1+periodmodel.Off(t.Was)), with); served {
		most = new(less.Stopped.Seconds() / *t.KnownSeconds)
	}
	return p.Stopped.Seconds() / *t.KnownSeconds, most, ok
}

func microseconds(us int64) time.Duration { return time.Duration(us) * time.Microsecond }
