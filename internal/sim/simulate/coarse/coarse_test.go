package coarse_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/sim/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
	"github.com/unthrottle/unthrottle/internal/sim/simulate/coarse"
)

const ms = int64(time.Millisecond)

var limit = coarse.Limit{QuotaNS: 200 * ms, PeriodNS: 100 * ms}

func TestStep(t *testing.T) {
	for _, c := range []struct {
		name  string
		was   coarse.State
		limit coarse.Limit
		work  int64
		width int32
		want  coarse.Period
		is    coarse.State
	}{
		{"idle", coarse.State{}, limit, 0, 8, coarse.Period{}, coarse.State{}},
		{"below the limit", coarse.State{}, limit, 150 * ms, 8, coarse.Period{UsedNS: 150 * ms}, coarse.State{}},
		{"11 wide: 200 ms in 19 ms (seed 000's kind)", coarse.State{}, limit, 400 * ms, 11,
			coarse.Period{UsedNS: 200 * ms, StoppedNS: 100*ms - 200*ms/11, Throttled: true}, coarse.State{BacklogNS: 200 * ms}},
		{"too narrow to spend it", coarse.State{}, limit, 500 * ms, 1, coarse.Period{UsedNS: 100 * ms}, coarse.State{BacklogNS: 400 * ms}},
		{"seed 001: 200 ms of work at 0.4 CPU, first of five", coarse.State{}, coarse.Limit{QuotaNS: 40 * ms, PeriodNS: 100 * ms}, 200 * ms, 1,
			coarse.Period{UsedNS: 40 * ms, StoppedNS: 60 * ms, Throttled: true}, coarse.State{BacklogNS: 160 * ms}},
		{"burst pays", coarse.State{SavedNS: 100 * ms}, coarse.Limit{QuotaNS: 200 * ms, PeriodNS: 100 * ms, BurstNS: 100 * ms}, 290 * ms, 8,
			coarse.Period{UsedNS: 290 * ms}, coarse.State{SavedNS: 10 * ms}},
		{"overrun is owed", coarse.State{}, coarse.Limit{QuotaNS: 200 * ms, PeriodNS: 100 * ms, TickNS: 4 * ms}, 400 * ms, 10,
			coarse.Period{UsedNS: 220 * ms, StoppedNS: 78 * ms, Throttled: true}, coarse.State{BacklogNS: 180 * ms, SavedNS: -20 * ms}},
		{"more is owed than a quota", coarse.State{BacklogNS: ms, SavedNS: -250 * ms}, limit, 0, 4,
			coarse.Period{StoppedNS: 100 * ms, Throttled: true}, coarse.State{BacklogNS: ms, SavedNS: -50 * ms}},
		{"an idle period pays too", coarse.State{SavedNS: -250 * ms}, limit, 0, 8, coarse.Period{}, coarse.State{SavedNS: -50 * ms}},
		{"and saves what is left", coarse.State{SavedNS: -30 * ms}, coarse.Limit{QuotaNS: 200 * ms, PeriodNS: 100 * ms, BurstNS: 190 * ms}, 0, 8,
			coarse.Period{}, coarse.State{SavedNS: 170 * ms}},
		{"but no more than the burst", coarse.State{SavedNS: 50 * ms}, coarse.Limit{QuotaNS: 200 * ms, PeriodNS: 100 * ms, BurstNS: 60 * ms}, 0, 8,
			coarse.Period{}, coarse.State{SavedNS: 60 * ms}},
	} {
		s := c.was
		if got := s.Step(&c.limit, c.work, c.width); got != c.want || s != c.is {
			t.Errorf("%s: %+v, then %+v; want %+v, then %+v", c.name, got, s, c.want, c.is)
		}
	}
}

// Never more than quota, burst and what CPUs overrun; nothing of the work is lost.
func TestConservation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := coarse.Limit{QuotaNS: rapid.Int64Range(1, 1000).Draw(t, "quota") * ms, PeriodNS: rapid.Int64Range(1, 1000).Draw(t, "period") * ms}
		l.BurstNS = rapid.Int64Range(0, l.QuotaNS).Draw(t, "burst")
		l.TickNS = rapid.SampledFrom([]int64{0, ms, 4 * ms, 10 * ms}).Draw(t, "tick")
		var s coarse.State
		var arrived, used, most int64
		periods := rapid.IntRange(1, 200).Draw(t, "periods")
		for range periods {
			work := rapid.Int64Range(0, 2000).Draw(t, "work") * ms
			width := int32(rapid.IntRange(1, 64).Draw(t, "width"))
			p := s.Step(&l, work, width)
			arrived, used = arrived+work, used+p.UsedNS
			most = max(most, int64(width))
			if p.UsedNS < 0 || p.StoppedNS < 0 || p.StoppedNS > l.PeriodNS || p.Throttled != (p.StoppedNS > 0) {
				t.Fatalf("%+v", p)
			}
		}
		if used+s.BacklogNS != arrived {
			t.Fatalf("%d arrived, %d used, %d left", arrived, used, s.BacklogNS)
		}
		if bound := l.QuotaNS*int64(periods) + l.BurstNS + most*l.TickNS/2; used > bound {
			t.Fatalf("%d used of at most %d", used, bound)
		}
	})
}

