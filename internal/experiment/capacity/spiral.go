package capacity

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
)

// A service whose load rises above its knee for a moment can stay overloaded at the
// normal load. Clients retry the lost requests, and waiting requests make the others
// dearer (seed 000, "throttling death spiral").

// Spiral is what a spike did to a service, by what it was made of.
type Spiral struct {
	Capacity float64     // requests per second that the limit's CPUs can carry
	Normal   float64     // requests per second before and after the spike
	Spike    float64     // and in it
	For      float64     // seconds that the spike lasts
	Watched  float64     // seconds after it that were looked at
	Timeout  float64     // seconds after which a client tries again
	Runs     []SpiralRun // with the same ingredients, every remedy; and under the quota with one left out
}

// SpiralRun is one remedy or set of ingredients.
type SpiralRun struct {
	Remedy  string
	Left    string // the ingredient that was left out; "": none
	Granted float64
	// Recovery of each repeat in seconds after the spike; negative: not while it was
	// watched.
	Recovery []float64
	// Good is the share of requests answered in time in the last quarter of the
	// time watched, the median of the repeats.
	Good float64
}

// The ingredients that can be left out.
const (
	NoRetries   = "no retries"
	NoInflation = "work does not inflate"
	ShortQueue  = "a short queue" // that sheds what would wait longer than a client
	Budgeted    = "retries within a budget of 10 %"
)

const (
	// At the normal load the limit carries retries alone (at most twice as many
	// tries). It also carries inflation alone (at most twice the work, with the
	// longest queue). It does not carry both together.
	spiralNormal  = 0.4 // of the capacity
	spiralSpike   = 1.6
	spiralTimeout = 150 * ms
	spiralRetries = 1
	spiralInflate = 0.001
	spiralBefore  = time.Second
	spiralFor     = time.Second
	spiralAfter   = 12 * time.Second
	// recovered is the share of requests that are answered in time by a service that
	// has recovered, in every slot until the end.
	recovered = 0.9
	// averaged slots of the timeline decide together.
	averaged = 2
)

// RunSpiral runs the spike under every remedy, and under the quota with each
// ingredient left out once; under a burst in a period of 1 s with those that clients decide on.
func RunSpiral(ctx context.Context, o Options, repeats int) (result Spiral, err error) {
	if o, err = o.filled(); err != nil {
		return result, err
	}
	b, cpus, err := open(o)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, b.sandbox.Remove()) }()
	limit := limitCPUs(cpus.Size())
	shape, all, err := spiralVariants(o, cpus, limit)
	if err != nil {
		return result, err
	}
	capacity := float64(limit) / shape.CPU.Seconds()
	result = Spiral{
		Capacity: capacity, Normal: spiralNormal * capacity, Spike: spiralSpike * capacity,
		For: spiralFor.Seconds(), Watched: spiralAfter.Seconds(), Timeout: spiralTimeout.Seconds(),
	}
	of := slices.Clone(all) // by run
	for _, a := range all {
		result.Runs = append(result.Runs, SpiralRun{Remedy: a.name, Granted: a.granted})
	}
	leave := func(a variant, ingredients ...string) {
		for _, left := range ingredients {
			result.Runs, of = append(result.Runs, SpiralRun{Remedy: a.name, Left: left, Granted: a.granted}), append(of, a)
		}
	}
	leave(all[0], NoRetries, Budgeted, NoInflation, ShortQueue)
	if at := slices.IndexFunc(all, func(a variant) bool { return a.name == Burst1s }); at >= 0 {
		leave(all[at], NoRetries, Budgeted)
	}
	good := make([][]float64, len(result.Runs))
	for repeat := range repeats {
		for i := range result.Runs {
			run := &result.Runs[i]
			o.Progress(Event{Doing: fmt.Sprintf("spike, %s %s", run.Remedy, run.Left)})
			back, end, err := b.spike(ctx, of[i], run.Left, capacity, o.Seed+uint64(repeat))
			for try := 0; try < o.Patience && errors.As(err, new(*Saturated)); try++ {
				back, end, err = b.spike(ctx, of[i], run.Left, capacity, o.Seed+uint64(repeat))
			}
			if err != nil {
				return result, err
			}
			run.Recovery = append(run.Recovery, back)
			good[i] = append(good[i], end)
			run.Good = median(good[i])
		}
	}
	return result, nil
}

