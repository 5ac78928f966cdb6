package capacity

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/loadgen"
	"github.com/unthrottle/unthrottle/internal/load/workload/service"
	"github.com/unthrottle/unthrottle/internal/scenario"
)

// Remedies that only single points have: a search of many minutes on two CPUs does not need them.
const (
	Cpuset         = "cpuset"           // the quota, on as many CPUs as the limit
	BurstPeriod    = "burst-period"     // the same limit over 10 ms, with a burst as large as that quota
	Burst300       = "burst-300ms"      // the same limit over 300 ms, with a burst as large as that quota
	Twice          = "twice"            // twice the limit
	NarrowSchedExt = "narrow-sched_ext" // at no moment wider than the limit but on credit, by the scheduler of sched_ext
	PinPools       = "pin-pools"        // as many CPUs as the limit, no quota, with pools sized by them
	RateLimit      = "rate-limit"       // the quota, and requests beyond what the limit can carry are refused
)

// Shard is the shape of one shard of seed 000: examples/scenarios/service-pools.yaml in proportion to the limit.
const Shard = "shard"

// SmallBursts is the shape shard with the bursts of a limit of two CPUs, however large its own: its rate is in proportion, its bursts
// are not.
const SmallBursts = "shard-small-bursts"

// PoolsGC is the shape pools with the collector of the shape gc.
const PoolsGC = "pools-gc"

// Points measures single points, for experiments that choose the loads themselves.
type Points struct {
	o     Options
	b     *testbed
	cpus  cpuset.CPUSet
	limit int
}

// At is what one point is of.
type At struct {
	Shape  string        `json:"shape"`
	Remedy string        `json:"remedy"`
	Share  float64       `json:"share"` // the load as a share of what the limit's CPUs can carry
	For    time.Duration `json:"for_ns"`
	Seed   uint64        `json:"seed"`
}

// Measured is one point with its latencies.
type Measured struct {
	Point   Point
	Latency loadgen.Latency // of the requests of the objective
	// LateP99 is how late the generator itself sent at most 99 of 100 requests. Latencies have it in them.
	LateP99 time.Duration
	// Others are the CPUs that all else on the host used but the generator; nil: not measured.
	Others *float64
}

// OpenPoints makes the cgroups of a bench with a limit of so many CPUs. Close removes them.
func OpenPoints(o Options, limit int) (*Points, error) {
	o.Remedies = []string{Quota}
	o, err := o.filled()
	if err != nil {
		return nil, err
	}
	b, cpus, err := open(o)
	if err != nil {
		return nil, err
	}
	if limit < 1 || limit >= cpus.Size() {
		return nil, errors.Join(fmt.Errorf("a limit of %d CPUs of %d: give one that can bind", limit, cpus.Size()), b.sandbox.Remove())
	}
	return &Points{o, b, cpus, limit}, nil
}

// Close removes all that OpenPoints made.
func (p *Points) Close() error { return p.b.sandbox.Remove() }

// CPUs are those that the service may use: all but the generator's own.
func (p *Points) CPUs() cpuset.CPUSet { return p.cpus }

// Load is the load of a point in requests per second.
func (p *Points) Load(at At) (float64, error) {
	shape, err := pointShape(at.Shape, p.cpus.Size(), p.limit)
	return at.Share * float64(p.limit) / shape.CPU.Seconds(), err
}

// Measure measures one point. around is called with the service's cgroup before the service starts, and what it returns
// when the service has ended. beside runs while the point is measured. Each may be nil.
func (p *Points) Measure(ctx context.Context, at At, around func(cgroup.Group) (end func() error, err error),
	beside func(context.Context, cgroup.Group) error) (m Measured, err error) {
	shape, err := pointShape(at.Shape, p.cpus.Size(), p.limit)
	if err != nil {
		return m, err
	}
	a, err := pointVariant(at.Remedy, shape, p.cpus, p.limit)
	if err != nil {
		return m, err
	}
	if around != nil {
		end, failed := around(p.b.group.At())
		if failed != nil {
			return m, failed
		}
		defer func() { err = errors.Join(err, end()) }()
	}
	if beside != nil {
		p.b.meanwhile = func(ctx context.Context) error { return beside(ctx, p.b.group.At()) }
		defer func() { p.b.meanwhile = nil }()
	}
	s, err := p.b.run(ctx, a, shape.Streams, at.Share*float64(p.limit)/shape.CPU.Seconds(), at.For, at.Seed)
	if err != nil {
		return m, err
	}
	if why := s.own.Saturated(); why != "" {
		return m, &Saturated{why}
	}
	return Measured{pointOf(at.Share, []step{s}, p.o.Objective), s.service.Latency, s.own.LateP99, s.others}, nil
}

