package coarse_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
	"github.com/unthrottle/unthrottle/internal/sim/simulate/coarse"
	"github.com/unthrottle/unthrottle/internal/stats"
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
		{"seed 001: 200 ms of work at 0.4 CPU, first of five", coarse.State{},
			coarse.Limit{QuotaNS: 40 * ms, PeriodNS: 100 * ms}, 200 * ms, 1,
			coarse.Period{UsedNS: 40 * ms, StoppedNS: 60 * ms, Throttled: true}, coarse.State{BacklogNS: 160 * ms}},
		{"burst pays", coarse.State{SavedNS: 100 * ms}, coarse.Limit{QuotaNS: 200 * ms, PeriodNS: 100 * ms, BurstNS: 100 * ms}, 290 * ms, 8,
			coarse.Period{UsedNS: 290 * ms}, coarse.State{SavedNS: 10 * ms}},
		{"overrun is owed", coarse.State{}, coarse.Limit{QuotaNS: 200 * ms, PeriodNS: 100 * ms, TickNS: 4 * ms}, 400 * ms, 10,
			coarse.Period{UsedNS: 220 * ms, StoppedNS: 78 * ms, Throttled: true}, coarse.State{BacklogNS: 180 * ms, SavedNS: -20 * ms}},
		{"more is owed than a quota", coarse.State{BacklogNS: ms, SavedNS: -250 * ms}, limit, 0, 4,
			coarse.Period{StoppedNS: 100 * ms, Throttled: true}, coarse.State{BacklogNS: ms, SavedNS: -50 * ms}},
		{"an idle period pays too", coarse.State{SavedNS: -250 * ms}, limit, 0, 8, coarse.Period{}, coarse.State{SavedNS: -50 * ms}},
		{"and saves what is left", coarse.State{SavedNS: -30 * ms},
			coarse.Limit{QuotaNS: 200 * ms, PeriodNS: 100 * ms, BurstNS: 190 * ms}, 0, 8,
			coarse.Period{}, coarse.State{SavedNS: 170 * ms}},
		{"but no more than the burst", coarse.State{SavedNS: 50 * ms},
			coarse.Limit{QuotaNS: 200 * ms, PeriodNS: 100 * ms, BurstNS: 60 * ms}, 0, 8,
			coarse.Period{}, coarse.State{SavedNS: 60 * ms}},
	} {
		s := c.was
		if got := s.Step(&c.limit, c.work, c.width); got != c.want || s != c.is {
			t.Errorf("%s: %+v, then %+v; want %+v, then %+v", c.name, got, s, c.want, c.is)
		}
	}
}

// A period in parts: 100 ms each second and as much saved, in a tenth of it 190 ms are spent, and the rest of a second finds 10 ms.
// Unused quota is saved once.
func TestStepPart(t *testing.T) {
	l := coarse.Limit{QuotaNS: 100 * ms, PeriodNS: 1000 * ms, BurstNS: 100 * ms}
	s := coarse.State{SavedNS: 500 * ms}
	for at, want := range []coarse.Period{{UsedNS: 190 * ms}, {}, {UsedNS: 10 * ms, StoppedNS: 95 * ms, Throttled: true},
		{StoppedNS: 100 * ms, Throttled: true}} {
		work := []int64{190 * ms, 0, 30 * ms, 0}[at]
		if got := s.StepPart(&l, 10, int64(at), work, 2); got != want {
			t.Errorf("part %d: %+v, want %+v; then %+v", at, got, want, s)
		}
	}
	if got := s.StepPart(&l, 10, 0, 0, 2); got != (coarse.Period{UsedNS: 20 * ms}) || s.SavedNS != 80*ms {
		t.Errorf("the next period: %+v, then %+v", got, s)
	}
	rapid.Check(t, func(t *rapid.T) { // a single part is the period
		l := coarse.Limit{QuotaNS: rapid.Int64Range(1, 300).Draw(t, "quota") * ms, PeriodNS: 100 * ms, TickNS: 4 * ms}
		l.BurstNS = rapid.Int64Range(0, l.QuotaNS).Draw(t, "burst")
		var whole, parts coarse.State
		for range 20 {
			work, width := rapid.Int64Range(0, 500).Draw(t, "work")*ms, int32(rapid.IntRange(1, 8).Draw(t, "width"))
			a, b := whole.Step(&l, work, width), parts.StepPart(&l, 1, 0, work, width)
			if a != b || whole.BacklogNS != parts.BacklogNS || min(l.BurstNS, parts.SavedNS) != whole.SavedNS {
				t.Fatalf("%+v, then %+v; in one part %+v, then %+v", a, whole, b, parts)
			}
		}
	})
}

