package report

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

// Remedies that are priced have the names that rows have for what is in force.
func TestPromisesAreOfRemedies(t *testing.T) {
	for _, r := range []remedy.Kind{remedy.Pin, remedy.Narrow, remedy.Burst} {
		if !slices.Contains(forecast.Priceable(), string(r)) {
			t.Errorf("%s has no price", r)
		}
	}
}

// treatedAs is a container with a remedy from the second hour on, for so many days: with a limit of cpus, stopped for as
// many seconds of each five minutes, and a p99.
type treatedAs struct {
	service             string
	no, days            int
	cpus                float64
	was, stopped        float64
	wasUS, us, requests int64
}

func (a treatedAs) rows(inForce remedy.Kind, prices ...demand.Price) (rows []demand.Row) {
	of := func(at time.Time, limit, stopped float64, us int64) demand.Row {
		r := pricedAs(rowOf(a.service, a.no, at, limit, 4), prices...)
		r.StoppedHighSeconds, r.PricedMicroseconds = &stopped, &us
		r.RecordedSeconds, r.RequestCount = new(10.0), new(a.requests)
		r.Requests = []demand.Request{{Microseconds: us, Count: int32(a.requests)}}
		return r
	}
	calm := of(noon.Add(-time.Hour), 4, a.was, 1)
	calm.UsedCPUSeconds, calm.Prices = new(50.0), []demand.Price{price(string(inForce), 100, 100, 100)}
	rows = append(rows, calm, of(noon, 4, a.was, a.wasUS))
	for day := range a.days {
		r := of(noon.Add(time.Hour+time.Duration(day)*24*time.Hour), a.cpus, a.stopped, a.us)
		if r.Remedy = string(inForce); inForce == remedy.Pin {
			r.AllowedCPUs = new(int32(a.cpus))
		}
		rows = append(rows, r)
	}
	return rows
}