// draw is a random open-loop load: requests in groups, as of a pool that is fed in bursts.
type draw struct {
	cpus, threads int
	quota         time.Duration
	at            []time.Duration
	work          time.Duration
	seconds       int
	demand        []int64
	width         []int32
	load          float64
}

func drawn(r *rand.Rand) draw {
	d := draw{cpus: 16, seconds: 20, threads: 2 + r.IntN(14), quota: time.Duration(50+r.IntN(350)) * time.Millisecond}
	d.work = time.Duration(1+r.IntN(20)) * time.Millisecond
	group := 1 + r.IntN(d.threads)
	d.load = 0.2 + 0.6*r.Float64()
	perSecond := d.load * float64(d.quota) * 10 / float64(d.work)
	gap := float64(group) / perSecond * float64(time.Second)
	periods := d.seconds * 10
	d.demand, d.width = make([]int64, periods), make([]int32, periods)
	for at := time.Duration(0); ; {
		at += time.Duration(r.ExpFloat64() * gap)
		if at >= time.Duration(d.seconds)*time.Second || len(d.at)+group > 9000 {
			break
		}
		for range group {
			d.at = append(d.at, at)
		}
		p := int(at / (100 * time.Millisecond))
		d.demand[p] += int64(d.work) * int64(group)
	}
	// A group runs beside what others of its period want on average.
	for i := range d.width {
		d.width[i] = int32(min(d.threads, group+int(math.Ceil(float64(d.demand[i])/float64(100*ms)))))
	}
	return d
}

func (d *draw) simulated(t testing.TB) coarse.Sum {
	var at strings.Builder
	for i, a := range d.at {
		if i > 0 {
			at.WriteString(", ")
		}
		at.WriteString(a.String())
	}
	s, err := scenario.Parse("drawn", fmt.Appendf(nil, `version: 1
duration: %ds
host: {cpus: %d, hz: 250, kernel: "6.18"}
cgroups: {app: {quota: %v, period: 100ms}}
workloads:
  service: {kind: service, cgroup: app, threads: %d, arrivals: {at: [%s]}, work: %v, queue: 9000}
`, d.seconds, d.cpus, d.quota, d.threads, at.String(), d.work))
	if err != nil {
		t.Fatal(err)
	}
	result, err := simulate.Run(s, simulate.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	c := result.Outcome.Cgroups["app"]
	return coarse.Sum{
		Periods: *c.ActivePeriods, Throttled: c.ThrottledPeriods,
		UsedNS: int64(c.UsageSeconds * 1e9), StoppedNS: int64(*c.StoppedSeconds * 1e9),
	}
}

// TestErrorAgainstSimulate measures what the shortcut costs. The bounds are what docs/reference/simulate.md tells, with room.
func TestErrorAgainstSimulate(t *testing.T) {
	const draws = 60
	r := rand.New(rand.NewPCG(7, 7))
	var throttled, stopped, usage []float64
	for range draws {
		d := drawn(r)
		l := coarse.Limit{QuotaNS: int64(d.quota), PeriodNS: 100 * ms, TickNS: 4 * ms}
		got, want := coarse.Run(&l, d.demand, d.width), d.simulated(t)
		periods := float64(d.seconds * 10)
		throttled = append(throttled, math.Abs(float64(got.Throttled)-float64(want.Throttled))/periods)
		stopped = append(stopped, math.Abs(float64(got.StoppedNS-want.StoppedNS))/float64(d.seconds)/1e9)
		usage = append(usage, math.Abs(float64(got.UsedNS-want.UsedNS))/float64(want.UsedNS))
	}
	for _, f := range []struct {
		name   string
		errors []float64
		mean   float64
	}{
		{"throttled periods of all", throttled, 0.05}, {"stopped time of the time", stopped, 0.05}, {"usage", usage, 0.01},
	} {
		mean, worst := 0.0, 0.0
		for _, e := range f.errors {
			mean += e / draws
			worst = max(worst, e)
		}
		t.Logf("%s: mean error %.3f, worst %.3f over %d draws", f.name, mean, worst, draws)
		if mean > f.mean {
			t.Errorf("%s: mean error %.3f, above %.3f", f.name, mean, f.mean)
		}
	}
}

func TestStepAllocatesNothing(t *testing.T) {
	var s coarse.State
	if n := testing.AllocsPerRun(1000, func() { s.Step(&limit, 300*ms, 8) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkFleet prints container-periods a second on one core, and how many times more that is than what package
// simulate does on the same containers in the same run.
func BenchmarkFleet(b *testing.B) {
	r := rand.New(rand.NewPCG(3, 3))
	d := drawn(r)
	l := coarse.Limit{QuotaNS: int64(d.quota), PeriodNS: 100 * ms, TickNS: 4 * ms}
	begin := time.Now()
	const runs = 5
	for range runs {
		d.simulated(b)
	}
	simulated := runs * float64(len(d.demand)) / time.Since(begin).Seconds()
	b.ResetTimer()
	for b.Loop() {
		coarse.Run(&l, d.demand, d.width)
	}
	rate := float64(b.N) * float64(len(d.demand)) / b.Elapsed().Seconds()
	b.ReportMetric(rate, "container-periods/s")
	b.ReportMetric(rate/simulated, "x-simulate")
}