// Never more than quota, burst and what CPUs overrun; nothing of the work is lost.
func TestConservation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := coarse.Limit{QuotaNS: rapid.Int64Range(1, 1000).Draw(t, "quota") * ms,
			PeriodNS: rapid.Int64Range(1, 1000).Draw(t, "period") * ms}
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

// errors are by how much the period model is off from package simulate, for each draw.
type errors struct {
	load                      []float64 // of the limit
	throttled, stopped, usage []float64
}

// measured simulates the same random containers with both.
func measured(t testing.TB, draws int) (e errors) {
	r := rand.New(rand.NewPCG(7, 7))
	for range draws {
		d := drawn(r)
		l := coarse.Limit{QuotaNS: int64(d.quota), PeriodNS: 100 * ms, TickNS: 4 * ms}
		got, want := coarse.Run(&l, d.demand, d.width), d.simulated(t)
		e.load = append(e.load, d.load)
		e.throttled = append(e.throttled, math.Abs(float64(got.Throttled)-float64(want.Throttled))/float64(d.seconds*10))
		e.stopped = append(e.stopped, math.Abs(float64(got.StoppedNS-want.StoppedNS))/float64(d.seconds)/1e9)
		e.usage = append(e.usage, math.Abs(float64(got.UsedNS-want.UsedNS))/float64(want.UsedNS))
	}
	return e
}

// page is docs/results/coarse.md.
func (e errors) page() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# The period model against the simulator

`+"`internal/sim/simulate/coarse`"+` steps a container through whole periods; `+"`internal/sim/simulate`"+` simulates each event. Both got the same
%d random containers: 20 s, 16 CPUs, a quota of 50 to 400 ms per 100 ms, 2 to 15 threads, work that arrives in groups. The table
shows by how much the period model was off. Generated by `+"`make results-coarse`"+`; a test compares it.

| load, of the limit | containers | figure | median error | mean | worst |
|---|---|---|---|---|---|
`, len(e.load))
	for _, band := range [][2]float64{{0.2, 0.4}, {0.4, 0.6}, {0.6, 0.8}, {0.2, 0.8}} {
		for _, f := range e.figures() {
			var of []float64
			for i, load := range e.load {
				if load >= band[0] && load < band[1] {
					of = append(of, f.errors[i])
				}
			}
			fmt.Fprintf(&b, "| %.1f to %.1f | %d | %s | %.3f | %.3f | %.3f |\n", band[0], band[1], len(of), f.name,
				stats.Median(of), mean(of), slices.Max(of))
		}
	}
	return b.String()
}

// figure is one of the three that are compared, with the most that its error may be on average.
type figure struct {
	name   string
	errors []float64
	most   float64
}

func (e errors) figures() []figure {
	return []figure{
		{"throttled periods, of all periods", e.throttled, 0.05},
		{"stopped time, of the time", e.stopped, 0.05},
		{"CPU time, of what was used", e.usage, 0.01},
	}
}

func mean(of []float64) (sum float64) {
	for _, v := range of {
		sum += v / float64(len(of))
	}
	return sum
}

var update = flag.Bool("update", false, "write docs/results/coarse.md anew")

// TestErrorAgainstSimulate measures the error of the period model, and keeps the page that publishes it.
func TestErrorAgainstSimulate(t *testing.T) {
	const page = "../../../../docs/results/coarse.md"
	e := measured(t, 60)
	for _, f := range e.figures() {
		if m := mean(f.errors); m > f.most {
			t.Errorf("%s: mean error %.3f, above %.3f", f.name, m, f.most)
		}
	}
	if *update {
		if err := os.WriteFile(page, []byte(e.page()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	published, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(published) != e.page() {
		t.Errorf("docs/results/coarse.md is out of date: run make results-coarse; it would read\n%s", e.page())
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
