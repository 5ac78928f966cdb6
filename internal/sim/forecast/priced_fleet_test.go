package forecast

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/stats"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

var (
	update   = flag.Bool("update", false, "write the prices of docs/results/fleet.md anew")
	services = flag.Int("services", 0, "how many services are drawn and priced; 0: as many as the test needs")
)

const (
	// otherServices is where the seeds of services begin that nothing was made on.
	otherServices = 1_000_000
	// sizingLength is how long an agent records for a container's size, otherTime the time in which the truth is looked for.
	sizingLength, otherTime = 10 * time.Second, 2 * time.Minute
)

// drawLarge draws a large service as a database is, on a host of its size: queries by chance, each in as many parts as half of its CPUs
// at most, and a limit that is a whole number.
func drawLarge(seed uint64) (recorded, later pricedService) {
	r := rand.New(rand.NewPCG(otherServices+seed, 0x6c61726765))
	between := func(low, high float64) float64 { return low + (high-low)*r.Float64() }
	d := pricedService{cpus: 32, threads: 96, limit: float64(6 + r.IntN(11))}
	d.law = pricedLaw{work: between(4, 20), burst: 1 + r.IntN(int(d.limit/2)), shape: r.IntN(shapes)}
	d.law.gap = d.law.work * float64(d.law.burst) / (d.limit * between(0.3, 0.7))
	return d.seen(r, sizingLength, 1), d.seen(r, otherTime/4, 1)
}

// drawOther draws a service as drawPriced does, with work of any shape, and two times of it: what an agent records, and
// another and longer one.
func drawOther(seed uint64) (recorded, later pricedService) {
	d := drawPriced(otherServices + seed)
	d.law.shape = int(seed % shapes)
	r := rand.New(rand.NewPCG(seed, 0x6f74686572))
	return d.seen(r, sizingLength, 1), d.seen(r, otherTime, 1)
}

// otherPrice is what one recording tells of a remedy, and what is true in another time; 0: nothing, or none.
type otherPrice struct {
	limit, told, low, high, true float64
	// keeps: at high the judged latency is no worse than under the limit.
	keeps bool
}

// otherTimesOf prices a service from its recording, and looks for the truth of some remedies.
func (d pricedService) otherTimesOf(t *testing.T, later pricedService, remedies ...string) map[string]otherPrice {
	each := func(n int, do func(int) error) error {
		for i := range n {
			if err := do(i); err != nil {
				return err
			}
		}
		return nil
	}
	f, err := Price(loadOf(t, d.recorded()), true, objective.Objective{}, each)
	if err != nil {
		t.Fatal(err)
	}
	if f.Judged == nil || f.Judged.Kind.From > 0 || f.Judged.Kind.To > 0 {
		t.Fatalf("not all requests are judged: %+v", f.Judged)
	}
	later.quantile = f.Judged.Quantile
	was := later.truly(t, Limit, later.limit)
	by := map[string]otherPrice{}
	for _, p := range f.Priced {
		name := pricedName(p.Remedy)
		if p.Bound == nil || !slices.Contains(remedies, name) { // without a bound it is none of this service
			continue
		}
		o := otherPrice{limit: d.limit}
		o.true, _ = later.truth(t, name)
		line := fmt.Sprintf("%s: truth %.2f of %.2f", name, o.true, d.limit)
		if p.CPUs != nil {
			o.told, o.low = *p.CPUs, *p.Low
			line += fmt.Sprintf(", told %.2f from %.2f", o.told, o.low)
		}
		if p.High != nil {
			o.high = *p.High
			is := later.truly(t, name, o.high)[0]
			o.keeps = is <= was[0]*toleratedP99
			line += fmt.Sprintf(" to %.2f: p%g %.2f of %.2f ms", o.high, 100*later.quantile, is, was[0])
		}
		t.Log(line, p.Why)
		by[name] = o
	}
	return by
}

// bestBurst is a burst in the period that needs least as told, of equal tenths of a CPU the shortest: what a report tells.
const bestBurst = "burst, best period"

func bestPeriod(by map[string]otherPrice) (best otherPrice, known bool) {
	tenths := func(p otherPrice) float64 { return math.Ceil(10 * p.told) }
	for _, period := range append([]time.Duration{0}, LongPeriods...) {
		p, priced := by[pricedName(Remedy{Name: Burst, Period: period})]
		if priced && p.told > 0 && (!known || tenths(p) < tenths(best)) {
			best, known = p, true
		}
	}
	return best, known
}

// coresOf are what a report has as cores after a remedy: never more than there are.
func (o *otherPrice) coresOf(cpus float64) float64 {
	if cpus == 0 {
		return o.limit
	}
	return min(o.limit, cpus)
}

