package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/bench/services"
	"github.com/unthrottle/unthrottle/internal/clock"
	"github.com/unthrottle/unthrottle/internal/experiment/capacity"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/loadgen"
	"github.com/unthrottle/unthrottle/internal/load/workload"
	"github.com/unthrottle/unthrottle/test/study"
)

// Real services, those of services.Wide, on the small host under its limit. What their requests need is not CPU time but instructions, so
// each CPU of the guest is as fast while others are idle as while all are busy ([machine.Steady]). The first pieces of a service tell how
// many requests use as many CPUs as its case is meant to, without a limit; all others then have the same requests. A round has each variant
// once, on one running service where that does not need another start, and begins with another variant than the one before.

const (
	sized  kind = "size"    // a real service without a limit, to find how many requests it gets
	served kind = "service" // a real service under a variant
)

const (
	// servedSeconds are the periods of 1 s that a service is measured for: as long under each variant, so that all have the same requests.
	servedSeconds = longPeriods
	sizedSeconds  = 4
	// sizings are the pieces that find the requests, each from the one before.
	sizings = 2
	// servedRounds is how many rounds are measured unless more or fewer are asked for, mostRounds how many a page looks for.
	servedRounds, mostRounds = 5, 9
	// servedEdition is that of services and variants. A change counts it up: older pieces then no longer count.
	servedEdition = 1
	// servedWarm is how long the load runs before it is measured: two of the longest periods.
	servedWarm = 2 * time.Second
)

// servedK is how many times slower than the host's the clock of a guest with services runs, controlK that of the control.
const servedK, controlK = 20, 40

// controlled is the service that is measured at both, under the variants that are compared.
const controlled = "nginx-wide"

var controls = []string{capacity.Quota, capacity.NarrowSchedExt, noCredit, capacity.Weight}

// servedMachine is where services are measured.
func servedMachine(k int) machine {
	return machine{Kernel: kernel, CPUs: small.CPUs, K: k, Steady: true}
}

// servedVariants in the order of the page, the quota first.
var servedVariants = []string{capacity.Quota, capacity.Burst, capacity.Burst1s, noCredit, capacity.NarrowSchedExt, capacity.Pools,
	capacity.Pin, capacity.Weight}

// servedPlan is what is asked for of real services.
type servedPlan struct {
	names, variants []string
	rounds          int
	k, control      int // 0: no control
	// seconds each is measured. Others than servedSeconds are for trials: no page reads them.
	seconds float64
}

// wholePlan is all of it.
func wholePlan() servedPlan {
	p := servedPlan{variants: servedVariants, rounds: servedRounds, k: servedK, control: controlK, seconds: servedSeconds}
	for _, c := range services.Wide() {
		p.names = append(p.names, c.Name)
	}
	return p
}

// choose narrows the plan to services and variants, by their names behind commas; "" and "all": all of them.
func (s *servedPlan) choose(names, variants string) error {
	for _, of := range []struct {
		said string
		from *[]string
	}{{names, &s.names}, {variants, &s.variants}} {
		if of.said == "" || of.said == "all" {
			continue
		}
		chosen := strings.Split(of.said, ",")
		for _, name := range chosen {
			if !slices.Contains(*of.from, name) {
				return fmt.Errorf("%.60q: choose from %s", name, strings.Join(*of.from, ", "))
			}
		}
		*of.from = chosen
	}
	if names != "" && names != "all" || variants != "" || s.k != servedK || s.seconds != servedSeconds {
		s.control = 0
	}
	return nil
}

// servedOf is the piece of a service under a variant in a round, with that many times the requests of its case.
func servedOf(k int, name, variant string, times float64, round int) piece {
	return piece{Machine: servedMachine(k), Kind: served, Edition: servedEdition, Shape: name, Remedy: variant, Limit: small.Limit,
		Seconds: servedSeconds, Repeat: round, Times: times}
}

