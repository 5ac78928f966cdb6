package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/bench/rivals/rules"
	"github.com/unthrottle/unthrottle/bench/services"
	"github.com/unthrottle/unthrottle/test/study"
)

// How many CPUs does each way to hold a service need for the same latency? A service runs at one load, under each way with limits of
// several sizes, in turns, and without a limit. Sizes are multiples of what the service uses.

// sizedServices are those of docs/results/sizes.md: databases whose work comes from clients. One that computes without a pause, as MariaDB
// does while it sorts, has no use of its own: it takes what it gets.
var sizedServices = []string{"postgres-tpcb", "etcd-ranges", "victoriametrics-queries", "redis-gets"}

// sizeTimes are the sizes, as multiples of the mean use without a limit.
var sizeTimes = []float64{1.1, 1.3, 1.6, 2, 2.5, 3}

// mostUsed bounds the load: a service that uses more CPUs without a limit gets less of it, so that three times its use has room.
const mostUsed = 0.5

// A size keeps the latency where p99 and p50, over those of the same round without a limit, are at most these, by the medians of the
// rounds. That p50 may rise by a tenth is what the published move from quotas to exclusive CPUs allowed.
const keepsP99, keepsP50 = 2, 1.1

// mostErrors is which share of the requests may fail under a size that keeps the latency, in all rounds together.
const mostErrors = 0.01

// way is one way to hold a service.
type way struct {
	name string
	// setting is what is written for a size in CPUs, on so many that services share. The weight stays.
	setting func(cpus float64, host int) rules.Setting
}

// The ways with whole CPUs, and without a limit, have sizes of their own.
const exclusiveCPUs, withoutLimit = "exclusive CPUs", "no limit"

// ways are what is compared. The quota comes first.
func ways() []way {
	in := func(period time.Duration, burst float64) func(float64, int) rules.Setting {
		return func(cpus float64, host int) rules.Setting {
			s, _ := rules.In(period, burst).Next(rules.Observed{Spec: rules.Resources{LimitCPUs: cpus}})
			s.ExclusiveCPUs = host
			return s
		}
	}
	quota := in(bandwidth.DefaultPeriod, 0)
	return []way{
		{"quota", quota},
		{"burst in 100 ms", in(bandwidth.DefaultPeriod, 1)},
		{"burst in 1 s", in(bandwidth.MaxPeriod, 1)},
		{"narrow", func(cpus float64, host int) rules.Setting {
			s := quota(cpus, host)
			s.ExclusiveCPUs = min(host, int(math.Ceil(cpus)))
			return s
		}},
		{exclusiveCPUs, func(cpus float64, _ int) rules.Setting {
			return rules.Setting{Limit: bandwidth.Unlimited(), ExclusiveCPUs: int(cpus)}
		}},
		{withoutLimit, func(_ float64, host int) rules.Setting {
			return rules.Setting{Limit: bandwidth.Unlimited(), ExclusiveCPUs: host}
		}},
	}
}

// sizesOf are the sizes of a way for a service that uses so many CPUs, on so many that services share.
func sizesOf(w way, used float64, host int) (sizes []float64) {
	switch w.name {
	case withoutLimit:
		return []float64{float64(host)}
	case exclusiveCPUs: // one CPU at least stays for all else
		for n := 1; n < host; n++ {
			sizes = append(sizes, float64(n))
		}
		return sizes
	}
	for _, times := range sizeTimes {
		if size := math.Round(100*times*used) / 100; size < float64(host) {
			sizes = append(sizes, size)
		}
	}
	return sizes
}

// sizedPiece is one round of one service.
type sizedPiece struct {
	study.Made
	Service string `json:"service"`
	Round   int    `json:"round"`
	// Load is a multiple of the service's usual one, Used the CPUs that it uses without a limit then; both of round 1.
	Load   float64      `json:"load"`
	Used   float64      `json:"used_cpus"`
	Points []sizedPoint `json:"points"`
}

// sizedPoint is one size of one way.
type sizedPoint struct {
	Way  string  `json:"way"`
	Size float64 `json:"size_cpus"`
	point
}

