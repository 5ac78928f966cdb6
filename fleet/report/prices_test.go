package report

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/demand/store"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

// price is what a remedy needs, in thousandths.
func price(remedy string, low, cpus, high int32) demand.Price {
	return demand.Price{Remedy: remedy, MilliCPUs: &cpus, LowMilliCPUs: &low, HighMilliCPUs: &high, Microseconds: new(int64(19_000))}
}

// priced is a row with a recording of the container's size: the limit could be 3 CPUs, 2 with a burst, in a period of 300 ms too, and
// its threads are none of the library's.
func priced(r demand.Row) demand.Row {
	r.PricedAt, r.PricedOf = new(r.Start.Add(time.Minute)), "requests"
	r.PricedQuantile, r.PricedMicroseconds = new(0.99), new(int64(20_000))
	r.Prices = []demand.Price{price(forecast.Limit, 2800, 3000, 3300), price(forecast.Burst, 1900, 2000, 2200),
		{Remedy: forecast.Budget, Why: "no process is of a language that has the library"}}
	r.LongPrices = []demand.LongPrice{longPrice(300*time.Millisecond, 1970)}
	return r
}

// pricedAs is a row with other prices.
func pricedAs(r demand.Row, prices ...demand.Price) demand.Row {
	r = priced(r)
	r.Prices, r.LongPrices = prices, nil
	return r
}

// longPrice is what a burst in a longer period needs, in thousandths.
func longPrice(period time.Duration, cpus int32) demand.LongPrice {
	return demand.LongPrice{BurstPeriodMicroseconds: period.Microseconds(), MilliCPUs: cpus,
		LowMilliCPUs: new(cpus - 50), HighMilliCPUs: new(cpus + 200)}
}

// Of the periods that the recordings of all containers tell, a burst is priced in the one that needs least.
func TestPricesOfLongerPeriods(t *testing.T) {
	row := func(no int, long ...demand.LongPrice) demand.Row {
		r := priced(rowOf("cart", no, noon, 4, 4))
		r.LongPrices = long
		return r
	}
	second, third := longPrice(time.Second, 1200), longPrice(300*time.Millisecond, 1500)
	for _, c := range []struct {
		rows     []demand.Row
		periodMS float64
		cpus     float64
	}{
		{[]demand.Row{row(0, third, second), row(1, third, second)}, 1000, 1.2},
		{[]demand.Row{row(0, third, second), row(1, third)}, 300, 1.5},
		{[]demand.Row{row(0, third, second), row(1)}, 0, 2},
		{[]demand.Row{row(0, third, second), row(1, longPrice(300*time.Millisecond, 2600), longPrice(time.Second, 1960))}, 0, 2},
	} {
		d, _ := written(t, c.rows...)
		s := serviceOf(t, d, "cart/app")
		i := slices.IndexFunc(s.Prices, func(p view.Price) bool { return p.Remedy == view.Burst })
		if i < 0 || view.Period(s.Prices[i].PeriodMS).Milliseconds() != int64(c.periodMS) || s.Prices[i].CPUs != c.cpus ||
			view.Period(s.BurstPeriodMS).Milliseconds() != int64(c.periodMS) || *s.Remedy != view.Burst {
			t.Errorf("%v: %+v, %+v", c.periodMS, s.Prices, s.BurstPeriodMS)
			continue
		}
		if l := lineOf(t, d, view.Burst, true); view.Period(l.PeriodMS).Milliseconds() != int64(c.periodMS) {
			t.Errorf("%+v", l)
		}
	}
}

// lineOf is the line of the ledger of a remedy, at the same p99 or at the same stops.
func lineOf(t *testing.T, d view.Document, remedy string, priced bool) view.ByRemedy {
	t.Helper()
	for _, l := range d.ByRemedy {
		if l.Remedy == remedy && l.Priced == priced {
			return l
		}
	}
	t.Fatalf("no line of %s in %+v", remedy, d.ByRemedy)
	return view.ByRemedy{}
}

func priceOf(t *testing.T, s view.Service, remedy string) view.Price {
	t.Helper()
	for _, p := range s.Prices {
		if p.Remedy == remedy {
			return p
		}
	}
	t.Fatalf("no price of %s in %+v", remedy, s.Prices)
	return view.Price{}
}

