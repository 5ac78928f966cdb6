package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/bench/services"
	"github.com/unthrottle/unthrottle/internal/clock"
	"github.com/unthrottle/unthrottle/internal/load/loadgen"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/test/study"
)

// One container with a limit of one CPU, or two with half of that and half of the load each? All three run at once; only those that are
// measured have load.

// shardedServices are those of the study.
var shardedServices = []string{"postgres-tpcb", "tomcat-pages"}

const (
	// shardsLimit is the limit of all containers together, and shardsUse what the load makes one use without a limit.
	shardsLimit, shardsUse = 1.0, 0.5
	// idles is how long a stage has no load before its memory is read, so that what ended is gone.
	idles = time.Second
)

// shardedPiece is one round of one service.
type shardedPiece struct {
	study.Made
	Service string         `json:"service"`
	Round   int            `json:"round"`
	Load    float64        `json:"load"` // a multiple of the service's usual one, that of round 1
	Points  []shardedPoint `json:"points"`
}

// shardedPoint is so many containers held in one way.
type shardedPoint struct {
	Way        string   `json:"way"`
	Containers int      `json:"containers"`
	P50        *float64 `json:"p50_ms"`
	P99        *float64 `json:"p99_ms"`
	UsedCPUs   float64  `json:"used_cpus"`
	Memory     int64    `json:"memory_bytes"`
	Requests   uint64   `json:"requests"`
	Errors     uint64   `json:"errors"`
}

// shard is one container of the study.
type shard struct {
	stage  *services.Stage
	of     services.Service
	holder *holder
}

// shardedWays are what is compared: by the names of ways.
var shardedWays = []string{"quota", "burst in 100 ms", "burst in 1 s", withoutLimit}

// Is tells whether it is that round of that service.
func (p shardedPiece) Is(service string, round int) bool {
	return p.Service == service && p.Round == round
}

// measureShards measures what is missing of the rounds.
func measureShards(ctx context.Context, o options, have *study.Lines[shardedPiece], chosen []services.Case, rounds int) error {
	return services.MissingRounds(ctx, have, chosen, rounds, func(c services.Case, round int) (shardedPiece, error) {
		return measureShardsOnce(ctx, o, c, round, have.All)
	})
}

func measureShardsOnce(ctx context.Context, o options, c services.Case, round int, before []shardedPiece) (p shardedPiece, err error) {
	if missing := c.Missing(); missing != "" {
		return p, errors.New(missing)
	}
	p = shardedPiece{Made: study.Now(time.Now()), Service: c.Name, Round: round}
	var all []shard // the large one first
	defer func() {
		for _, s := range all {
			err = errors.Join(err, s.stage.Close())
		}
	}()
	for range 3 {
		stage, err := services.Open(o.host, c)
		if err != nil {
			return p, err
		}
		all = append(all, shard{stage: stage, holder: newHolder(c.Name, stage.Limited, stage.CPUs(), c.Limit)})
		s := &all[len(all)-1]
		if s.of, err = stage.Serve(ctx, c); err != nil {
			return p, fmt.Errorf("start: %w", err)
		}
	}
	seed := services.Seed(c.Name) + uint64(round)
	hold := func(of []shard, name string) (way, error) {
		w := ways()[slices.IndexFunc(ways(), func(w way) bool { return w.name == name })]
		for _, s := range of {
			if err := s.holder.put(w.setting(shardsLimit/float64(len(of)), len(s.holder.host))); err != nil {
				return w, err
			}
		}
		return w, nil
	}
	p.Load = 1
	for _, of := range [][]shard{all[1:], all[:1]} { // all are warm then
		if _, err := hold(of, withoutLimit); err != nil {
			return p, err
		}
		if _, err := measureShardsAt(ctx, of, 1, 2*warm, 0, seed); err != nil {
			return p, err
		}
	}
	if at := slices.IndexFunc(before, func(q shardedPiece) bool { return q.Service == c.Name }); at >= 0 {
		p.Load = before[at].Load
	} else if at, err := measureShardsAt(ctx, all[:1], 1, o.each, 0, seed); err != nil {
		return p, err
	} else {
		p.Load = shardsUse / at.UsedCPUs
	}
	type turn struct {
		of  []shard
		way string
	}
	var turns []turn
	for _, name := range shardedWays {
		turns = append(turns, turn{all[:1], name}, turn{all[1:], name})
	}
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(turns), func(i, j int) { turns[i], turns[j] = turns[j], turns[i] })
	for _, t := range turns {
		w, err := hold(t.of, t.way)
		if err != nil {
			return p, err
		}
		period := w.setting(shardsLimit, 1).Limit.Period
		at, err := measureShardsAt(ctx, t.of, p.Load, max(o.each, forecast.MeasuredPeriods*period), forecast.SettlePeriods*period, seed)
		if err != nil {
			return p, err
		}
		at.Way = t.way
		p.Points = append(p.Points, at)
		fmt.Fprintf(os.Stderr, "%s  %s: round %d: %d under %s: p50 %s, p99 %s ms, %.2f CPUs, %d MB\n", time.Now().Format(time.TimeOnly), c.Name, round,
			at.Containers, at.Way, study.Decimals(at.P50, 2), study.Decimals(at.P99, 1), at.UsedCPUs, at.Memory>>20)
	}
	return p, nil
}

// measureShardsAt gives equal parts of a load to containers, and measures all of their requests together.
func measureShardsAt(ctx context.Context, of []shard, load float64, each, settle time.Duration, seed uint64) (at shardedPoint, err error) {
	at.Containers = len(of)
	used := func() (sum time.Duration) {
		for _, s := range of {
			stat, failed := s.stage.Limited.Stat()
			if err = errors.Join(err, failed); failed == nil && stat.Usage != nil {
				sum += *stat.Usage
			}
		}
		return sum
	}
	before, began := used(), time.Now()
	type answer struct {
		result loadgen.Result
		err    error
	}
	answers := make(chan answer, len(of))
	part := load / float64(len(of))
	for i, s := range of {
		go func() {
			result, err := services.RunClient(ctx, services.Order{Requests: s.of.Requests, Plan: loadgen.Plan{
				Seed: seed + uint64(i)<<32, Streams: s.of.Streams, Connections: s.of.Connections, Drain: 2 * time.Second,
				Phases: []loadgen.Phase{{For: max(500*time.Millisecond, settle), Factor: part},
					{For: each, Factor: part, Measured: true}}}})
			answers <- answer{result, err}
		}()
	}
	var latency loadgen.Latency
	for range of {
		a := <-answers
		if err = errors.Join(err, a.err); a.err == nil {
			judged := a.result.Phases[len(a.result.Phases)-1].Streams[0]
			at.Requests, at.Errors = at.Requests+judged.Intended, at.Errors+judged.Errors()
			latency.Merge(judged.Latency)
		}
	}
	at.UsedCPUs = (used() - before).Seconds() / time.Since(began).Seconds()
	if err != nil {
		return at, err
	}
	at.P50, at.P99 = services.Milliseconds(latency, 0.5), services.Milliseconds(latency, 0.99)
	if err := clock.Sleep(ctx, idles); err != nil {
		return at, err
	}
	for _, s := range of {
		bytes, err := s.stage.Memory()
		if err != nil {
			return at, err
		}
		at.Memory += bytes
	}
	return at, nil
}