// sizedOf is the piece that finds how many requests a service gets; n counts from 1.
func sizedOf(k int, name string, times float64, n int) piece {
	p := servedOf(k, name, capacity.Weight, times, n)
	p.Kind, p.Seconds = sized, sizedSeconds
	return p
}

// timesOf is how many times the requests of its case a service gets, by its records. Until it is known, next is the piece that is to be
// measured first.
func (r *records) timesOf(k int, name string) (times float64, next *piece) {
	c, _ := services.Find(name)
	times = 1
	for n := 1; n <= sizings; n++ {
		p := sizedOf(k, name, times, n)
		got := r.find(p)
		if got == nil {
			return 0, &p
		}
		if used := *got.Served.CPUUsed; used > 0 {
			const digits = 100
			times = max(1./digits, math.Round(digits*times*c.Use/used)/digits)
		}
	}
	return times, nil
}

// missing are the pieces of the plan that can be measured next, a whole round of a service at a time: first a round of each service, then
// the control, then further rounds.
func (s servedPlan) missing(have *records) (pieces []piece) {
	if len(s.variants) == 0 {
		return nil
	}
	for round := 1; round <= s.rounds; round++ {
		for _, name := range s.names {
			pieces = append(pieces, s.roundOf(have, s.k, name, s.variants, round)...)
		}
		if s.control > 0 && slices.Contains(s.names, controlled) {
			pieces = append(pieces, s.roundOf(have, s.control, controlled, controls, round)...)
		}
	}
	return pieces
}

// roundOf are the pieces of a round of a service that are wanted. Before its size is known that is the one that finds it.
func (s servedPlan) roundOf(have *records, k int, name string, variants []string, round int) (pieces []piece) {
	times, first := have.timesOf(k, name)
	if first != nil {
		if round == 1 && have.wanted(*first) {
			pieces = append(pieces, *first)
		}
		return pieces
	}
	c, _ := services.Find(name)
	for at, i := range study.Turns(s.rounds, len(variants)) {
		p := servedOf(k, name, variants[i], times, round)
		p.Seconds = s.seconds
		if at == round && have.wanted(p) && (p.Remedy != capacity.Pools || c.Setting.Name != "") {
			pieces = append(pieces, p)
		}
	}
	// The one that needs a start of its own comes first or last.
	slices.SortStableFunc(pieces, func(a, b piece) int {
		order := alone(a) - alone(b)
		if round%2 == 0 {
			return -order
		}
		return order
	})
	return pieces
}

// alone is 1 for a variant that needs a start of the service of its own, else 0.
func alone(p piece) int {
	if p.Remedy == capacity.Pools {
		return 1
	}
	return 0
}

// hours are about how long all that is missing takes on the host, also what is not known yet to be missing.
func (s servedPlan) hours(have *records) float64 {
	var sum time.Duration
	add := func(k int, name string, variants []string) {
		_, first := have.timesOf(k, name)
		if first != nil {
			sum += sizings * (first.takes() + first.Machine.boots())
		}
		for round := 1; round <= s.rounds; round++ {
			pieces := s.roundOf(have, k, name, variants, round)
			if first != nil {
				pieces = nil
				for _, v := range variants {
					pieces = append(pieces, servedOf(k, name, v, 1, round))
				}
			}
			for _, p := range pieces {
				sum += p.takes()
			}
			if len(pieces) > 0 {
				sum += pieces[0].Machine.boots()
			}
		}
	}
	for _, name := range s.names {
		add(s.k, name, s.variants)
	}
	if s.control > 0 && slices.Contains(s.names, controlled) {
		add(s.control, controlled, controls)
	}
	return sum.Hours()
}