// The report knows every remedy that forecasts price, and what it asks for.
func TestRemediesArePriceable(t *testing.T) {
	var names []string
	for _, r := range view.Remedies {
		names = append(names, r.Name)
		_, onNode := remedy.Find(remedy.Kind(r.Name))
		if r.Asks == "" || onNode != (r.Asks == view.AsksNode) {
			t.Errorf("%s asks for %q, and is of the table of remedies: %v", r.Remedy, r.Asks, onNode)
		}
	}
	priceable := forecast.Priceable()
	if slices.Sort(priceable); !slices.Equal(slices.Sorted(slices.Values(names)), priceable) {
		t.Errorf("%q, forecasts price %q", names, priceable)
	}
}

// Where recordings tell what remedies need, the cheapest one counts, and nothing else; where none does, rows do. Each
// container is in one line.
func TestCheapestRemedy(t *testing.T) {
	var rows []demand.Row
	for no := range 4 {
		rows = append(rows, rowOf("cart", no, noon, 8, 4))
		rows = append(rows, pricedAs(rowOf("web", 10+no, noon, 4, 4), price(forecast.Limit, 2800, 3010, 3300),
			price(forecast.Burst, 1900, 2000, 2200), price(forecast.Pin, 2000, 2000, 3000), price(forecast.Budget, 1850, 1950, 2100)))
	}
	rows = append(rows, rowOf("web", 14, noon, 4, 4)) // others of its service tell what it needs
	hot := price(forecast.Shards, 900, 1000, 1100)
	hot.HighMilliCPUs = nil
	rows = append(rows, pricedAs(rowOf("hot", 20, noon, 2.5, 4), price(forecast.Pin, 3000, 3000, 3000), hot),
		pricedAs(rowOf("hot", 21, noon, 2.5, 4), price(forecast.Pin, 3000, 3000, 3000), hot))
	unknown := rowOf("unknown", 30, noon, 4, 4)
	unknown.LimitCPUs, unknown.LimitScope = new(3.0), "pod"
	rows = append(rows, priced(unknown))
	d, _ := written(t, rows...)
	near(t, "cart, by its rows", serviceOf(t, d, "cart/app").CoresAfter, 4*3.7)
	web := serviceOf(t, d, "web/app")
	near(t, "web", web.CoresAfter, 5*2)
	near(t, "web, low", web.CoresAfterLow, 5*1.9)
	near(t, "web, high", web.CoresAfterHigh, 5*2.2)
	near(t, "its limit alone", web.Limit, 3.1)
	near(t, "that at most", web.LimitHigh, 3.3)
	near(t, "its limit with a burst", web.BurstLimit, 2)
	near(t, "judged", web.JudgedMS, 20)
	near(t, "slower above", web.KneeShare, 104.0/300/3.01)
	if *web.Remedy != view.Burst || web.Priced != 5 || *web.JudgedOf != "requests" || web.Half != nil || web.Double != nil {
		t.Errorf("%+v", web)
	}
	lower, pin := priceOf(t, web, view.Lower), priceOf(t, web, view.Pin)
	near(t, "lower", &lower.CoresAfter, 5*3.1)
	near(t, "rounding", lower.Rounding, 5*0.09)
	near(t, "pin, high", &pin.CoresAfterHigh, 5*3)
	missing(t, "rounding of a pin", pin.Rounding)
	if budget := priceOf(t, web, view.Budget); budget.Asks != view.AsksCode {
		t.Errorf("%+v", budget)
	}
	// A pin of three CPUs is more than it has; a shard of twice the size needs two CPUs, and may need all.
	s := serviceOf(t, d, "hot/app")
	near(t, "hot", s.CoresAfter, 2)
	near(t, "hot, high", s.CoresAfterHigh, 5)
	if *s.Remedy != view.Halved || len(s.Prices) != 1 || s.Prices[0].CPUsHigh != nil {
		t.Errorf("%+v", s)
	}
	total := 4.0 // of the unknown
	for _, l := range d.ByRemedy {
		total += l.CoresAfter
	}
	near(t, "all", &d.Ledger.CoresAfter, total)
	near(t, "all by hand", &d.Ledger.CoresAfter, 4*3.7+10+2+4)
	if l := lineOf(t, d, view.Burst, true); l.Services != 1 || l.Containers != 5 || l.Asks != view.AsksNode ||
		len(d.ByRemedy) != 3 || d.Priced != 7 || d.Containers != 12 || d.ByBounds != 4 {
		t.Errorf("%+v, %d priced of %d, %d by bounds", d.ByRemedy, d.Priced, d.Containers, d.ByBounds)
	}
}

