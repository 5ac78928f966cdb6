package realrun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
	"github.com/unthrottle/unthrottle/internal/load/workload"
	"github.com/unthrottle/unthrottle/internal/load/workload/service"
	"github.com/unthrottle/unthrottle/internal/scenario"
)

// serviceJob is a service, its collector if it has one, and its clients.
type serviceJob struct {
	s         *scenario.Scenario
	index     int // of the service
	collector int // of its collector; -1: none
	o         Options
	process   *service.Process
	shards    []*serviceJob // all, this one too, where it is the first shard
	clients   chan clients
	late      *time.Timer // its collector's beginning
}

// clients is what a load generator has measured.
type clients struct {
	result loadgen.Result
	err    error
}

func startService(s *scenario.Scenario, index int, o Options) (job, error) {
	j := &serviceJob{s: s, index: index, collector: -1, o: o, clients: make(chan clients, 1)}
	for i := range s.Workloads {
		if c := s.Workloads[i].Collector; c != nil && c.Service == index {
			j.collector = i
		}
	}
	var err error
	j.process, err = service.Start(o.Exe, j.spec())
	return j, err
}

// spec is the service as the engine takes it.
func (j *serviceJob) spec() service.Spec {
	w := &j.s.Workloads[j.index]
	spec := service.Spec{
		Seed: seedOf(j.o.Seed, wholeName(w)), IO: w.Server.IO, Shared: w.Server.Shared, Inflate: w.Server.Inflate,
		RateLimit: w.Server.RateLimit, Deadline: j.s.Duration + slack,
	}
	for _, p := range w.Server.Pools {
		spec.Pools = append(spec.Pools, service.Pool{Name: p.Name, Threads: p.Threads, Queue: p.Queue, PerThread: p.PerThread})
	}
	for _, c := range w.Server.Classes {
		made := service.Class{Name: c.Name, Work: c.Work, Touches: c.Touches, Locked: c.Locked}
		if c.Pool >= 0 {
			made.Pool = w.Server.Pools[c.Pool].Name
		}
		spec.Classes = append(spec.Classes, made)
	}
	if j.collector >= 0 {
		gc := &j.s.Workloads[j.collector]
		spec.GC = &service.GC{Threads: gc.Threads, Work: gc.Collector.Work, Requests: gc.Collector.Requests, Every: gc.Collector.Every}
	}
	return spec
}

// lateAfter is what the generator may add to a latency: periods of a quota are
// some tens of ms long, and CPUs are shared.
const lateAfter = 5 * time.Millisecond

// plan is what the service's clients send, at that moment of the scenario's beginning.
func (j *serviceJob) plan(at time.Duration) loadgen.Plan {
	w := &j.s.Workloads[j.index]
	p := planned(j.s, w, j.o.Seed)
	p.Start = at + w.Start
	p.LateAfter = cmp.Or(j.o.LateAfter, lateAfter)
	if w.Shards == nil {
		p.Addr = j.process.Addr()
	} else {
		p.Shards = j.addresses(w.Shards.Balance)
	}
	return p
}

// checkLoads refuses what a load generator would, before anything is made.
func checkLoads(s *scenario.Scenario) error {
	for i := range s.Workloads {
		w := &s.Workloads[i]
		if w.Server == nil || w.Shard > 0 {
			continue
		}
		if err := planned(s, w, 0).CheckLoad(); err != nil {
			return fmt.Errorf("workloads.%s: load: %w: simulate it, or take less", w.Name, err)
		}
	}
	return nil
}

// planned is what a service's clients send, wherever and whenever.
func planned(s *scenario.Scenario, w *scenario.Workload, seed uint64) loadgen.Plan {
	p := loadgen.Plan{
		Seed: seedOf(seed, wholeName(w)), Timeout: w.Server.Timeout, Good: w.Server.Timeout,
		Retries: loadgen.Retries(w.Server.Retries),
		// A request that is on its way at the scenario's end is unfinished.
		Drain: time.Millisecond, LateAfter: lateAfter, Phases: plannedPhases(w.Phases, s.Duration-w.Start),
	}
	for i, c := range w.Server.Classes {
		p.Streams = append(p.Streams, loadgen.Stream{
			Name: c.Name, Class: uint8(i), PerSecond: c.Arrivals.PerSecond, Burst: c.Arrivals.Burst,
			Regular: c.Arrivals.Regular, At: c.Arrivals.At,
		})
	}
	return p
}

