package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/bench/services"
	"github.com/unthrottle/unthrottle/internal/kernel/procfs"
	"github.com/unthrottle/unthrottle/internal/load/loadgen"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/test/study"
)

const (
	// warm is how long a service has load before anything is decided or measured.
	warm = 3 * time.Second
)

// running is a service, or a chain of them, with a neighbour and a variant.
type running struct {
	options
	c             services.Case
	v             variant
	s, beside     *services.Stage
	of, neighbour services.Service
	// containers are the service's own, first, and the others of a chain.
	containers []*holder
	seed       uint64
	set        string // what this project's program set, in words
}

// measure measures one variant of a service, started anew. base is nil in round 0.
func measure(ctx context.Context, o options, c services.Case, v variant, round int, b *base) (p piece, err error) {
	p = piece{Made: study.Now(time.Now()), Service: c.Name, Limit: allLimits(c), Variant: v.name, Round: round}
	if p.NotApplied = v.applies(c); p.NotApplied != "" {
		return p, nil
	}
	r := &running{options: o, c: c, v: v, seed: services.Seed(c.Name) + uint64(round)}
	err = r.run(ctx, func(ctx context.Context) error { return r.steps(ctx, &p, b) })
	return p, err
}

// run starts the service and what disturbs it, calls do, and ends all of it.
func (r *running) run(ctx context.Context, do func(context.Context) error) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer func() { cancel(); err = errors.Join(err, r.close()) }()
	if err := r.start(ctx); err != nil {
		return err
	}
	disturbed := make(chan struct{})
	go func() { defer close(disturbed); r.of.Disturb(ctx) }()
	defer func() { cancel(); <-disturbed }()
	return do(ctx)
}

// steps puts the variant in force, and measures each load.
func (r *running) steps(ctx context.Context, p *piece, b *base) error {
	if _, err := r.client(ctx, 1, max(warm, r.c.Warm)); err != nil {
		return err
	}
	if err := r.limit(true); err != nil {
		return err
	}
	stop, err := r.decide(ctx, p, b)
	if err != nil || p.NotApplied != "" {
		return err
	}
	for _, load := range loadsOf(r.c) {
		at, err := r.step(ctx, load)
		if err != nil {
			return errors.Join(err, stop())
		}
		p.Points = append(p.Points, at)
		if b == nil && load >= 1 || b != nil && !isChain(r.c) && ended(p.Points, b.objective) {
			break
		}
	}
	if b != nil {
		p.Objective = b.objective
	}
	if err := stop(); err != nil {
		return err
	}
	var sets []string
	for _, h := range r.containers {
		set, _ := h.inForce()
		sets = append(sets, shown(set))
		p.Writes, p.Refusals = p.Writes+h.writes, p.Refusals+h.refusals
		p.FirstRefusal = cmp.Or(p.FirstRefusal, h.firstRefusal)
	}
	p.Set = cmp.Or(r.set, strings.Join(sets, "; "))
	return nil
}

// allLimits is the sum of the limits of a case.
func allLimits(c services.Case) float64 {
	sum := c.Limit
	for _, limit := range c.Containers {
		sum += limit
	}
	return sum
}

// start starts the service and its neighbour.
func (r *running) start(ctx context.Context) (err error) {
	if r.s, err = services.Open(r.host, r.c); err != nil {
		return err
	}
	r.s.Advised = r.v.advised
	if err := os.Mkdir(r.tool().State(), 0o700); err != nil {
		return err
	}
	if r.beside, err = services.Open(r.host, beside()); err != nil {
		return err
	}
	r.containers = []*holder{newHolder(r.c.Name, r.s.Limited, r.s.CPUs(), r.c.Limit)}
	for _, name := range slices.Sorted(maps.Keys(r.c.Containers)) {
		r.containers = append(r.containers, newHolder(name, r.s.Containers[name], r.s.CPUs(), r.c.Containers[name]))
	}
	if err := r.limit(r.c.Warm == 0); err != nil {
		return err
	}
	if r.of, err = r.s.Serve(ctx, r.c); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	if len(r.of.Streams) == 0 {
		return errors.New("it has no requests, so that there is no load to raise")
	}
	if r.neighbour, err = r.beside.Serve(ctx, beside()); err != nil {
		return fmt.Errorf("start of the neighbour: %w", err)
	}
	return nil
}

// limit puts the limits of the containers' specs in force, or lifts them.
func (r *running) limit(inForce bool) error {
	for _, h := range r.containers {
		limit := bandwidth.Unlimited()
		if inForce {
			limit = asWritten(h.spec).Limit
		}
		if err := h.group.SetLimit(limit); err != nil {
			return err
		}
	}
	return nil
}

func (r *running) tool() services.Tool { return services.NewTool(r.exe, r.s) }

func (r *running) close() (err error) {
	if r.s != nil {
		if r.v.ours() {
			err = r.tool().Restore(context.Background())
		}
		err = errors.Join(err, r.s.Close())
	}
	if r.beside != nil {
		err = errors.Join(err, r.beside.Close())
	}
	return err
}