// Prices fit containers with the limit, the CPUs and the remedy of the recording. Of several recordings that of the
// busiest time counts, and nothing is less than the mean of the busiest five minutes. Pods that are gone tell what those
// in their place need.
func TestPricesThatFit(t *testing.T) {
	later := func(slots int) time.Time { return noon.Add(time.Duration(slots) * demand.SlotLength) }
	limit := func(cpus int32) demand.Price { return price(forecast.Limit, cpus, cpus, cpus) }
	busy := pricedAs(rowOf("busy", 1, noon, 4, 4), limit(3000))
	busy.UsedCPUSeconds = new(600.0)
	calm := pricedAs(rowOf("busy", 1, later(1), 4, 4), limit(1000))
	calmest := pricedAs(rowOf("calm", 2, noon, 4, 4), limit(500))
	above := rowOf("calm", 2, later(1), 4, 4)
	above.UsedCPUSeconds, above.WantedCPUSeconds = new(750.0), new(750.0)
	other := pricedAs(rowOf("other", 3, noon, 8, 4), limit(1000))
	gone := pricedAs(rowOf("gone", 4, noon, 4, 4), limit(2000))
	some := pricedAs(rowOf("some", 6, later(1), 4, 4), limit(3000), price(forecast.Burst, 1000, 1000, 1000))
	none := pricedAs(rowOf("some", 7, later(1), 4, 4), limit(2000), demand.Price{Remedy: forecast.Burst, Why: "it is slower than recorded"})
	pinned := rowOf("db", 8, later(1), 6, 4)
	pinned.Remedy, pinned.AllowedCPUs = string(remedy.Pin), new(int32(6))
	pinned = pricedAs(pinned, limit(1000), price(forecast.Pin, 4000, 4000, 4000))
	narrowed := pricedAs(rowOf("narrowed", 9, later(1), 4, 4), limit(1000))
	narrowed.Remedy = string(remedy.Narrow)
	d, _ := written(t, busy, calm, calmest, above, other, rowOf("other", 3, later(1), 4, 4), gone, rowOf("gone", 5, later(1), 4, 4),
		some, none, pinned, narrowed)
	for name, want := range map[string]float64{"busy/app": 3, "calm/app": 2.5, "other/app": 3.7, "gone/app": 2, "some/app": 6,
		"db/app": 4} {
		near(t, name, serviceOf(t, d, name).CoresAfter, want)
	}
	if s := serviceOf(t, d, "other/app"); s.Priced != 0 || len(s.Prices) != 0 {
		t.Errorf("priced under another limit: %+v", s)
	}
	if s := serviceOf(t, d, "narrowed/app"); s.Priced != 0 || s.Unknown != 1 {
		t.Errorf("its recording is of a narrow: %+v", s)
	}
	if s := serviceOf(t, d, "db/app"); *s.Remedy != view.Lower || s.Priced != 1 {
		t.Errorf("fewer exclusive CPUs: %+v", s)
	}
}

