package generate

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/demand/leastlimit"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/stats"
)

// Priced is the truth about a service whose agents make recordings for its containers' sizes.
type Priced struct {
	// Cores are what its containers need with each remedy, by forecast's names, at the same p99; of what is not there it
	// is no remedy. Half as many containers are of twice the size.
	Cores map[string]float64 `json:"cores_after"`
	// LongBursts are Cores of a burst in longer periods, where it is a remedy.
	LongBursts []LongBurst `json:"cores_after_long_bursts"`
	// Pool is the key of the pool that each container has, or the name of its threads, and Threads is how many there are.
	Pool    string `json:"pool"`
	Threads int32  `json:"threads"`
}

// sizing is what the recordings of a service are made of.
type sizing struct {
	*service
	// needs are by forecast's names, at the most loaded level that there is; long are those of a burst in longPeriods, or none.
	needs map[string]float64
	long  []float64
	top   int
	took  time.Duration
	pool  demand.Pool
}

// drawnNeeds are the remedies whose needs are drawn, between parts of the need of the limit alone.
var drawnNeeds = []struct {
	remedy      string
	least, most float64
}{{forecast.Narrow, 0.6, 1.1}, {forecast.Pin, 0.4, 1.2}, {forecast.Pools, 0.6, 1}, {forecast.Budget, 0.5, 1}, {forecast.Shards, 0.6, 1}}

// noRemedy is the part of the services of which such a remedy is none.
const noRemedy = 0.3

// drawnPools are what a library makes on the hosts here by default, and threads that no table knows.
var drawnPools = []demand.Pool{
	{Pool: "netty-nio", Threads: 2 * hostCPUs, DefaultCPUs: new(int32(hostCPUs))}, {Pool: "tomcat", Threads: 200},
	{Name: "eventbus-*", Threads: 128},
}

// price draws what each remedy takes, of some services. What the limit alone and a burst take is the period model's. A
// chance of its own: what is drawn elsewhere stays as it was.
func (s *service) price(no int, o Options) {
	chance := rand.New(rand.NewPCG(o.Seed, 1<<41|uint64(no)))
	if chance.Float64() >= o.Priced {
		return
	}
	p := &sizing{service: s, needs: map[string]float64{forecast.Limit: s.same[0], forecast.Burst: s.same[1]}, long: s.sameLong}
	if chance.Float64() < noRemedy {
		delete(p.needs, forecast.Burst)
		p.long = nil
	}
	for level, slots := range s.seen {
		if slots > 0 {
			p.top = level
		}
	}
	for _, of := range drawnNeeds {
		if part := of.least + (of.most-of.least)*chance.Float64(); chance.Float64() >= noRemedy {
			p.needs[of.remedy] = part * s.same[0]
		}
	}
	p.took = time.Duration(float64(time.Millisecond) * (2 + 48*chance.Float64()))
	p.pool = drawnPools[chance.IntN(len(drawnPools))]
	s.sizing = p
	var long []LongBurst
	for i, need := range p.long {
		long = append(long, LongBurst{longPeriods[i].Seconds(), float64(p.now) * min(p.limit, leastlimit.Tenths(p.cpusOf(need, p.top)))})
	}
	s.truth.Priced = &Priced{LongBursts: long, Cores: p.cores(kindOf(no) != daemonSet && kindOf(no) != cronJob || !o.Churn),
		Pool: p.pool.Pool + p.pool.Name, Threads: p.pool.Threads}
}

// cpusOf are what a container needs at a level of load of what it needs at the most loaded: never less than it uses.
func (p *sizing) cpusOf(need float64, level int) float64 {
	uses := p.ran[level].used.Seconds() / demand.SlotLength.Seconds()
	return max(uses, need*float64(level+1)/float64(p.top+1))
}

// cpus are what a container needs with a remedy.
func (p *sizing) cpus(remedy string, level int) float64 {
	need := p.cpusOf(p.needs[remedy], level)
	if remedy == forecast.Pin {
		return leastlimit.Whole(need)
	}
	return need
}

// cores are what its containers need, by remedy.
func (p *sizing) cores(halved bool) map[string]float64 {
	cores := map[string]float64{}
	for remedy := range p.needs {
		n, each, has := float64(p.now), p.cpus(remedy, p.top), p.limit
		if remedy == forecast.Shards {
			if p.now < 2 || !halved {
				continue
			}
			n, each, has = math.Ceil(n/2), 2*each, 2*has
		}
		if remedy != forecast.Pin {
			each = leastlimit.Tenths(each)
		} else if each > has {
			continue
		}
		cores[remedy] = n * min(has, each)
	}
	return cores
}

// off is by which part what a recording tells is off, at most, and sure by which part of it its bounds are.
const off, sure = 0.04, 0.07

// requestsRecorded are the requests of a recording, of which one takes long.
const requestsRecorded = 40

// into adds to a row what a recording of five minutes at a level tells, in which the slowest requests took so long. Requests
// are recorded while a quota stops the container.
func (p *sizing) into(r *demand.Row, level int, took time.Duration, chance *rand.Rand) {
	if *r.StoppedHighSeconds > 0 {
		r.RecordedSeconds, r.RequestCount = new(min(10, r.Seconds)), new(int64(requestsRecorded))
		r.Requests = []demand.Request{{Microseconds: took.Microseconds() / 2, Count: requestsRecorded - 1},
			{Microseconds: took.Microseconds(), Count: 1}}
	}
	r.PricedAt, r.PricedOf, r.PricedQuantile = new(r.Began), "requests", new(0.99)
	r.PricedMicroseconds = new(took.Microseconds())
	for _, remedy := range forecast.Priceable() {
		if _, is := p.needs[remedy]; !is {
			r.Prices = append(r.Prices, demand.Price{Remedy: remedy, Why: "drawn as no remedy of this service"})
			continue
		}
		told, sure := p.cpus(remedy, level), sure
		if remedy == forecast.Pin {
			sure = 0
		} else {
			told *= 1 + off*(2*chance.Float64()-1)
		}
		milli := func(part float64) *int32 { return new(max(1, int32(math.Round(1000*told*part)))) }
		r.Prices = append(r.Prices, demand.Price{Remedy: remedy, MilliCPUs: milli(1), LowMilliCPUs: milli(1 - sure),
			HighMilliCPUs: milli(1 + sure), Microseconds: r.PricedMicroseconds})
	}
	for i, need := range p.long {
		milli := func(part float64) int32 { return max(1, int32(math.Round(1000*p.cpusOf(need, level)*part))) }
		told := 1 + off*(2*chance.Float64()-1)
		r.LongPrices = append(r.LongPrices, demand.LongPrice{BurstPeriodMicroseconds: longPeriods[i].Microseconds(),
			MilliCPUs: milli(told), LowMilliCPUs: new(milli(told * (1 - sure))), HighMilliCPUs: new(milli(told * (1 + sure)))})
	}
	pool := p.pool
	at := func(levels []demand.Level, q float64) int32 {
		if i := stats.Bucket(len(levels), func(i int) int64 { return levels[i].Microseconds }, q); i >= 0 {
			return min(levels[i].CPUs, pool.Threads)
		}
		return 0
	}
	pool.Runnable, pool.RunnableP99 = at(r.Wanted, 1), at(r.Wanted, 0.99)
	pool.Running = min(pool.Runnable, at(r.Width, 1))
	r.Pools = []demand.Pool{pool}
}
