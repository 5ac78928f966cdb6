package capacity

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
	"github.com/unthrottle/unthrottle/internal/load/workload"
)

// firstURLLoad is the first load on a service of unknown capacity.
const firstURLLoad = 20.0

// maxURLLoad is more than the generator can send over HTTP.
const maxURLLoad = 50_000.0

// asItIs is the one row of a service that is not ours to set.
const asItIs = "as it is"

// runURL raises the load on the user's own service until the objective is
// missed. It is asked as it is: its cgroups are not touched.
func runURL(ctx context.Context, o Options) (Result, error) {
	r := &run{o: o, started: workload.Now()}
	r.shape.Streams = streamsOf()
	return r.raiseURL(func(load float64, seed uint64, doing string) (step, error) { return r.urlStep(ctx, load, seed, doing) })
}

// raiseURL searches with single steps, each at a load.
func (r *run) raiseURL(ask func(load float64, seed uint64, doing string) (step, error)) (Result, error) {
	o := r.o
	var found []float64
	var steps []step
	end := generatorsEnd{}
	for repeat := range o.Repeats {
		s := search{guess: firstURLLoad, factor: 2, most: maxURLLoad, steps: o.Steps + 12, spare: 6}
		if repeat > 0 {
			s = nextSearch(median(found), maxURLLoad, o.Steps)
		}
		for load, more := s.next(); more; load, more = s.next() {
			done, err := ask(load, r.seed(repeat), fmt.Sprintf("%.0f/s, repeat %d of %d", load, repeat+1, o.Repeats))
			if len(steps) > 0 && end.is(err, load) {
				s.note(load, false)
				continue
			}
			if err != nil {
				return Result{}, err
			}
			why := o.Objective.judge(done.service)
			if len(steps) == 0 && why != "" {
				return Result{}, r.urlUnmet(load, why, done)
			}
			steps = append(steps, done)
			s.note(load, why == "")
			if s.missed > 0 && s.met > 0 && repeat == 0 {
				s.steps = min(s.steps, o.Steps)
			}
		}
		found = append(found, s.met)
	}
	res := describe(o)
	m := remedyOf(asItIs, found, steps, o.Objective)
	var points []step
	for _, level := range levels {
		load := level * median(found)
		if load == 0 {
			break // said by noise: most repeats found nothing
		}
		done, err := ask(load, r.seed(100), fmt.Sprintf("at %.0f %% of the highest", 100*level))
		if end.is(err, load) {
			continue
		}
		if err != nil {
			return res, err
		}
		points = append(points, done)
		m.Points = append(m.Points, pointOf(level, []step{done}, o.Objective))
	}
	m.Why = append(m.Why, noise(append(steps, points...), found)...)
	if end.at > 0 {
		m.Why = append(m.Why, fmt.Sprintf("at %.0f requests per second the load generator was at its own end: the "+
			"service may hold more", end.at))
	}
	m.Noisy = len(m.Why) > 0
	res.Remedies = []Remedy{m}
	res.Seconds = round3((workload.Now() - r.started).Seconds())
	return res, nil
}

// generatorsEnd is the least load at which the generator was the bottleneck, 0:
// none yet. Nothing was measured of the service there.
type generatorsEnd struct{ at float64 }

func (e *generatorsEnd) is(err error, load float64) bool {
	if !errors.As(err, new(*Saturated)) {
		return false
	}
	if e.at == 0 || load < e.at {
		e.at = load
	}
	return true
}

func (r *run) urlStep(ctx context.Context, load float64, seed uint64, doing string) (step, error) {
	r.o.Progress(Event{Doing: doing, Done: workload.Now() - r.started})
	d := r.o.Step
	if enough := minRequests / load; enough > d.Seconds() {
		d = min(MaxStep, time.Duration(math.Ceil(enough))*time.Second)
	}
	plan := loadgen.Plan{
		URL: r.o.URL, Seed: seed, Streams: r.shape.Streams, Timeout: timeout, LateAfter: r.o.Objective.late(),
		Connections: loadgen.MaxConnections,
		Phases:      []loadgen.Phase{{For: warm, Factor: load}, {For: d, Factor: load, Measured: true}},
	}
	result, err := loadgen.Run(ctx, r.o.Exe, plan)
	if err != nil {
		return step{}, err
	}
	service := foreground(r.shape.Streams, result.Phases[1])
	// Where nothing is answered at all it does not matter when it was asked.
	if why := result.Own.Saturated(); why != "" && service.Answered > 0 {
		return step{}, &Saturated{why}
	}
	return step{load: load, service: service, own: result.Own, failure: result.FirstFailure, seconds: d.Seconds()}, nil
}

// urlUnmet explains why the first and lightest step came to nothing.
func (r *run) urlUnmet(load float64, why string, s step) error {
	text := fmt.Sprintf("%s does not meet %v with at most %.3g %% errors even at %.0f requests per second: %s", r.o.URL,
		r.o.Objective, 100*r.o.Objective.Errors, load, why)
	if s.failure != "" {
		text += "; the first failure: " + s.failure
	}
	if s.service.Answered == 0 {
		return &Unmet{text + "; not one request had a good answer: look whether it runs, and whether the URL is right"}
	}
	return &Unmet{text + "; give a looser objective with --slo or --errors"}
}
