package forecast

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	rt "github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// pricedService is a drawn service: what came when and how much work it was, known exactly and not by a recording.
type pricedService struct {
	law           pricedLaw
	cpus, threads int
	limit         float64
	window        time.Duration
	quantile      float64              // that is judged
	phases        int                  // of the periods in which it is simulated
	works, other  []simulate.QueuedRun // of this shard, and of another one of the same service
}

// pricedLaw is by what chance requests come: one by one or in bursts, gap apart in the mean, with work of a shape and a mean,
// all in milliseconds.
type pricedLaw struct {
	work, gap float64
	burst     int
	shape     int
}

// The shapes of work.
const (
	exponential = iota
	constant
	wide // of a log-normal distribution
	shapes
)

// of draws the work of a request.
func (l *pricedLaw) of(r *rand.Rand) float64 {
	switch l.shape {
	case constant:
		return l.work
	case wide:
		return min(20*l.work, max(0.1, l.work*math.Exp(r.NormFloat64()-0.5)))
	}
	return min(5*l.work, max(0.1, l.work*r.ExpFloat64()))
}

// arrive draws what comes within a time.
func (l *pricedLaw) arrive(r *rand.Rand, within time.Duration) (runs []simulate.QueuedRun) {
	for at := l.gap * r.ExpFloat64(); at < float64(within)/float64(ms); at += l.gap * r.ExpFloat64() {
		for range l.burst {
			runs = append(runs, simulate.QueuedRun{At: tenths(at), For: max(tenths(0.1), tenths(l.of(r)))})
		}
	}
	return runs
}

// drawPriced draws a service with work of an exponential length, and 6 s of it. Nothing comes in the last half second, so that all
// can be done.
func drawPriced(seed uint64) pricedService {
	r := rand.New(rand.NewPCG(seed, 0x707269636564))
	between := func(low, high float64) float64 { return low + (high-low)*r.Float64() }
	d := pricedService{cpus: 8 + 8*r.IntN(2), threads: 64, limit: between(0.6, 4)}
	d.law = pricedLaw{work: between(1, 8), burst: 1 + r.IntN(12)}
	d.law.gap = d.law.work * float64(d.law.burst) / (d.limit * between(0.3, 0.7))
	d = d.seen(r, 6*time.Second-500*ms, truthSeeds)
	d.window = 6 * time.Second
	return d
}

// seen is the service in a time of its own.
func (d pricedService) seen(r *rand.Rand, window time.Duration, phases int) pricedService {
	d.window, d.quantile, d.phases = window, 0.99, phases
	d.works, d.other = d.law.arrive(r, window), d.law.arrive(r, window)
	return d
}

// tenths are milliseconds in the steps of the host that records.
func tenths(t float64) time.Duration { return time.Duration(math.Round(10*t)) * 100 * time.Microsecond }

// recorded is a recording of it under its limit.
func (d pricedService) recorded() recording.Recording {
	s := rt.New(d.cpus).Limit(bandwidth.QuotaOf(d.limit, 100*ms), 100*ms).Process("server")
	s.Title("server")
	s.Header().Processes[0].Go = "go1.26"
	w := s.Threads("worker", d.threads)
	s.Answers(w...)
	for i, run := range d.works {
		s.Work(run.At, run.For, w[i%len(w)])
	}
	return s.Run(d.window)
}

// truthSeeds is in how many phases of the periods the truth is simulated.
const truthSeeds = 5

// pricedName is the name of a priced remedy, with the period of a burst in a longer one: "burst 1s".
func pricedName(r Remedy) string {
	if r.Period > 0 {
		return fmt.Sprintf("%s %v", r.Name, r.Period)
	}
	return r.Name
}

// remedyIn is what pricedName names.
func remedyIn(name string) (remedy string, period time.Duration) {
	remedy, in, _ := strings.Cut(name, " ")
	if period, _ = time.ParseDuration(in); period == 0 {
		period = bandwidth.DefaultPeriod
	}
	return remedy, period
}