// otherTally counts what a remedy's prices came to.
type otherTally struct {
	remedy                          string
	cores, cpus, sign, keeps, holds count
	off                             []float64
	now, told, low, high, true      float64 // cores of all services
}

// add takes a service in.
func (o *otherTally) add(p otherPrice) {
	const within = 0.1
	back := func(cpus float64) bool { return cpus > 0 && cpus < p.limit*math.Exp2(-0.5/pricedSteps) }
	o.sign.add(back(p.told) == back(p.true))
	o.cores.add(math.Abs(p.coresOf(p.told)/p.coresOf(p.true)-1) <= within)
	if p.told > 0 || p.true > 0 {
		o.cpus.add(p.told > 0 && p.true > 0 && math.Abs(p.told/p.true-1) <= within)
	}
	if p.told > 0 && p.true > 0 {
		o.off = append(o.off, math.Abs(p.told/p.true-1))
		o.holds.add(p.low <= p.true*1.001 && (p.high == 0 || p.true <= p.high*1.001))
	}
	if p.high > 0 {
		o.keeps.add(p.keeps)
	}
	o.now, o.told, o.true = o.now+p.limit, o.told+p.coresOf(p.told), o.true+p.coresOf(p.true)
	o.low, o.high = o.low+p.coresOf(p.low), o.high+p.coresOf(p.high)
}

// row is a line of the table.
func (o *otherTally) row() string {
	return fmt.Sprintf("| `%s` | %d | %s | %s | %s | %s | %s | %.3f |\n", o.remedy, o.sign.of, o.cores.share(), o.cpus.share(), o.sign.share(),
		o.keeps.share(), o.holds.share(), stats.Median(o.off))
}

// back says which share of the cores comes back, by the recordings and in truth.
func (o *otherTally) back() string {
	share := func(cores float64) float64 { return 100 * (1 - cores/o.now) }
	return fmt.Sprintf("%.0f %% (%.0f to %.0f %%), in truth %.0f %%", share(o.told), share(o.high), share(o.low), share(o.true))
}

func (c count) share() string {
	if c.of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100*float64(c.n)/float64(c.of))
}

// pricedFleet prices so many services, and tallies each of some remedies.
func pricedFleet(t *testing.T, n int, draw func(uint64) (recorded, later pricedService), remedies ...string) (tallies []*otherTally) {
	by := make([]map[string]otherPrice, n)
	t.Run("services", func(t *testing.T) {
		for i := range by {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				d, later := draw(uint64(i))
				by[i] = d.otherTimesOf(t, later, remedies...)
			})
		}
	})
	for i := range by {
		if best, ok := bestPeriod(by[i]); ok {
			by[i][bestBurst] = best
		}
	}
	for _, name := range append(slices.Clone(remedies), bestBurst) {
		o := &otherTally{remedy: name}
		for i := range by {
			if is, priced := by[i][name]; priced {
				o.add(is)
			}
		}
		tallies = append(tallies, o)
	}
	return tallies
}

const (
	fleetPage = "../../../docs/results/fleet.md"
	// These begin the parts of the page that are written here.
	pricesTitle    = "\n## The price of a remedy against the simulator\n"
	exclusiveTitle = "\n## From a quota to exclusive CPUs\n"
	periodsTitle   = "\n## A burst in a longer period\n"
)

