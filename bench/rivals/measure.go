package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/bench/services"
	"github.com/unthrottle/unthrottle/bench/study"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/procfs"
	"github.com/unthrottle/unthrottle/internal/load/loadgen"
)

const (
	// leastPeriods of the limit in force a step lasts.
	leastPeriods = 10
	// warm is how long a service has load before anything is decided or measured.
	warm = 3 * time.Second
)

// running is a service with its neighbour and a variant.
type running struct {
	options
	c              services.Case
	v              variant
	s, beside      *services.Stage
	of, neighbour  services.Service
	hold           *holder
	seed           uint64
	granted        func() float64
	leftByThisTool string // what fix or apply set, in words
}

// measure measures one variant of a service, started anew. base is nil in round 0.
func measure(ctx context.Context, o options, c services.Case, v variant, round int, b *base) (p piece, err error) {
	p = piece{Made: study.Now(time.Now()), Service: c.Name, Limit: c.Limit, Variant: v.name, Round: round}
	if p.NotApplied = v.applies(c); p.NotApplied != "" {
		return p, nil
	}
	r := &running{options: o, c: c, v: v, seed: seedOf(c.Name) + uint64(round)}
	ctx, cancel := context.WithCancel(ctx)
	defer func() { cancel(); err = errors.Join(err, r.close()) }()
	if err := r.start(ctx); err != nil {
		return p, err
	}
	disturbed := make(chan struct{})
	go func() { defer close(disturbed); r.of.Disturb(ctx) }()
	defer func() { cancel(); <-disturbed }()
	if _, err := r.client(ctx, 1, warm); err != nil {
		return p, err
	}
	stop, err := r.decide(ctx, &p, b)
	if err != nil || p.NotApplied != "" {
		return p, err
	}
	for _, load := range loads {
		at, err := r.step(ctx, load)
		if err != nil {
			return p, errors.Join(err, stop())
		}
		p.Points = append(p.Points, at)
		if b == nil && load >= 1 || b != nil && ended(p.Points, b.objective) {
			break
		}
	}
	if b != nil {
		p.Objective = b.objective
	}
	if err := stop(); err != nil {
		return p, err
	}
	set, _ := r.hold.inForce()
	p.Set, p.Writes, p.Refusals, p.FirstRefusal = shown(set), r.hold.writes, r.hold.refusals, r.hold.firstRefusal
	if r.leftByThisTool != "" {
		p.Set = r.leftByThisTool
	}
	return p, nil
}

// seedOf is the first seed of a service, by its name: its variants get the same requests.
func seedOf(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name)) // a hash.Hash never fails
	return h.Sum64()
}