// truly are the judged quantile, the median and the CPU time of the service with so many CPUs of a remedy, simulated from what it
// is.
func (d pricedService) truly(t testing.TB, remedy string, cpus float64) (figures [3]float64) {
	rules, err := bandwidth.For("6.18.0")
	if err != nil {
		t.Fatal(err)
	}
	rules.Tick = time.Second / 250
	remedy, period := remedyIn(remedy)
	l := bandwidth.Limit{Quota: bandwidth.QuotaOf(cpus, period), Period: period}
	c := scenario.Cgroup{Name: "app", Parent: -1, Weight: scenario.DefaultWeight, Limit: l}
	works, threads, queued, shards := d.works, d.threads, false, 1.0
	replay := simulate.Replay{}
	switch remedy {
	case Burst:
		c.Limit.Burst = l.Quota
	case Narrow:
		c.Remedy = &scenario.Remedy{Kind: scenario.Narrow, Credit: creditOf(cpus)}
	case Pin:
		if cpus < 1 {
			return [3]float64{math.Inf(1), math.Inf(1), 0}
		}
		c.Limit.Quota = bandwidth.QuotaOf(d.limit, bandwidth.DefaultPeriod)
		c.Remedy = &scenario.Remedy{Kind: scenario.Pin, CPUs: int(cpus)}
	case Pools:
		threads, queued = int(math.Ceil(cpus)), true
	case Budget:
		replay.Gate = &simulate.Gate{Workloads: []int{0}, Permits: int(math.Ceil(cpus)), Paced: true, Least: appWork}
	case Shards:
		c.Limit.Quota, shards, queued = bandwidth.QuotaOf(2*cpus, l.Period), 2, true
		works = merged(d.works, d.other)
	}
	if queued {
		replay.Queues = [][]simulate.QueuedRun{works}
		for range threads {
			steps := []simulate.ReplayStep{{Kind: simulate.StepTake}}
			replay.Threads = append(replay.Threads, simulate.ReplayThread{Steps: steps})
		}
	} else {
		replay.Threads = make([]simulate.ReplayThread, threads)
		for i, run := range works {
			of := &replay.Threads[i%threads].Steps
			*of = append(*of, simulate.ReplayStep{Kind: simulate.StepUntil, For: run.At},
				simulate.ReplayStep{Kind: simulate.StepRun, For: run.For})
		}
		for i := range replay.Threads {
			replay.Threads[i].CPU = i % d.cpus
			replay.Threads[i].Steps = append(replay.Threads[i].Steps, simulate.ReplayStep{Kind: simulate.StepEnd})
		}
	}
	s := scenario.Scenario{Duration: d.window,
		Host:    scenario.Host{CPUs: d.cpus, HZ: 250, CgroupVersion: 2, Rules: rules, UnthrottleIPI: 2 * time.Microsecond},
		Cgroups: []scenario.Cgroup{c}, Workloads: []scenario.Workload{{Name: "w", Kind: simulate.Replayed, Threads: threads}}}
	all := simulate.NewTimes()
	for seed := range d.phases {
		r, err := simulate.RunReplay(s, &replay, simulate.Options{Seed: 1000 + uint64(seed)})
		if err != nil {
			return [3]float64{math.Inf(1), math.Inf(1), 0} // such as a pin to all CPUs
		}
		all.Merge(r.Times[0].Response)
		figures[2] += r.Outcome.Cgroups["app"].UsageSeconds / shards / float64(d.phases)
	}
	figures[0], figures[1] = *all.Quantile(d.quantile), *all.Quantile(0.5)
	return figures
}

// merged are the works of two shards, in order.
func merged(a, b []simulate.QueuedRun) (all []simulate.QueuedRun) {
	for len(a) > 0 && len(b) > 0 {
		if a[0].At > b[0].At {
			a, b = b, a
		}
		all, a = append(all, a[0]), a[1:]
	}
	return append(append(all, a...), b...)
}