// writeSection writes a section of the page, in place of the one of that title or after all others.
func writeSection(t *testing.T, title, text string) {
	t.Helper()
	page, err := os.ReadFile(fleetPage)
	if err != nil {
		t.Fatal(err)
	}
	before, old, _ := strings.Cut(string(page), title)
	if _, after, more := strings.Cut(old, "\n## "); more {
		text += "\n## " + after
	}
	if err := os.WriteFile(fleetPage, []byte(before+title+text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// pricesOf is that part: misses first.
func pricesOf(tallies []*otherTally, services int) string {
	slices.SortStableFunc(tallies, func(a, b *otherTally) int { return cmp.Compare(a.keeps.part(), b.keeps.part()) })
	var b strings.Builder
	fmt.Fprintf(&b, `
A recording of %g s, as an agent makes for a container's size, tells the least CPUs of each remedy at no worse p99
([how](../reference/forecast.md#the-least-cpus-of-each-remedy)). The truth is the service itself, simulated event by event for %g minutes of other
arrivals of the same law under each remedy, by halves. %d services are drawn with a limit of 0.6 to 4 CPUs of which 30 to 70 %% are used,
requests in groups of 1 to 12 that come by chance, and work of equal, exponential or log-normal length.

CORES are never more than the limit, as in a [report](../reference/fleet.md#what-the-columns-mean); CPUS are what is told and what is true
also above it. The sign is right if both say that something comes back, or both that nothing does. P99 is kept if with the upper end of the
interval it is at most 5 %% longer than under the limit.

| remedy | services | cores within 10 %% | CPUs within 10 %% | sign right | p99 kept | interval holds the truth | median error of CPUs |
|---|---|---|---|---|---|---|---|
| goal | | 80 %% | | 95 %% | 95 %% | | |
`, sizingLength.Seconds(), otherTime.Minutes(), services)
	for _, o := range tallies {
		b.WriteString(o.row())
	}
	return b.String()
}

// exclusiveOf compares whole CPUs with the quota.
func exclusiveOf(large []*otherTally) string {
	var b strings.Builder
	fmt.Fprintf(&b, `
%d large services, as databases are: a limit of 6 to 16 CPUs, queries by chance, each in up to half as many parts as it has CPUs. Whole CPUs
of their own, at no worse p99 and no worse median, give back of all cores

`, len(large[0].off))
	for _, o := range large {
		fmt.Fprintf(&b, "- `%s`: %s.\n", o.remedy, o.back())
	}
	b.WriteString(`
[Uber reports](https://www.uber.com/blog/avoiding-cpu-throttling-in-a-containerized-environment/) up to 11 % fewer cores by this, at a much
shorter p99 and a slightly longer median. Here 30 to 70 % of a limit are used, so that a lower limit or a burst gives back more than CPUs
of its own.
`)
	return b.String()
}

func (c count) part() float64 { return float64(c.n) / float64(max(1, c.of)) }

// TestPricesOfOtherTimes prices services from what an agent records of them, and looks for the truth in another and longer time. With
// -update it writes how they came out into docs/results/fleet.md.
func TestPricesOfOtherTimes(t *testing.T) {
	n := *services
	if n == 0 {
		n = require.Cases(t, 3, 1)
	}
	tallies := pricedFleet(t, n, drawOther, append(Priceable(), burstsInPeriods()[1:]...)...)
	large := pricedFleet(t, max(1, n/4), drawLarge, Pin, Limit, Burst)
	prices, exclusive := pricesOf(tallies, n), exclusiveOf(large)
	t.Log(prices, exclusive)
	sum := otherTally{}
	for _, o := range tallies {
		for to, of := range map[*count]count{&sum.cores: o.cores, &sum.sign: o.sign, &sum.keeps: o.keeps} {
			to.n, to.of = to.n+of.n, to.of+of.of
		}
	}
	if sum.cores.of < 5*n || sum.cores.part() < 0.8 || sum.sign.part() < 0.9 || sum.keeps.part() < 0.8 {
		t.Errorf("of all remedies: cores within a tenth %v, sign right %v, p99 kept %v", sum.cores, sum.sign, sum.keeps)
	}
	if *update {
		writeSection(t, pricesTitle, prices)
		writeSection(t, exclusiveTitle, exclusive)
	}
}

// burstsInPeriods are the names of a burst in the period of the limit, and in each longer one.
func burstsInPeriods() []string {
	names := []string{Burst}
	for _, period := range LongPeriods {
		names = append(names, pricedName(Remedy{Name: Burst, Period: period}))
	}
	return names
}

// periodsOf says what bursts give back.
func periodsOf(large []*otherTally) string {
	var b strings.Builder
	fmt.Fprintf(&b, `
%d of the large services of the last section, each with a recording of %g s: what a burst of one quota gives back of all cores at no worse
p99 and no worse median, by the recording (90 %% of other times), and by a simulation of the service itself in other times. A report takes
the period in which the limit is least, and of equal tenths of a CPU the shorter one.

| burst | gives back | p99 kept | interval holds the truth |
|---|---|---|---|
`, large[0].sign.of, sizingLength.Seconds())
	for _, o := range large {
		name := o.remedy
		if name == Burst {
			name = "burst, 100ms: before longer periods"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", name, o.back(), o.keeps.share(), o.holds.share())
	}
	return b.String()
}

// TestPricesOfPeriods compares bursts in longer periods with the truth. What is told must not be better than that. With -update it
// writes them into docs/results/fleet.md.
func TestPricesOfPeriods(t *testing.T) {
	large := pricedFleet(t, max(1, *services/4), drawLarge, burstsInPeriods()...)
	part := periodsOf(large)
	t.Log(part)
	first, best := large[0], large[len(large)-1]
	if best.told > first.told || best.told < 0.95*best.true || best.keeps.n < best.keeps.of*9/10 {
		t.Errorf("of %.1f cores %.1f remain with a burst, %.1f in the best period, in truth %.1f", first.now, first.told, best.told, best.true)
	}
	if *update {
		writeSection(t, periodsTitle, part)
	}
}
