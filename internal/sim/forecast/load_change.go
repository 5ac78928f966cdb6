package forecast

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

// scaleArrivals makes the container's arrivals and sleeps follow each other faster by a factor. The replayed
// time shrinks with them. Neighbours stay as they are, and go on as recorded where the replay is longer than that.
func (l *Load) scaleArrivals(s *scenario.Scenario, r *simulate.Replay, own int, factor float64) {
	scaled := func(d time.Duration) time.Duration { return time.Duration(float64(d) / factor) }
	recorded := s.Duration
	s.Duration = max(1, scaled(s.Duration))
	r.Threads = slices.Clone(r.Threads)
	threads := 0
	for _, w := range s.Workloads[:own] {
		threads += w.Threads
	}
	for i := range r.Threads[:threads] {
		steps := slices.Clone(r.Threads[i].Steps)
		for k := range steps {
			switch steps[k].Kind {
			case simulate.StepUntil, simulate.StepSleep, simulate.StepRead:
				steps[k].For = scaled(steps[k].For)
			}
		}
		r.Threads[i].Steps = steps
	}
	for i := range r.Threads[threads:] {
		t := &r.Threads[threads+i]
		t.Steps = overAndOver(t.Steps, recorded, s.Duration)
	}
	for i := range r.Queues {
		r.Queues[i] = slices.Clone(r.Queues[i])
		for k := range r.Queues[i] {
			r.Queues[i][k].At = scaled(r.Queues[i][k].At)
		}
	}
}

// overAndOver are a neighbour's steps over and over, each time a window later, until a time.
func overAndOver(steps []simulate.ReplayStep, window, until time.Duration) []simulate.ReplayStep {
	work := steps
	if n := len(steps) - 1; n >= 0 && steps[n].Kind == simulate.StepEnd {
		work = steps[:n]
	}
	out := slices.Clone(work)
	for later := window; window > 0 && later < until; later += window {
		for _, s := range work {
			if s.Kind == simulate.StepUntil {
				s.For += later
			}
			out = append(out, s)
		}
	}
	return append(out, steps[len(work):]...)
}

// fillRun is the mean CPU time of a run of the load that fills a host.
const fillRun = 5 * time.Millisecond

// fillSeed is fixed so that every forecast fills the host in the same way.
const fillSeed = 0x66756c6c686f7374

// fillHost adds neighbours until threads want that share of the host's CPUs: one thread per CPU, with runs of
// exponential length at random times. The weight of these neighbours is to the container's as their CPUs are
// to its limit, as if every CPU were sold at one price.
func (l *Load) fillHost(s *scenario.Scenario, r *simulate.Replay, share float64) {
	n := s.Host.CPUs
	window := l.window.Seconds()
	missing := share*float64(n) - (l.recorded.cpu+l.othersUsed).Seconds()/window
	if missing <= 0 {
		return
	}
	weight := float64(s.Cgroups[l.top()].Weight) * missing / l.limit
	s.Cgroups = append(slices.Clone(s.Cgroups), scenario.Cgroup{
		Name: "full", Parent: -1, Weight: min(10_000, max(1, int(math.Round(weight)))), CPUs: s.Host.All().Difference(s.Host.Reserved),
		Limit: bandwidth.Unlimited(),
	})
	s.Workloads = append(slices.Clone(s.Workloads), scenario.Workload{
		Name: "full", Kind: simulate.Replayed, Cgroup: len(s.Cgroups) - 1, Threads: n,
	})
	rng := rand.New(rand.NewPCG(fillSeed, 0))
	gap := fillRun.Seconds() * float64(n) / missing
	r.Threads = slices.Clone(r.Threads)
	for c := range n {
		var steps []simulate.ReplayStep
		for at := rng.ExpFloat64() * gap; at < s.Duration.Seconds(); at += rng.ExpFloat64() * gap {
			steps = append(steps,
				simulate.ReplayStep{Kind: simulate.StepUntil, For: seconds(at)},
				simulate.ReplayStep{Kind: simulate.StepRun, For: max(1, time.Duration(rng.ExpFloat64()*float64(fillRun)))})
		}
		r.Threads = append(r.Threads, simulate.ReplayThread{CPU: c, Home: true,
			Steps: append(steps, simulate.ReplayStep{Kind: simulate.StepEnd})})
	}
}

// top returns the container's ancestor right below the root, whose weight counts against others.
func (l *Load) top() int {
	at := l.container
	for l.recordedScenario.Cgroups[at].Parent >= 0 {
		at = l.recordedScenario.Cgroups[at].Parent
	}
	return at
}