// plannedPhases are a workload's phases cut, or the last one drawn out, to the
// time that it has.
func plannedPhases(phases []scenario.Phase, length time.Duration) []loadgen.Phase {
	if len(phases) == 0 {
		phases = []scenario.Phase{{For: length, Factor: 1}}
	}
	var out []loadgen.Phase
	for i, p := range phases {
		d := min(p.For, length)
		if i == len(phases)-1 {
			d = length
		}
		if d <= 0 {
			break
		}
		out = append(out, loadgen.Phase{For: d, Factor: p.Factor, Measured: true})
		length -= d
	}
	return out
}

func (j *serviceJob) pid() int         { return j.process.Pid() }
func (j *serviceJob) workload() string { return j.s.Workloads[j.index].Name }
func (j *serviceJob) prepare() error   { return j.process.Go() }

// load starts the generator, ahead of the beginning at that moment. A shard that is
// not the first one has that one's.
func (j *serviceJob) load(ctx context.Context, at time.Duration) {
	if j.s.Workloads[j.index].Shard > 0 {
		return
	}
	go func() {
		result, err := loadgen.Run(ctx, j.o.Exe, j.plan(at))
		j.clients <- clients{result, err}
	}()
}

// begin lets its collector count the time; requests come when the generator sends them.
func (j *serviceJob) begin(_ context.Context, at time.Duration) error {
	if j.collector < 0 {
		return nil
	}
	start := j.s.Workloads[j.index].Start
	if start == 0 {
		return j.process.Begin()
	}
	// Should it have ended by then, its end says so.
	j.late = time.AfterFunc(at+start-workload.Now(), func() { _ = j.process.Begin() })
	return nil
}

func (j *serviceJob) stop() error {
	if j.late != nil {
		j.late.Stop()
	}
	return j.process.Stop()
}

// generatorPatience bounds the wait for a generator, which has a deadline of its
// own.
const generatorPatience = time.Minute

func (j *serviceJob) end() (map[string]scenario.WorkloadOutcome, []string, error) {
	w := &j.s.Workloads[j.index]
	out, notes := map[string]scenario.WorkloadOutcome{}, disturbed(j.workload(), j.process.Disturbed())
	if j.collector >= 0 {
		stats, err := j.process.Stats()
		if err != nil {
			return nil, nil, err
		}
		out[j.s.Workloads[j.collector].Name] = collected(stats.GC)
	}
	if w.Shard > 0 {
		return out, notes, nil // the first one's clients have its figures
	}
	var c clients
	select {
	case c = <-j.clients:
	case <-time.After(generatorPatience):
		return nil, nil, errors.New("the load generator gave no result")
	}
	if c.err != nil {
		return nil, nil, c.err
	}
	name := wholeName(w)
	out[name] = served(w, c.result)
	for i, shard := range shardNames(w) {
		out[shard] = shardServed(w.Shards, c.result.Shards[i])
	}
	return out, append(notes, judge(w, c.result.Own, out)...), nil
}

// judge says what the generator's own state means for its figures: where it was the
// bottleneck there are no latencies.
func judge(w *scenario.Workload, own loadgen.Own, out map[string]scenario.WorkloadOutcome) (notes []string) {
	name := wholeName(w)
	if !own.RealTime {
		notes = append(notes, name+": its clients did not get real-time priority: some of the latencies may be their own waits")
	}
	if why := own.Saturated(); why != "" {
		notes = append(notes, name+": "+why)
		out[name] = withoutLatencies(out[name])
		for _, shard := range shardNames(w) {
			out[shard] = withoutLatencies(out[shard])
		}
	}
	return notes
}

// withoutLatencies are the counts alone: where the generator was the bottleneck
// its latencies say nothing of the service.
func withoutLatencies(w scenario.WorkloadOutcome) scenario.WorkloadOutcome {
	w.P50, w.P90, w.P95, w.P99, w.Max, w.RecoverySeconds = nil, nil, nil, nil, nil, nil
	for name, c := range w.Classes {
		w.Classes[name] = scenario.Latencies{Count: c.Count}
	}
	return w
}

// collected is a collector's outcome: its pauses, the longest of all.
func collected(gc service.GCStats) scenario.WorkloadOutcome {
	out := paused(gc.Collections, gc.PausesMs)
	if out.Max != nil {
		out.Max = &gc.LongestMs
	}
	return out
}