// Is tells whether it is that round of that service.
func (p sizedPiece) Is(service string, round int) bool {
	return p.Service == service && p.Round == round
}

// measureSizes measures what is missing of the rounds.
func measureSizes(ctx context.Context, o options, have *study.Lines[sizedPiece], chosen []services.Case, rounds int) error {
	return services.MissingRounds(ctx, have, chosen, rounds, func(c services.Case, round int) (sizedPiece, error) {
		return measureRound(ctx, o, c, round, have.All)
	})
}

// measureRound measures each size of each way once, in a random order, on one running service.
func measureRound(ctx context.Context, o options, c services.Case, round int, before []sizedPiece) (p sizedPiece, err error) {
	if err := installed(c); err != nil {
		return p, err
	}
	p = sizedPiece{Made: study.Now(time.Now()), Service: c.Name, Round: round}
	r := &running{options: o, c: c, v: usual, seed: services.Seed(c.Name) + uint64(round)}
	err = r.run(ctx, func(ctx context.Context) error { return r.sizes(ctx, &p, before) })
	return p, err
}

// sizes measures a round on the running service.
func (r *running) sizes(ctx context.Context, p *sizedPiece, before []sizedPiece) (err error) {
	all, held := ways(), r.containers[0]
	free := all[len(all)-1]
	if err := r.holdSize(held, free, float64(len(held.host))); err != nil {
		return err
	}
	if _, err := r.client(ctx, 1, warm); err != nil {
		return err
	}
	if p.Load, p.Used, err = r.loadOf(ctx, before); err != nil {
		return err
	}
	type turn struct {
		way  way
		size float64
	}
	var turns []turn
	for _, w := range all {
		for _, size := range sizesOf(w, p.Used, len(held.host)) {
			turns = append(turns, turn{w, size})
		}
	}
	draw := rand.New(rand.NewPCG(r.seed, 0))
	draw.Shuffle(len(turns), func(i, j int) { turns[i], turns[j] = turns[j], turns[i] })
	for _, t := range turns {
		if err := r.holdSize(held, t.way, t.size); err != nil {
			return err
		}
		at, err := r.step(ctx, p.Load)
		if err != nil {
			return err
		}
		p.Points = append(p.Points, sizedPoint{t.way.name, t.size, at})
		fmt.Fprintf(os.Stderr, "%s  %s: round %d: %s of %.2f CPUs: p50 %s, p99 %s ms, %.2f CPUs used\n", time.Now().Format(time.TimeOnly),
			r.c.Name, p.Round, t.way.name, t.size, study.Decimals(at.P50, 2), study.Decimals(at.P99, 1), at.UsedCPUs)
	}
	return nil
}

// holdSize puts a size of a way in force, and keeps the neighbour off exclusive CPUs.
func (r *running) holdSize(h *holder, w way, size float64) error {
	free := h.host
	if w.name == exclusiveCPUs {
		free = h.host[int(size):]
	}
	if err := r.beside.Limited.SetCPUs(cpuset.New(free...)); err != nil {
		return err
	}
	to := w.setting(size, len(h.host))
	r.v.period = to.Limit.Period
	if err := h.put(to); err != nil {
		return err
	}
	if now, _ := h.inForce(); now.Limit != to.Limit {
		return fmt.Errorf("%s of %.2f CPUs: %s", w.name, size, h.firstRefusal)
	}
	return nil
}

// loadOf is the load of a service's rounds and what it uses then without a limit, which is in force: those of the first round.
func (r *running) loadOf(ctx context.Context, before []sizedPiece) (load, used float64, err error) {
	for _, p := range before {
		if p.Service == r.c.Name {
			return p.Load, p.Used, nil
		}
	}
	at, err := r.step(ctx, 1)
	if err != nil || at.UsedCPUs <= mostUsed {
		return 1, at.UsedCPUs, err
	}
	load = mostUsed / at.UsedCPUs
	at, err = r.step(ctx, load)
	return load, at.UsedCPUs, err
}
