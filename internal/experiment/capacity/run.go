package capacity

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/clock"
	"github.com/unthrottle/unthrottle/internal/load/loadgen"
	"github.com/unthrottle/unthrottle/internal/load/workload"
	"github.com/unthrottle/unthrottle/internal/stats"
)

// Unmet says that no load met the objective.
type Unmet struct{ Why string }

func (e *Unmet) Error() string { return e.Why }

// Saturated says that the generator was the bottleneck: there are no figures.
type Saturated struct{ Why string }

func (e *Saturated) Error() string { return e.Why }

// run is a bench under way.
type run struct {
	o        Options
	testbed  *testbed
	shape    Shape
	variants []variant
	found    [][]float64 // by variant, by repeat
	within   [][]float64 // resolutions of these searches
	steps    [][]step    // by variant, of the searches
	points   [][][]step  // by variant, level, repeat
	started  time.Duration
	planned  int           // steps
	ended    int           // of them
	each     time.Duration // of a step, if none is tried again
	notes    []string
}

// Run compares the remedies on a shape and removes all that it made, also when
// ctx ends. An objective that cannot be met even by a hardly loaded service
// without a limit ends it after the first step with [*Unmet].
func Run(ctx context.Context, o Options) (result Result, err error) {
	if o, err = o.filled(); err != nil {
		return result, err
	}
	if o.URL != "" {
		return runURL(ctx, o)
	}
	b, cpus, err := open(o)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, b.sandbox.Remove()) }()
	limit := limitCPUs(cpus.Size())
	r := &run{o: o, testbed: b, started: workload.Now()}
	if r.shape, err = newShape(o.Shape, cpus.Size(), limit); err != nil {
		return result, err
	}
	if r.variants, err = variants(o.Remedies, r.shape, cpus, lastCPUs(cpus, limit), limit); err != nil {
		return result, err
	}
	r.found, r.within = make([][]float64, len(r.variants)), make([][]float64, len(r.variants))
	r.steps, r.points = make([][]step, len(r.variants)), make([][][]step, len(r.variants))
	for _, a := range r.variants {
		r.each += (a.measured(o.Step) + a.warm() + 2*settle) / time.Duration(len(r.variants))
	}
	r.planned = len(r.variants) * (o.Repeats*o.Steps + len(levels)*r.pointRepeats())
	if err := r.feasible(ctx); err != nil {
		return result, err
	}
	if err := r.chooseFix(ctx); err != nil {
		return result, err
	}
	if err := r.search(ctx); err != nil {
		return result, err
	}
	if err := r.measurePoints(ctx); err != nil {
		return result, err
	}
	if err := r.record(ctx); err != nil {
		return result, err
	}
	result = r.result(cpus.Size(), limit)
	result.Notes = append(append(result.Notes, r.notes...), b.sandbox.Leftovers.Notes()...)
	return result, nil
}

// pointRepeats is how often each point is measured.
func (r *run) pointRepeats() int {
	if r.o.Quick {
		return 1
	}
	return min(r.o.Repeats, maxPointRepeats)
}

// maxPointRepeats is enough for a p99 of every shape.
const maxPointRepeats = 2

// seed of a repeat: all variants of a repeat meet the same requests.
func (r *run) seed(repeat int) uint64 { return r.o.Seed + uint64(repeat) }

// capacity is the load at which a variant's CPUs are all used.
func (r *run) capacity(a variant) float64 { return a.granted / r.shape.CPU.Seconds() }

// feasible tries a light load without a limit: no remedy meets an objective that is
// missed there.
func (r *run) feasible(ctx context.Context) error {
	free, err := variants([]string{Weight}, r.shape, r.variants[0].cpus, r.variants[0].cpus, 1)
	if err != nil {
		return err
	}
	const light = 0.1
	load := max(light*r.capacity(r.variants[0]), minRequests/min(r.o.Step, 4*time.Second).Seconds())
	s, err := r.step(ctx, free[0], load, min(r.o.Step, 4*time.Second), r.seed(0), "trying a light load")
	if err != nil {
		return err
	}
	return unmet(r.o.Objective, s)
}

// unmet says that nothing will meet the objective where a light load without a
// limit did not.
func unmet(o Objective, s step) error {
	why := o.judge(s.service)
	if why == "" {
		return nil
	}
	way := "give a looser objective with --slo or --errors"
	if s.others != nil && *s.others > maxOthersCPU {
		way = fmt.Sprintf("others on the host used %.2f CPUs meanwhile: run it when they are quiet, or %s", *s.others, way)
	}
	return &Unmet{fmt.Sprintf("nothing can meet %v with at most %.3g %% errors here: at %.0f requests per second and "+
		"without any limit %s; %s",
		o, 100*o.Errors, s.load, why, way)}
}

// minRequests of a step: below, a share of errors or a quantile says nothing.
const minRequests = 200