// pointShape is newShape with Shard, SmallBursts and PoolsGC.
func pointShape(name string, cpus, limit int) (Shape, error) {
	switch name {
	case Shard:
		return shard(cpus, limit, limit), nil
	case SmallBursts:
		s := shard(cpus, limit, 2)
		s.Name, s.About = SmallBursts, s.About+"; bursts are those of a limit of 2 CPUs"
		return s, nil
	case PoolsGC:
		return severalPools(cpus, limit).collected(cpus, limit), nil
	}
	return newShape(name, cpus, limit)
}

// shard is seed 000's service: three pools of two threads per CPU of the host compete, and two of them get bursts. A burst
// has as many requests for each of burstCPUs as there for each CPU of the limit.
func shard(cpus, limit, burstCPUs int) Shape {
	burst := func(perCPU float64) int { return max(1, int(perCPU*float64(burstCPUs)+0.5)) }
	const all = 2000 + 150 + 200 // requests per second there
	s := Shape{Name: Shard, About: "a shard of seed 000: gets in one pool, bursts of 20 ms joins in another and of 5 " +
		"ms events in a third; the objective is on the gets"}
	s.Streams = []loadgen.Stream{
		{Name: "get", PerSecond: 2000. / all},
		{Name: "join", Class: 1, PerSecond: 150. / all, Burst: burst(50. / 20), Background: true},
		{Name: "event", Class: 2, PerSecond: 200. / all, Burst: burst(100. / 20), Background: true},
	}
	s.Service = service.Spec{IO: 2, Shared: sharedData, Classes: []service.Class{
		{Name: "get", Pool: "http-worker", Work: scenario.Duration{Shape: scenario.Exponential, Mean: 2 * ms}, Touches: 100, Locked: 0.001},
		{Name: "join", Pool: "offload-worker", Work: scenario.Duration{Shape: scenario.Uniform, Low: 15 * ms, High: 25 * ms}, Touches: 500},
		{Name: "event", Pool: "event-worker", Work: scenario.Duration{Shape: scenario.Exponential, Mean: 5 * ms}},
	}, Pools: []service.Pool{pool("http-worker", 2*cpus), pool("offload-worker", 2*cpus), pool("event-worker", 2*cpus)}}
	s.Sized = s.Service
	s.Sized.IO, s.Sized.Pools = 1, []service.Pool{pool("http-worker", limit), pool("offload-worker", limit), pool("event-worker", limit)}
	s.CPU = (2000*2 + 150*20 + 200*5) * ms / all
	return s
}

// pointRemedies are the remedies of single points.
func pointRemedies() []string {
	return append(remedies(), Budget, Cpuset, BurstPeriod, Burst300, Twice, NarrowSchedExt, PinPools, RateLimit)
}

// admittedAtOnce is how much work a rate limit lets in at once, in periods of the quota: a fifth of one is no stop.
const admittedAtOnce = 0.2

// carried is the rate limit of one shard: as many requests as the limit's CPUs can do, on average.
func carried(shape Shape, limit int) scenario.RateLimit {
	perSecond := float64(limit) / shape.CPU.Seconds()
	return scenario.RateLimit{PerSecond: perSecond, Burst: max(1, int(admittedAtOnce*perSecond*cgroup.DefaultPeriod.Seconds()))}
}

// pointVariant is a remedy of a single point. What NarrowSchedExt adds to the quota is the caller's.
func pointVariant(name string, shape Shape, cpus cpuset.CPUSet, limit int) (variant, error) {
	base := name
	switch {
	case !slices.Contains(pointRemedies(), name):
		return variant{}, fmt.Errorf("remedy %.40q: choose from %s", name, strings.Join(pointRemedies(), ", "))
	case name == Cpuset, name == Twice, name == NarrowSchedExt, name == RateLimit, name == Burst300:
		base = Quota
	case name == PinPools:
		base = Pin
	case name == BurstPeriod:
		base = Period
	}
	made, err := variants([]string{base}, shape, cpus, lastCPUs(cpus, limit), limit)
	if err != nil {
		return variant{}, err
	}
	a := made[0]
	a.name = name
	switch name {
	case Cpuset:
		a.cpus = lastCPUs(cpus, limit)
	case Twice:
		a.limit.Quota, a.granted = 2*a.limit.Quota, 2*a.granted
	case BurstPeriod:
		a.limit.Burst = a.limit.Quota
	case Burst300:
		a.limit = bursting(a.limit, 300*time.Millisecond)
	case PinPools:
		a.service = shape.Sized
	case RateLimit:
		a.service.RateLimit = carried(shape, limit)
	}
	return a, nil
}