// packagesOf are the Debian packages that a guest needs for pieces: those of all services that are ever measured, so that guests
// share a disk.
func packagesOf(pieces []piece) (names []string) {
	if !slices.ContainsFunc(pieces, func(p piece) bool { return p.Kind == sized || p.Kind == served }) {
		return nil
	}
	for _, c := range services.Wide() {
		for _, name := range c.Packages() {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// servedFigures of a real service.
type servedFigures struct {
	figures
	// ThrottledSeconds is the kernel's throttled time, a sum over CPUs.
	ThrottledSeconds *float64 `json:"throttled_seconds,omitempty"`
	// ServedCPUs is how many CPUs its cgroup may run on.
	ServedCPUs int `json:"served_cpus"`
}

// session is a running service, on which pieces are measured one after the other.
type session struct {
	name    string
	advised bool
	times   float64
	stage   *services.Stage
	of      services.Service
	stop    context.CancelFunc
	stopped chan struct{}
}

// sessions keeps the last service running as long as pieces are of it.
type sessions struct {
	host *cgroup.Host
	now  *session
}

// generator is the CPU of the client, which the service cannot use.
const generator = 0

// servedOn are the CPUs of services in a guest.
func servedOn(cpus int) cpuset.CPUSet {
	var all []int
	for i := range cpus {
		if i != generator {
			all = append(all, i)
		}
	}
	return cpuset.New(all...)
}

// of gives the service of a piece, running under its plain quota.
func (s *sessions) of(ctx context.Context, p piece) (*session, error) {
	advised := p.Remedy == capacity.Pools
	if s.now != nil && s.now.name == p.Shape && s.now.advised == advised && s.now.times == p.Times {
		return s.now, nil
	}
	if err := s.close(); err != nil {
		return nil, err
	}
	c, ok := services.Find(p.Shape)
	if !ok {
		return nil, fmt.Errorf("no service %q", p.Shape)
	}
	if missing := c.Missing(); missing != "" {
		return nil, errors.New(missing)
	}
	c = c.Times(p.Times)
	c.Limit = float64(p.Limit)
	stage, err := services.Open(s.host, c)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	s.now = &session{name: p.Shape, advised: advised, times: p.Times, stage: stage, stop: stop, stopped: make(chan struct{})}
	stage.Advised = advised
	err = stage.Limited.SetCPUs(servedOn(p.Machine.CPUs))
	if err == nil {
		s.now.of, err = stage.Serve(ctx, c)
	}
	if err != nil {
		close(s.now.stopped)
		return nil, errors.Join(err, s.close())
	}
	go func() {
		defer close(s.now.stopped)
		s.now.of.Disturb(ctx)
	}()
	return s.now, nil
}

// close ends the service.
func (s *sessions) close() error {
	if s.now == nil {
		return nil
	}
	now := s.now
	s.now = nil
	now.stop()
	<-now.stopped
	return now.stage.Close()
}

// servedLimit is a variant's limit.
func servedLimit(variant string, cpus int) cgroup.Limit {
	of := func(period time.Duration, bursts int) cgroup.Limit {
		quota := time.Duration(cpus) * period
		return cgroup.Limit{Quota: quota, Period: period, Burst: time.Duration(bursts) * quota}
	}
	switch variant {
	case capacity.Burst:
		return of(cgroup.DefaultPeriod, 1)
	case capacity.Burst1s:
		return of(time.Second, 1)
	case noCredit, capacity.NarrowSchedExt, capacity.Pin, capacity.Weight:
		return cgroup.Unlimited()
	}
	return of(cgroup.DefaultPeriod, 0)
}

// measureServed measures a service under a variant, which it takes back.
func measureServed(ctx context.Context, s *sessions, p piece) (f *servedFigures, err error) {
	at, err := s.of(ctx, p)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil { // the next piece gets a service of its own
			err = errors.Join(err, s.close())
		}
	}()
	group, cpus := at.stage.Limited, servedOn(p.Machine.CPUs)
	if p.Remedy == capacity.Pin {
		list := cpus.List()
		cpus = cpuset.New(list[len(list)-p.Limit:]...)
	}
	if err := errors.Join(group.SetCPUs(cpus), group.SetLimit(servedLimit(p.Remedy, p.Limit))); err != nil {
		return nil, err
	}
	var capped *scheduler
	if p.Remedy == noCredit || p.Remedy == capacity.NarrowSchedExt {
		if capped, err = narrow(s.host, group.At(), p.Limit, creditOf(p.Remedy, p.Limit)); err != nil {
			return nil, err
		}
	}
	f, err = at.load(ctx, p)
	if capped != nil {
		if failed := capped.end(); failed != nil || err != nil {
			return nil, errors.Join(err, failed)
		}
		f.Widest, f.AtCap = &capped.stats.Widest, new(capped.stats.AtCap.Seconds())
	}
	if err != nil {
		return nil, err
	}
	f.ServedCPUs = cpus.Size()
	return f, errors.Join(group.SetLimit(servedLimit(capacity.Quota, p.Limit)), group.SetCPUs(servedOn(p.Machine.CPUs)))
}

// load sends a piece's requests, and counts what the service's cgroup does meanwhile.
func (s *session) load(ctx context.Context, p piece) (*servedFigures, error) {
	const (
		soon  = 500 * time.Millisecond // until the client is there
		drain = 3 * time.Second
		late  = 2 * time.Millisecond
	)
	begin := workload.Now() + soon
	length := time.Duration(p.Seconds * float64(time.Second))
	order := services.Order{Requests: s.of.Requests, Plan: loadgen.Plan{Seed: services.Seed(p.Shape) + uint64(p.Repeat),
		Streams: s.of.Streams, Connections: s.of.Connections, Drain: drain, LateAfter: late, CPUs: fmt.Sprint(generator), Start: begin,
		Phases: []loadgen.Phase{{For: servedWarm, Factor: 1}, {For: length, Factor: 1, Measured: true}}}}
	type answer struct {
		result loadgen.Result
		err    error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	came := make(chan answer, 1)
	go func() {
		result, err := services.RunClient(ctx, order)
		came <- answer{result, err}
	}()
	var looks [2]cgroup.Stat
	var when [2]time.Duration
	for i, until := range []time.Duration{begin + servedWarm, begin + servedWarm + length} {
		var err error
		if err = clock.Sleep(ctx, until-workload.Now()); err == nil {
			looks[i], err = s.stage.Limited.Stat()
		}
		if err != nil {
			cancel()
			return nil, errors.Join(err, (<-came).err)
		}
		when[i] = workload.Now()
	}
	got := <-came
	if got.err != nil {
		return nil, got.err
	}
	return servedFiguresOf(got.result, s.of.Streams, looks, when[1]-when[0])
}

// servedFiguresOf takes what was measured between two looks.
func servedFiguresOf(result loadgen.Result, streams []loadgen.Stream, looks [2]cgroup.Stat, took time.Duration) (*servedFigures, error) {
	if why := result.Own.Saturated(); why != "" {
		return nil, errors.New(why)
	}
	if looks[0].Usage == nil || looks[1].Usage == nil {
		return nil, errors.New("the kernel does not tell what the service used")
	}
	judged := result.Phases[len(result.Phases)-1].Streams[0]
	f := &servedFigures{figures: figures{Load: streams[0].PerSecond, Requests: judged.Intended, Failed: judged.Errors(),
		P50: quantileMs(judged.Latency, 0.5), P99: quantileMs(judged.Latency, 0.99), Latencies: slotsOf(judged.Latency),
		CPUUsed: new((*looks[1].Usage - *looks[0].Usage).Seconds() / took.Seconds()),
		LateP99: new(float64(result.Own.LateP99.Microseconds()) / 1000)}}
	if judged.Intended == 0 || judged.Errors() == judged.Intended {
		return nil, fmt.Errorf("%d requests, none with an answer: %s", judged.Intended, result.FirstFailure)
	}
	if looks[1].Bandwidth && looks[1].Periods > looks[0].Periods {
		f.Periods, f.Throttled = new(looks[1].Periods-looks[0].Periods), new(looks[1].ThrottledPeriods-looks[0].ThrottledPeriods)
		f.ThrottledSeconds = new((looks[1].Throttled - looks[0].Throttled).Seconds())
	}
	return f, nil
}