// Where a host may fail, what is left carries its load; of half as many containers each carries more.
func TestPricesWithFailover(t *testing.T) {
	var rows []demand.Row
	for no := range 4 {
		rows = append(rows, pricedAs(rowOf("cart", no, noon, 8, 4), price(forecast.Limit, 3000, 3000, 3000),
			price(forecast.Shards, 1000, 1000, 1000)))
	}
	dir := t.TempDir()
	if err := store.Write(dir, rows); err != nil {
		t.Fatal(err)
	}
	d, err := Make(t.Context(), opened(t, 0), Options{Files: filesIn(t, dir), Now: noon.Add(time.Hour), Bound: 0.001, Failover: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := serviceOf(t, d, "cart/app")
	lower, half := priceOf(t, s, view.Lower), priceOf(t, s, view.Halved)
	near(t, "lower", &lower.CoresAfter, 4*6) // on two hosts, of which one is left
	near(t, "of it failover", lower.Failover, 4*3)
	near(t, "half as many", &half.CoresAfter, 2*4)
	near(t, "ledger", d.Ledger.Failover, 4)
}

// Where the recordings were judged by the objective of a service, the report says how far it is from that: with cores to
// spare, or with too few. An older objective's recordings do not count.
func TestObjective(t *testing.T) {
	goal := func(r demand.Row, us int64) demand.Row {
		r.ObjectiveQuantile, r.ObjectiveMicroseconds = new(0.99), &us
		return r
	}
	later := noon.Add(demand.SlotLength)
	limit := func(low, cpus, high int32) demand.Price { return price(forecast.Limit, low, cpus, high) }
	old := goal(pricedAs(rowOf("loose", 0, noon, 4, 4), limit(4000, 4000, 4000)), 5_000)
	old.UsedCPUSeconds = new(600.0)
	old.PricedMicroseconds = new(int64(5_000))
	unsure := limit(4900, 5000, 6000)
	unsure.HighMilliCPUs = nil
	d, _ := written(t, old, goal(pricedAs(rowOf("loose", 0, later, 4, 4), limit(2500, 2600, 3000)), 20_000),
		goal(pricedAs(rowOf("loose", 1, later, 4, 4), limit(2400, 2500, 2600)), 20_000),
		goal(pricedAs(rowOf("tight", 2, later, 4, 4), unsure), 20_000),
		goal(pricedAs(rowOf("other", 3, later, 4, 4), limit(2000, 2000, 2000)), 30_000), // judged by what was recorded
		pricedAs(rowOf("none", 4, later, 4, 4), limit(2000, 2000, 2000)))
	loose := serviceOf(t, d, "loose/app")
	if o := loose.Objective; o == nil || o.Quantile != 0.99 || o.MS != 20 || o.Cores != 5.2 || o.CoresLow != 5 || *o.CoresHigh != 6 ||
		o.Slack != 0.35 {
		t.Errorf("%+v", o)
	}
	near(t, "after", loose.CoresAfter, 5.2)
	tight := serviceOf(t, d, "tight/app")
	if o := tight.Objective; o == nil || o.Cores != 5 || o.CoresLow != 4.9 || o.CoresHigh != nil || o.Slack != -0.25 {
		t.Errorf("%+v", o)
	}
	near(t, "never more than it has", tight.CoresAfter, 4)
	for _, name := range []string{"other/app", "none/app"} {
		if s := serviceOf(t, d, name); s.Objective != nil || s.Priced != 1 {
			t.Errorf("%+v", s)
		}
	}
}

// The ledger is that of plain code, for prices as chance has them.
func TestLedgerOfPlainCode(t *testing.T) {
	const seed = 11
	chance := rand.New(rand.NewPCG(seed, 0))
	order := []string{forecast.Limit, forecast.Burst, forecast.Narrow, forecast.Pools, forecast.Budget}
	var rows []demand.Row
	after, now := map[string]float64{}, 0.0
	saved := map[string]float64{}
	for no := range 60 {
		service, limit := fmt.Sprintf("s%d", no), float64(int(2)<<chance.IntN(3))
		containers := 1 + chance.IntN(5)
		most := map[string]float64{}
		for i := range containers {
			var prices []demand.Price
			for _, name := range order {
				cpus := int32(1000*limit*(0.3+0.7*chance.Float64())) + 1
				prices = append(prices, price(name, cpus, cpus, cpus+int32(chance.IntN(100))))
				most[name] = max(most[name], float64(cpus)/1000)
			}
			rows = append(rows, pricedAs(rowOf(service, 10*no+i, noon, limit, 2), prices...))
		}
		has := limit * float64(containers)
		now += has
		best, by := math.Inf(1), ""
		for _, name := range order {
			needs := float64(containers) * min(limit, math.Ceil(10*most[name]-1e-9)/10)
			if by == "" || needs < best-max(0.05, 0.05*has) {
				best, by = needs, name
			}
		}
		if best >= has-0.05 {
			by = view.Leave
		} else if by == forecast.Limit {
			by = view.Lower
		}
		after[service+"/app"] = best
		saved[by] += has - best
	}
	d, _ := written(t, rows...)
	left := now
	for name, want := range after {
		near(t, name, serviceOf(t, d, name).CoresAfter, want)
		left -= want
	}
	near(t, "now", &d.Ledger.CoresNow, now)
	near(t, "saved", &d.Ledger.Saved, left)
	if d.Priced != d.Containers || len(d.ByRemedy) != len(saved) {
		t.Errorf("%+v, want %v", d.ByRemedy, slices.Sorted(maps.Keys(saved)))
	}
	for by, want := range saved {
		l := lineOf(t, d, by, true)
		near(t, by, &l.Saved, want)
	}
}