// start starts the service and its neighbour.
func (r *running) start(ctx context.Context) (err error) {
	if r.s, err = services.Open(r.host, r.c); err != nil {
		return err
	}
	r.s.Advised = r.v.advised
	if err := os.Mkdir(services.NewTool(r.exe, r.s).State(), 0o700); err != nil {
		return err
	}
	if r.beside, err = services.Open(r.host, beside()); err != nil {
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
	of := spec(r.c)
	r.hold = &holder{group: r.s.Limited, host: r.s.CPUs(), spec: of, now: asWritten(of)}
	r.granted = r.hold.grantedCPUs
	return nil
}

func (r *running) close() (err error) {
	if r.s != nil {
		if r.v.fix || len(r.v.apply) > 0 {
			err = services.NewTool(r.exe, r.s).Restore(context.Background())
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
	case r.v.fix || len(r.v.apply) > 0:
		return stop, r.byTool(ctx, p)
	case r.v.live():
		held, end := make(chan error, 1), func() {}
		ctx, end = context.WithCancel(ctx)
		rule := r.v.rule(r.hold.spec)
		began := time.Now()
		go func() { held <- r.hold.hold(ctx, rule) }()
		if _, err := r.client(ctx, 1, r.v.decides()); err != nil {
			end()
			return stop, errors.Join(err, <-held)
		}
		if _, changed := r.hold.inForce(); !changed.IsZero() {
			p.Decided = new(changed.Sub(began).Seconds())
		}
		return func() error { end(); return <-held }, nil
	}
	rule, used := r.v.rule(r.hold.spec), 0.0
	if b != nil {
		used = b.usedCPUs
	}
	to := settled(rule, r.hold.spec, day(used, apart(rule)))
	if to.ExclusiveCPUs >= len(r.hold.host) {
		p.NotApplied = "no CPU of the host would be left for anything else"
		return stop, nil
	}
	if to.ExclusiveCPUs > 0 { // nothing else that this study starts may run there
		if err := r.beside.Limited.SetCPUs(cpuset.New(r.hold.host[to.ExclusiveCPUs:]...)); err != nil {
			return stop, err
		}
	}
	return stop, r.hold.put(to)
}

// byTool runs this project's program under the usual load.
func (r *running) byTool(ctx context.Context, p *piece) error {
	tool := services.NewTool(r.exe, r.s)
	order := r.order(1, 10*time.Minute)
	_, stop, err := services.StartClient(ctx, order)
	if err != nil {
		return err
	}
	defer stop()
	began := time.Now()
	if len(r.v.apply) > 0 {
		refused, err := tool.Apply(ctx, r.v.apply)
		if refused != "" {
			p.NotApplied = refused
		}
		r.leftByThisTool = "the limit, " + r.v.apply[len(r.v.apply)-1]
		return err
	}
	out, err := tool.Run(ctx, tool.Changing("fix", tool.Target, "--yes", "--json")...)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var fixed struct {
		Verdict string `json:"verdict"`
		Trial   *struct {
			Rows []struct {
				Name string `json:"name"`
				Kept bool   `json:"kept"`
			} `json:"rows"`
		} `json:"trial"`
		Tries []struct {
			Remedy string `json:"remedy"`
			Kept   bool   `json:"kept"`
		} `json:"tries"`
	}
	if unread := json.Unmarshal(out, &fixed); unread != nil { // exit code 1 alone: it is still stopped
		return errors.Join(err, fmt.Errorf("fix --json: %w", unread))
	}
	p.Decided = new(time.Since(began).Seconds())
	r.leftByThisTool = "as it was: " + fixed.Verdict
	for _, t := range fixed.Tries {
		if t.Kept {
			r.leftByThisTool = t.Remedy
		}
	}
	if fixed.Trial != nil {
		for _, row := range fixed.Trial.Rows {
			if row.Kept {
				r.leftByThisTool = row.Name
			}
		}
	}
	limit, err := cgroup.ReadLimit(r.host, r.s.Limited.At().Path)
	if err != nil {
		return err
	}
	r.hold.now.Limit = bandwidth.Limit(limit)
	r.v.period = limit.Period
	return nil
}

// order is the client's at a load.
func (r *running) order(load float64, d time.Duration) services.Order {
	const settle = 500 * time.Millisecond
	return services.Order{Requests: r.of.Requests, Plan: loadgen.Plan{Seed: r.seed, Streams: r.of.Streams, Connections: r.of.Connections,
		Drain: 2 * time.Second,
		Phases: []loadgen.Phase{{For: max(settle, 2*r.v.period), Factor: load},
			{For: d, Factor: load, Measured: true}}}}
}

// client runs the client at a load.
func (r *running) client(ctx context.Context, load float64, d time.Duration) (loadgen.Result, error) {
	return services.RunClient(ctx, r.order(load, d))
}

// step measures one load.
func (r *running) step(ctx context.Context, load float64) (at point, err error) {
	at.Load = load
	each := max(r.each, leastPeriods*r.v.period)
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
		l.most, l.granted, l.err = widest(sampling, r.s.Limited, r.granted)
		wide <- l
	}()
	go func() {
		result, err := services.RunClient(ctx, order)
		if err == nil {
			at.Neighbour = quantile(&result, 0.99)
		}
		calm <- err
	}()
	before, beforeBusy, err := r.counters()
	if err != nil {
		return at, err
	}
	began := time.Now()
	result, err := r.client(ctx, load, each)
	seconds := time.Since(began).Seconds()
	after, afterBusy, failed := r.counters()
	end()
	l := <-wide
	if err := errors.Join(err, failed, l.err, <-calm); err != nil {
		return at, err
	}
	at.MostCPUs, at.GrantedCPUs = l.most, l.granted
	at.UsedCPUs = (used(after) - used(before)).Seconds() / seconds
	at.OthersCPUs = max(0, (afterBusy-beforeBusy).Seconds()/seconds-at.UsedCPUs)
	at.Periods, at.Throttled = after.Periods-before.Periods, after.ThrottledPeriods-before.ThrottledPeriods
	judged := result.Phases[len(result.Phases)-1].Streams[0]
	at.Requests, at.Errors = judged.Intended, judged.Errors()
	at.P50, at.P99, at.P999 = quantile(&result, 0.5), quantile(&result, 0.99), quantile(&result, 0.999)
	return at, nil
}

// quantile is that of the judged stream in the last phase, in ms; nil: it has too few requests.
func quantile(result *loadgen.Result, q float64) *float64 {
	d, ok := result.Phases[len(result.Phases)-1].Streams[0].Latency.Quantile(q, 0)
	if !ok {
		return nil
	}
	return new(float64(d) / float64(time.Millisecond))
}

func (r *running) counters() (cgroup.Stat, time.Duration, error) {
	stat, err := r.s.Limited.Stat()
	if err != nil {
		return stat, 0, err
	}
	if stat.Usage == nil {
		return stat, 0, errors.New("the kernel does not measure the container's CPU use: mount the cpuacct controller")
	}
	host, err := procfs.ReadStat(os.DirFS("/proc"))
	if err != nil {
		return stat, 0, err
	}
	return stat, host.Total.Busy(), nil
}