// step runs one step, and again where the generator was the bottleneck.
func (r *run) step(ctx context.Context, a variant, load float64, d time.Duration, seed uint64, doing string) (step, error) {
	for try := 0; ; try++ {
		done := workload.Now() - r.started
		r.o.Progress(Event{Doing: doing, Done: done, Total: done + remaining(done, r.each, r.ended, r.planned)})
		s, err := r.testbed.run(ctx, a, r.shape.Streams, load, d, seed)
		if err != nil {
			return s, err
		}
		switch why := s.own.Saturated(); {
		case why == "":
			r.ended++
			return s, nil
		case try == r.o.Patience:
			return s, &Saturated{why}
		}
		// Another process is busy, often only for a moment.
		if err := clock.Sleep(ctx, time.Second); err != nil {
			return s, err
		}
	}
}

// remaining is how long the steps that are left will take, if they take as long as those so far: on a busy host steps are
// tried again.
func remaining(done, each time.Duration, ended, planned int) time.Duration {
	if ended > 0 {
		each = max(each, done/time.Duration(ended))
	}
	return each * time.Duration(max(1, planned-ended))
}

// search runs the searches, each repeat beginning with another variant.
func (r *run) search(ctx context.Context) error {
	for repeat := range r.o.Repeats {
		for i := range r.variants {
			at := (i + repeat) % len(r.variants)
			if err := r.searchOne(ctx, at, repeat); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *run) searchOne(ctx context.Context, at, repeat int) error {
	a := r.variants[at]
	s := firstSearch(r.capacity(a), r.o.Steps)
	if repeat > 0 {
		s = nextSearch(median(r.found[at]), r.capacity(a), r.o.Steps)
	}
	for load, more := s.next(); more; load, more = s.next() {
		doing := fmt.Sprintf("%s, %.0f/s, repeat %d of %d", a.name, load, repeat+1, r.o.Repeats)
		done, err := r.step(ctx, a, load, a.measured(r.o.Step), r.seed(repeat), doing)
		if err != nil {
			return err
		}
		r.steps[at] = append(r.steps[at], done)
		s.note(load, r.o.Objective.judge(done.service) == "")
	}
	r.found[at] = append(r.found[at], s.met)
	r.within[at] = append(r.within[at], s.resolution())
	return nil
}

// best is the highest load of the variants that have no more CPUs than the quota.
func (r *run) best() float64 {
	best := 0.0
	for i, a := range r.variants {
		if a.granted == r.variants[0].granted {
			best = max(best, median(r.found[i]))
		}
	}
	return best
}

// measurePoints measures all variants at the same shares of the best load.
func (r *run) measurePoints(ctx context.Context) error {
	for i := range r.points {
		r.points[i] = make([][]step, len(levels))
	}
	for repeat := range r.pointRepeats() {
		for l, level := range levels {
			for i := range r.variants {
				at := (i + repeat) % len(r.variants)
				load := level * r.best()
				if load == 0 {
					continue
				}
				a := r.variants[at]
				doing := fmt.Sprintf("%s at %.0f %% of the best", a.name, 100*level)
				done, err := r.step(ctx, a, load, a.measured(r.o.Step), r.seed(100+repeat), doing)
				if err != nil {
					return err
				}
				r.points[at][l] = append(r.points[at][l], done)
			}
		}
	}
	return nil
}

// record calls Record on the plain quota under load. What that costs is in no figure.
func (r *run) record(ctx context.Context) error {
	load := recordedShare * median(r.found[0])
	if r.o.Record == nil || load == 0 {
		return nil
	}
	b := r.testbed
	b.meanwhile = func(ctx context.Context) error { return r.o.Record(ctx, b.group.At(), load, recordedFor) }
	defer func() { b.meanwhile = nil }()
	_, err := r.step(ctx, r.variants[0], load, recordedFor+recordedMore, r.seed(200), "recording the plain quota")
	return err
}

// describe makes the part of a result that needs no measurement.
func describe(o Options) Result {
	var u unix.Utsname
	_ = unix.Uname(&u) // fails for a bad pointer only
	return Result{
		Kernel: unix.ByteSliceToString(u.Release[:]), URL: o.URL, Objective: o.Objective.String(),
		Quantile: o.Objective.Quantile, BoundMs: millis(o.Objective.Bound), Errors: o.Objective.Errors,
		Repeats: o.Repeats, Step: o.Step.Seconds(), Seed: o.Seed, Fair: o.Fair, Notes: []string{},
	}
}

// streamsOf gives a load of one kind, for a URL.
func streamsOf() []loadgen.Stream { return []loadgen.Stream{{Name: "get", PerSecond: 1}} }

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// median of the loads that searches found; 0 of none: no load was found.
func median(loads []float64) float64 {
	if len(loads) == 0 {
		return 0
	}
	return stats.Median(loads)
}