// spiralVariants is the one-pool shape, whose work inflates.
func spiralVariants(o Options, cpus cpuset.CPUSet, limit int) (Shape, []variant, error) {
	shape, err := newShape("pool", cpus.Size(), limit)
	if err != nil {
		return shape, nil, err
	}
	shape.Service.Inflate, shape.Sized.Inflate = spiralInflate, spiralInflate
	all, err := variants(o.Remedies, shape, cpus, lastCPUs(cpus, limit), limit)
	return shape, all, err
}

// spike runs one spike: when the service had recovered, and what share was good
// in the end.
func (b *testbed) spike(ctx context.Context, a variant, left string, capacity float64, seed uint64) (back, good float64, err error) {
	normal := spiralNormal * capacity
	plan := loadgen.Plan{
		Seed: seed, Streams: streamsOf(), Timeout: spiralTimeout, Good: spiralTimeout, LateAfter: spiralTimeout / 10,
		Phases: []loadgen.Phase{
			{For: spiralBefore, Factor: normal},
			{For: spiralFor, Factor: spiralSpike * capacity, Measured: true},
			{For: spiralAfter, Factor: normal, Measured: true},
		},
		Retries: loadgen.Retries{Max: spiralRetries, Backoff: 10 * ms},
	}
	switch left {
	case NoRetries:
		plan.Retries = loadgen.Retries{}
	case Budgeted:
		plan.Retries.Budget = 0.1
	case NoInflation:
		a.service.Inflate = 0
	case ShortQueue:
		a.service.Pools = append(a.service.Pools[:0:0], a.service.Pools...)
		for i := range a.service.Pools {
			a.service.Pools[i].Queue = max(1, int(capacity*spiralTimeout.Seconds()/2))
		}
	}
	_, r, err := b.measure(ctx, a, plan, spiralBefore+spiralFor, spiralAfter)
	if err != nil {
		return 0, 0, err
	}
	if why := r.Own.Saturated(); why != "" {
		return 0, 0, &Saturated{why}
	}
	after := slots(r.Timeline, spiralBefore+spiralFor, spiralAfter)
	if d, ok := recovery(after, recovered); ok {
		back = d.Seconds()
	} else {
		back = -1
	}
	return back, goodShare(after[len(after)*3/4:]), nil
}

// slots cuts a piece out of a timeline.
func slots(timeline []loadgen.SlotResult, from, length time.Duration) []loadgen.SlotResult {
	first, last := int(from/loadgen.Slot), int((from+length)/loadgen.Slot)
	return timeline[min(first, len(timeline)):min(last, len(timeline))]
}

// recovery is the time from which on the service answered so large a share of the
// requests in time, to the end. false: there was none.
func recovery(timeline []loadgen.SlotResult, share float64) (time.Duration, bool) {
	back := len(timeline)
	for i := len(timeline) - 1; i >= 0; i-- {
		window := timeline[i:min(i+averaged, len(timeline))]
		if goodShare(window) < share {
			break
		}
		back = i
	}
	return time.Duration(back) * loadgen.Slot, back < len(timeline)
}

// goodShare is the share of requests answered in time; 1 if none came.
func goodShare(timeline []loadgen.SlotResult) float64 {
	intended, good := 0, 0
	for _, s := range timeline {
		intended += int(s.Intended)
		good += int(s.Good)
	}
	if intended == 0 {
		return 1
	}
	return float64(good) / float64(intended)
}
