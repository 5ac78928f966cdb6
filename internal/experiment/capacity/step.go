package capacity

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/clock"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/loadgen"
	"github.com/unthrottle/unthrottle/internal/load/sandbox"
	"github.com/unthrottle/unthrottle/internal/load/workload"
	"github.com/unthrottle/unthrottle/internal/load/workload/service"
	"github.com/unthrottle/unthrottle/internal/text"
)

// step is one load, measured for some seconds.
type step struct {
	load    float64 // requests per second
	service loadgen.StreamResult
	own     loadgen.Own
	failure string // the first one
	seconds float64
	// What the service's cgroup did meanwhile; nil: not measured.
	used, others     *float64 // CPUs
	periods          *uint64
	throttledPeriods *uint64
	throttled        *time.Duration
	switches         *uint64
	limited          bool
	cpus             int // that it may use
}

// Prefix begins the name of a bench's sandbox.
const Prefix = "unthrottle-bench-"

const (
	// settle is from the start of the processes to the first request.
	settle = 150 * time.Millisecond
	// warm is how long the load runs before it is measured, where no library has to learn.
	warm = 400 * time.Millisecond
	// timeout is when a client gives a request up.
	timeout = time.Second
	// slack is what a step may take on top, before everything ends by itself.
	slack = time.Minute
)

// testbed is where steps run: a sandbox with the cgroup of the service.
type testbed struct {
	exe       string
	sandbox   *sandbox.Sandbox
	group     *sandbox.Group
	generator cpuset.CPUSet // of the generator; empty: all
	late      time.Duration // that the generator may be
	// meanwhile runs from the beginning of the measurement, and the step waits for
	// it; nil: no call.
	meanwhile func(context.Context) error
}

// open makes the bench's own cgroups. Where there are enough CPUs, one is left
// to the generator.
func open(o Options) (*testbed, cpuset.CPUSet, error) {
	h, err := sandbox.Open(sandbox.Options{Host: o.Host, Prefix: Prefix, Scope: o.Scope, Fair: o.Fair})
	if err != nil {
		return nil, cpuset.New(), err
	}
	b := &testbed{exe: o.Exe, sandbox: h, late: o.Objective.late()}
	cpus := h.CPUs()
	if cpus.Size() >= 4 {
		b.generator = cpuset.New(cpus.List()[0])
		cpus = cpus.Difference(b.generator)
	}
	if err = checkCPUs(h, cpus); err == nil {
		b.group, err = h.Group("service")
	}
	if err != nil {
		return nil, cpus, errors.Join(err, h.Remove())
	}
	return b, cpus, nil
}

// checkCPUs checks that a limit can bind and can be had.
func checkCPUs(h *sandbox.Sandbox, cpus cpuset.CPUSet) error {
	limit := limitCPUs(cpus.Size())
	if cpus.Size() <= limit {
		return &sandbox.NotMeasurable{What: fmt.Sprintf("%d CPU(s) (%q) can be used: a limit of %d would never bind",
			cpus.Size(), cpus, limit), WayOut: "run it on a host with more CPUs, or leave --parent out"}
	}
	levels, err := h.Levels()
	if err != nil {
		return err
	}
	if least, limited, at := cgroup.Effective(levels); limited && least < float64(cpus.Size()) {
		return &sandbox.NotMeasurable{What: fmt.Sprintf("cgroup %s has a limit of %.2f CPUs itself, which would "+
			"decide the figures", text.EscapePath(at), least), WayOut: "name a cgroup without a limit with --parent"}
	}
	return nil
}

// set puts a variant's settings in force.
func (b *testbed) set(a variant) error {
	if err := b.group.SetLimit(a.limit); err != nil {
		return err
	}
	return b.group.SetCPUs(a.cpus)
}

// run runs one step with a fresh service. seed decides the arrivals and their
// work, so that all variants of a repeat meet the same requests.
func (b *testbed) run(ctx context.Context, a variant, streams []loadgen.Stream, load float64, d time.Duration, seed uint64) (step, error) {
	plan := loadgen.Plan{
		Seed: seed, Streams: streams, Timeout: timeout, LateAfter: b.late,
		Phases: []loadgen.Phase{{For: a.warm(), Factor: load}, {For: d, Factor: load, Measured: true}},
	}
	measured, result, err := b.measure(ctx, a, plan, a.warm(), d)
	if err != nil {
		return step{}, fmt.Errorf("remedy %s, %.0f requests per second: %w", a.name, load, err)
	}
	measured.load = load
	measured.service = foreground(streams, result.Phases[1])
	return measured, nil
}