// truth is the least CPUs with which the service is no worse than under its limit, by the rule of Priced.
func (d pricedService) truth(t testing.TB, remedy string) (float64, func(cpus float64) bool) {
	was := d.truly(t, Limit, d.limit)
	noWorse := func(cpus float64) bool {
		is := d.truly(t, remedy, math.Max(cpus, 0.01))
		return is[0] <= was[0]*toleratedP99 && (is[1] <= was[1]*slowerMedian || is[1]-was[1] <= leastMedianMs) &&
			is[2] >= (1-collapseShare)*was[2]
	}
	used := was[2] / d.window.Seconds()
	values := []float64{}
	for k := -3 * pricedSteps; k <= 2*pricedSteps; k++ { // a search goes no further up
		if cpus := d.limit * math.Exp2(float64(k)/pricedSteps); remedy != Pin && cpus <= float64(d.cpus) &&
			cpus >= (1-collapseShare)*used {
			values = append(values, cpus)
		}
	}
	for cpus := 1; remedy == Pin && cpus < d.cpus; cpus++ {
		values = append(values, float64(cpus))
	}
	found, err := least(len(values), func(i int) (verdict, error) {
		is := noWorse(values[i])
		return verdict{is, is, is}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found.is < 0 {
		return 0, noWorse
	}
	return values[found.is], noWorse
}

// pricedTally counts remedies: how many were found within 10 % of the truth, are no worse in truth at what was found
// and worse a bit below, have the truth in their interval, and are possible or not alike.
type pricedTally struct{ near, keeps, below, within, same count }

func (p *pricedTally) String() string {
	return fmt.Sprintf("within 10 %% %v, keeps %v, worse below %v, in its interval %v, possible or not alike %v",
		p.near, p.keeps, p.below, p.within, p.same)
}

// below is a bit less of a remedy.
func below(remedy string, cpus float64) float64 {
	if remedy == Pin {
		return cpus - 1
	}
	return cpus * 0.88
}

// TestPricedTruth draws services, prices each from its recording alone, and simulates each from what it is: the least
// CPUs are those of the truth. UNTHROTTLE_DRAWS=40 draws as many and prints how they came out by remedy.
func TestPricedTruth(t *testing.T) {
	draws := require.Number(t, "UNTHROTTLE_DRAWS", 3)
	by := map[string]*pricedTally{}
	total := pricedTally{}
	for seed := range draws {
		d := drawPriced(uint64(seed))
		f, err := Make(loadOf(t, d.recorded()), Options{Seeds: 3, Seed: 1, Price: true, SchedExt: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range f.Priced {
			name := pricedName(p.Remedy)
			if p.Remedy.Period*MeasuredPeriods > d.window { // it says so
				if p.CPUs != nil || p.Why == "" {
					t.Errorf("%d %s of a recording of %v: %+v", seed, name, d.window, p)
				}
				continue
			}
			truth, noWorse := d.truth(t, name)
			of := by[name]
			if of == nil {
				of = &pricedTally{}
				by[name] = of
			}
			for _, to := range []*pricedTally{of, &total} {
				to.same.add((p.CPUs != nil) == (truth > 0))
				if p.CPUs == nil || truth == 0 {
					continue
				}
				to.near.add(math.Abs(*p.CPUs/truth-1) <= 0.1)
				to.within.add(*p.Low <= truth*1.03 && (p.High == nil || truth <= *p.High*1.03))
				to.keeps.add(noWorse(*p.CPUs * 1.03))
				to.below.add(!noWorse(below(name, *p.CPUs)))
			}
			line := fmt.Sprintf("%d %s: truth %.2f of %.2f", seed, name, truth, d.limit)
			if p.CPUs != nil {
				line += fmt.Sprintf(", found %.2f (%.2f to ", *p.CPUs, *p.Low)
				if p.High != nil {
					line += fmt.Sprintf("%.2f)", *p.High)
				}
			}
			t.Log(line, p.Why)
		}
	}
	for _, p := range priceable {
		if name := pricedName(p.at(loadOf(t, bursts()), 1)); by[name] != nil {
			t.Logf("%s: %v", name, by[name])
		}
	}
	t.Logf("all: %v", &total)
	if 5*total.near.n < 4*total.near.of || 10*total.within.n < 9*total.within.of || total.near.of < 4*draws {
		t.Error("80 % within 10 % and 90 % in the interval are wanted")
	}
}