// decide puts the variant in force. stop ends what goes on beside the steps, and says what went wrong there.
func (r *running) decide(ctx context.Context, p *piece, b *base) (stop func() error, err error) {
	stop = func() error { return nil }
	switch {
	case r.v.agent:
		return r.byAgent(ctx, p)
	case r.v.ours():
		return stop, r.byTool(ctx, p)
	case r.v.live():
		return r.byRules(ctx, p)
	}
	for _, h := range r.containers {
		rule, used := r.v.rule(h.spec), 0.0
		if b != nil {
			used = b.used[h.name]
		}
		to := settled(rule, h.spec, day(used, apart(rule)))
		if to.ExclusiveCPUs >= len(h.host) {
			p.NotApplied = "no CPU of the host would be left for anything else"
			return stop, nil
		}
		if to.ExclusiveCPUs > 0 { // nothing else that this study starts may run there
			if err := r.beside.Limited.SetCPUs(cpuset.New(h.host[to.ExclusiveCPUs:]...)); err != nil {
				return stop, err
			}
		}
		if err := h.put(to); err != nil {
			return stop, err
		}
	}
	return stop, nil
}

// byRules asks rules while the service runs.
func (r *running) byRules(ctx context.Context, p *piece) (stop func() error, err error) {
	holding, end := context.WithCancel(ctx)
	held := make(chan error, len(r.containers))
	began := time.Now()
	for _, h := range r.containers {
		go func() { held <- h.hold(holding, r.v.rule(h.spec)) }()
	}
	stop = func() (err error) {
		end()
		for range r.containers {
			err = errors.Join(err, <-held)
		}
		return err
	}
	if _, err := r.client(ctx, 1, r.v.decides(r.c)); err != nil {
		return stop, errors.Join(err, stop())
	}
	for _, h := range r.containers {
		if _, changed := h.inForce(); !changed.IsZero() {
			p.Decided = new(max(changed.Sub(began).Seconds(), number(p.Decided)))
		}
	}
	return stop, nil
}

// number is a figure, 0 where there is none.
func number(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}

// order is the client's at a load.
func (r *running) order(load float64, d time.Duration) services.Order {
	const settle = 500 * time.Millisecond
	return services.Order{Requests: r.of.Requests, Plan: loadgen.Plan{Seed: r.seed, Streams: r.of.Streams, Connections: r.of.Connections,
		Drain: 2 * time.Second,
		Phases: []loadgen.Phase{{For: max(settle, forecast.SettlePeriods*r.v.period), Factor: load},
			{For: d, Factor: load, Measured: true}}}}
}

// client runs the client at a load.
func (r *running) client(ctx context.Context, load float64, d time.Duration) (loadgen.Result, error) {
	return services.RunClient(ctx, r.order(load, d))
}

// step measures one load.
func (r *running) step(ctx context.Context, load float64) (at point, err error) {
	at.Load = load
	each := max(r.each, forecast.MeasuredPeriods*r.v.period)
	order := services.Order{Requests: r.neighbour.Requests, Plan: loadgen.Plan{Seed: r.seed, Streams: r.neighbour.Streams, Connections: 4,
		Phases: []loadgen.Phase{{For: each, Factor: 1, Measured: true}}}}
	type looked struct {
		most, granted float64
		err           error
	}
	wide, calm := make(chan looked, 1), make(chan error, 1)
	sampling, end := context.WithCancel(ctx)
	defer end()
	go func() {
		l := looked{}
		l.most, l.granted, l.err = widest(sampling, r.containers)
		wide <- l
	}()
	go func() {
		result, err := services.RunClient(ctx, order)
		if err == nil {
			at.Neighbour = quantile(&result, 0.99)
		}
		calm <- err
	}()
	before, err := r.counters()
	if err != nil {
		return at, err
	}
	began := time.Now()
	result, err := r.client(ctx, load, each)
	seconds := time.Since(began).Seconds()
	after, failed := r.counters()
	end()
	l := <-wide
	if err := errors.Join(err, failed, l.err, <-calm); err != nil {
		return at, err
	}
	at.MostCPUs, at.GrantedCPUs = l.most, l.granted
	at.UsedBy = map[string]float64{}
	for i, h := range r.containers {
		cpus := (after.used[i] - before.used[i]).Seconds() / seconds
		at.UsedBy[h.name], at.UsedCPUs = cpus, at.UsedCPUs+cpus
	}
	at.OthersCPUs = max(0, (after.busy-before.busy).Seconds()/seconds-at.UsedCPUs)
	at.Periods, at.Throttled = after.periods-before.periods, after.throttled-before.throttled
	judged := result.Phases[len(result.Phases)-1].Streams[0]
	at.Requests, at.Errors = judged.Intended, judged.Errors()
	at.P50, at.P99, at.P999 = quantile(&result, 0.5), quantile(&result, 0.99), quantile(&result, 0.999)
	return at, nil
}

// quantile is that of the judged stream in the last phase, in ms; nil: it has too few requests.
func quantile(result *loadgen.Result, q float64) *float64 {
	return services.Milliseconds(result.Phases[len(result.Phases)-1].Streams[0].Latency, q)
}

// counters are those of all containers, and the host's CPU time.
type counters struct {
	used               []time.Duration
	periods, throttled uint64
	busy               time.Duration
}

func (r *running) counters() (c counters, err error) {
	for _, h := range r.containers {
		stat, err := h.group.Stat()
		if err != nil {
			return c, err
		}
		if stat.Usage == nil {
			return c, errors.New("the kernel does not measure the container's CPU use: mount the cpuacct controller")
		}
		c.used = append(c.used, *stat.Usage)
		c.periods, c.throttled = c.periods+stat.Periods, c.throttled+stat.ThrottledPeriods
	}
	host, err := procfs.ReadStat(os.DirFS("/proc"))
	if err != nil {
		return c, err
	}
	c.busy = host.Total.Busy()
	return c, nil
}