// measure runs a plan against a fresh service, and reads the counters from
// `from` on for d.
func (b *testbed) measure(ctx context.Context, a variant, plan loadgen.Plan, from, d time.Duration) (s step, r loadgen.Result, err error) {
	if err := b.set(a); err != nil {
		return s, r, err
	}
	spec := a.service
	spec.Seed = plan.Seed
	spec.Deadline = plan.Duration() + plan.Timeout + slack
	p, err := service.Start(b.exe, spec)
	if err != nil {
		return s, r, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	if err := b.group.Attach(p.Pid()); err != nil {
		return s, r, err
	}
	if err := p.Go(); err != nil {
		return s, r, err
	}
	plan.Addr, plan.CPUs, plan.Start = p.Addr(), b.generator.String(), workload.Now()+settle
	type done struct {
		result loadgen.Result
		err    error
	}
	finished := make(chan done, 1)
	go func() {
		result, err := loadgen.Run(ctx, b.exe, plan)
		finished <- done{result, err}
	}()
	beside := make(chan error, 1)
	go func() { beside <- b.beside(ctx, plan.Start+from) }()
	s, err = b.watch(ctx, p.Pid(), plan.Start+from, d)
	s.limited, s.cpus = a.limit.Limited(), a.cpus.Size()
	end, neighbours := <-finished, <-beside
	if ctx.Err() != nil {
		return s, r, ctx.Err() // each of the three says the same
	}
	if err = errors.Join(err, end.err, neighbours); err != nil {
		return s, r, err
	}
	s.own, s.failure = end.result.Own, end.result.FirstFailure
	if s.others != nil {
		// The generator is no one else's load.
		*s.others = max(0, *s.others-s.own.CPUSeconds/max(s.own.Seconds, 1e-3))
	}
	return s, end.result, nil
}

// beside calls meanwhile at its time.
func (b *testbed) beside(ctx context.Context, begin time.Duration) error {
	if b.meanwhile == nil {
		return nil
	}
	if err := clock.Sleep(ctx, begin-workload.Now()); err != nil {
		return err
	}
	return b.meanwhile(ctx)
}

// look is one reading of all counters.
type look struct {
	at       time.Duration
	stat     cgroup.Stat
	busy     time.Duration
	haveBusy bool
	switches uint64
	haveSw   bool
}

func (b *testbed) look(pid int) (l look, err error) {
	l.busy, l.haveBusy = hostBusy()
	l.at = workload.Now()
	l.stat, err = b.group.Stat()
	l.switches, l.haveSw = switches(pid)
	return l, err
}

// watch reads the counters at begin and d later.
func (b *testbed) watch(ctx context.Context, pid int, begin, d time.Duration) (s step, err error) {
	if err := clock.Sleep(ctx, begin-workload.Now()); err != nil {
		return s, err
	}
	first, err := b.look(pid)
	if err != nil {
		return s, err
	}
	if err := clock.Sleep(ctx, begin+d-workload.Now()); err != nil {
		return s, err
	}
	last, err := b.look(pid)
	if err != nil {
		return s, err
	}
	s.seconds = (last.at - first.at).Seconds()
	if first.stat.Usage != nil && last.stat.Usage != nil {
		used := (*last.stat.Usage - *first.stat.Usage).Seconds() / s.seconds
		s.used = &used
		if first.haveBusy && last.haveBusy {
			others := (last.busy-first.busy).Seconds()/s.seconds - used
			s.others = &others
		}
	}
	if first.stat.Bandwidth && last.stat.Bandwidth {
		periods, throttledPeriods := last.stat.Periods-first.stat.Periods, last.stat.ThrottledPeriods-first.stat.ThrottledPeriods
		throttled := last.stat.Throttled - first.stat.Throttled
		s.periods, s.throttledPeriods, s.throttled = &periods, &throttledPeriods, &throttled
	}
	if first.haveSw && last.haveSw && last.switches >= first.switches {
		n := last.switches - first.switches
		s.switches = &n
	}
	return s, nil
}