// What came of a remedy stands beside what the recording of the busiest time before it promised, also by day; a container is
// worse that got as much as was promised and is slower than before. Objectives are not what was.
func TestPromisedAndCame(t *testing.T) {
	burst := price(forecast.Burst, 1900, 2010, 2200)
	var rows []demand.Row
	for no, of := range []treatedAs{
		{"cart", 0, 3, 2.1, 30, 3, 20_000, 21_000, 30}, // as promised
		{"cart", 1, 3, 2.1, 30, 6, 20_000, 40_000, 30}, // slower
		{"cart", 2, 2, 1, 30, 6, 20_000, 40_000, 30},   // with fewer CPUs than that
		{"mail", 3, 16, 4, 0, 0, 20_000, 20_000, 1},    // with all it had
	} {
		more := of.rows(remedy.Burst, price(forecast.Limit, 3000, 3000, 3000), burst)
		if no == 3 {
			more[1].ObjectiveQuantile, more[1].ObjectiveMicroseconds = more[1].PricedQuantile, more[1].PricedMicroseconds
		}
		rows = append(rows, more...)
	}
	unpriced := treatedAs{"none", 5, 1, 4, 30, 0, 20_000, 20_000, 30}.rows(remedy.Burst)
	unpriced[0].Prices = nil
	rows = append(rows, unpriced...)
	rows = append(rows, treatedAs{"db", 6, 1, 3, 0, 0, 20_000, 20_000, 30}.rows(remedy.Pin, price(forecast.Pin, 2000, 2000, 3000))...)
	d, _ := written(t, rows...)
	if len(d.Applied) != 2 {
		t.Fatalf("%+v", d.Applied)
	}
	a, pin := d.Applied[0], d.Applied[1]
	near(t, "promised", a.SavedPromised, 4*(4-2.1))
	near(t, "at least", a.SavedLow, 4*(4-2.2))
	near(t, "at most", a.SavedHigh, 4*(4-1.9))
	near(t, "came", a.Came, 2*1.9+3+0)
	near(t, "p99 before", a.RequestP99Before, 20)
	near(t, "p99 after", a.RequestP99After, 40)
	if a.Containers != 5 || a.Promised != 4 || a.Compared != 2 || a.Worse != 1 {
		t.Errorf("%+v", a)
	}
	near(t, "pin, promised", pin.SavedPromised, 2)
	near(t, "pin, at least", pin.SavedLow, 1)
	near(t, "pin, came", pin.Came, 1)
	if pin.Promised != 1 || pin.Compared != 1 || pin.Worse != 0 {
		t.Errorf("%+v", pin)
	}
	if len(a.Days) != view.DaysOfApplied+1 {
		t.Fatalf("%+v", a.Days)
	}
	for i, want := range map[int]view.AppliedDay{
		0:                  {Day: 0, Containers: 5, StoppedShare: 15.0 / 1500, Cores: new(2.1 + 2.1 + 1 + 4 + 4), RequestP99: new(40.0)},
		2:                  {Day: 2, Containers: 3, StoppedShare: 9.0 / 900, Cores: new(2.1 + 2.1 + 4), RequestP99: new(40.0)},
		view.DaysOfApplied: {Day: view.DaysOfApplied, Containers: 1, Cores: new(4.0)}, // two days, of which each has too few requests
	} {
		got := a.Days[i]
		near(t, fmt.Sprint("cores on day ", i), got.Cores, *want.Cores)
		near(t, fmt.Sprint("stopped on day ", i), &got.StoppedShare, want.StoppedShare)
		if want.RequestP99 == nil {
			missing(t, fmt.Sprint("p99 on day ", i), got.RequestP99)
		} else {
			near(t, fmt.Sprint("p99 on day ", i), got.RequestP99, *want.RequestP99)
		}
		if got.Day != want.Day || got.Containers != want.Containers {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

// A burst that came with a longer period is compared with what the rows before told of a burst in that period, and with its price.
func TestPromisedInALongerPeriod(t *testing.T) {
	const period = 300 * time.Millisecond
	before := func() demand.Row {
		r := withLong(withCandidates(pricedAs(rowOf("cart", 0, noon, 4, 8), price(forecast.Burst, 2000, 2000, 2000))))
		r.LongPrices = []demand.LongPrice{longPrice(period, 600)}
		return r
	}
	after := func(slot int, period time.Duration) demand.Row {
		r := withCandidates(rowOf("cart", 0, noon.Add(time.Duration(slot)*demand.SlotLength), 0.5, 8))
		r.Remedy, r.PeriodMicroseconds, r.StoppedHighSeconds = string(remedy.Burst), new(period.Microseconds()), new(3.0)
		return r
	}
	d, _ := written(t, before(), after(1, period))
	a := d.Applied[0]
	near(t, "foretold", a.StoppedForecast, 0.01)
	near(t, "promised", a.SavedPromised, 4-0.6)
	// Of another period nothing is told where no row has it, and a burst in the limit's own has its own price.
	older := before()
	older.LongBursts, older.LongPrices = older.LongBursts[5:], nil
	d, _ = written(t, older, after(1, period))
	missing(t, "foretold of a period that is not known", d.Applied[0].StoppedForecast)
	missing(t, "promised of a period that is not known", d.Applied[0].SavedPromised)
	d, _ = written(t, before(), after(1, 100*time.Millisecond))
	near(t, "promised of its own period", d.Applied[0].SavedPromised, 4-2)
	// What a container is now is told by its rows with the period of now.
	row := func(slot, from int, period time.Duration) demand.Row {
		r := after(slot, period)
		r.OwnLimitCPUs, r.LimitCPUs, r.CandidateFrom, r.Candidates = new(4.0), new(4.0), new(int32(from)), nil
		return r
	}
	d, _ = written(t, row(1, 0, 100*time.Millisecond), row(2, -4, period), row(3, -4, period))
	near(t, "limit by the period of now", serviceOf(t, d, "cart/app").BurstLimit, 0.5)
}

// A container is worse too that its quota stops for more than the periods before foretold of a limit at the model's bound.
func TestWorseThanForetold(t *testing.T) {
	var rows []demand.Row
	for no, stopped := range []float64{0, 100} {
		before, after := withCandidates(rowOf("cart", no, noon, 1, 8)), rowOf("cart", no, noon.Add(demand.SlotLength), 2, 8)
		if after.Remedy = string(remedy.Raise); stopped > 0 {
			after.StoppedHighSeconds = &stopped
		}
		rows = append(rows, before, after)
	}
	d, _ := written(t, rows...)
	if a := d.Applied[0]; a.Compared != 2 || a.Worse != 1 || a.Promised != 0 || a.SavedPromised != nil || a.Came != nil {
		t.Errorf("%+v", a)
	}
}

// The rollouts are of the services with a remedy in force in most containers, and of the containers stopped most before, each
// with its stopped share by half hours: both are bounded. Where those have ended that were there before, they are drawn.
func TestRollouts(t *testing.T) {
	var rows []demand.Row
	for service := range mostRollouts + 2 {
		containers := 1
		if service == 7 {
			containers = mostRolloutLines + 3
		}
		for no := range containers {
			for _, slot := range []int{-50, -48, -1, 0, 47, 48} {
				r := rowOf(fmt.Sprintf("s%02d", service), 20*service+no, noon.Add(time.Duration(slot)*rolloutSlot), 4, 4)
				if r.StoppedHighSeconds = new(3 * float64(no)); slot >= 0 {
					r.Remedy, r.StoppedHighSeconds = string(remedy.Burst), new(0.3)
				}
				if service == 7 && no == containers-1 { // was recorded
					us := int64(40_000)
					if slot >= 0 {
						us = 5000
					}
					r.RecordedSeconds, r.RequestCount = new(10.0), new(int64(30))
					r.Requests = []demand.Request{{Microseconds: us, Count: 30}}
				}
				rows = append(rows, r)
			}
		}
	}
	for slot := range 49 { // it ended with it, and another came with it
		r := rowOf("gone", 900, noon.Add(time.Duration(slot)*rolloutSlot), 4, 4)
		if slot > 1 {
			r = rowOf("gone", 902, r.Start, 4, 4)
		}
		if slot > 0 {
			r.Remedy = string(remedy.Burst)
		}
		rows = append(rows, r)
	}
	r := rowOf("gone", 904, noon.Add(24*time.Hour), 4, 4)
	r.Remedy = string(remedy.Burst)
	rows = append(rows, r)
	d, _ := written(t, rows...)
	if len(d.Rollouts) != mostRollouts {
		t.Fatalf("%d rollouts", len(d.Rollouts))
	}
	first := d.Rollouts[0]
	if first.Service != "s07/app" || first.Remedy != "burst" || first.Containers != mostRolloutLines+3 ||
		len(first.Lines) != mostRolloutLines || d.Rollouts[2].Service != "s00/app" || len(d.Rollouts[2].Lines) != 1 {
		t.Errorf("%+v", first)
	}
	if gone := d.Rollouts[1]; gone.Service != "gone/app" || gone.Containers != 2 || len(gone.Lines) != 1 || gone.Lines[0].Pod != "gone-900" {
		t.Errorf("%+v", gone)
	}
	line := first.Lines[0] // of the one stopped most
	if line.Pod != "s07-150" || line.Host != "eu1/n0" || !line.Since.Equal(noon) || len(line.StoppedShare) != 2*rolloutSlots {
		t.Fatalf("%+v", line)
	}
	near(t, "p99 before", line.RequestP99Before, 40)
	near(t, "p99 with it", line.RequestP99After, 5)
	missing(t, "p99 of one that was not recorded", first.Lines[1].RequestP99Before)
	for i, share := range line.StoppedShare {
		switch i {
		case 0, 47:
			near(t, fmt.Sprint("before, ", i), share, 0.1)
		case 48, 95:
			near(t, fmt.Sprint("with it, ", i), share, 0.001)
		default:
			missing(t, fmt.Sprint("no row, ", i), share)
		}
	}
}
