package report

import (
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

// A patch makes pods anew with a lower limit: each that runs now is compared with one of those that its service had before,
// whether a remedy came with the limit or not. Replaced pods do not count again, and what no patch lowered is not told.
func TestLoweredLimits(t *testing.T) {
	var rows []demand.Row
	add := func(service string, no int, hours float64, limit, stopped float64, us int64, inForce remedy.Kind, prices ...demand.Price) {
		r := pricedAs(rowOf(service, no, noon.Add(time.Duration(hours*float64(time.Hour))), limit, 2), prices...)
		r.Remedy, r.StoppedHighSeconds, r.PricedMicroseconds = string(inForce), &stopped, &us
		r.RecordedSeconds, r.RequestCount = new(10.0), new(int64(20))
		r.Requests = []demand.Request{{Microseconds: us, Count: 20}}
		rows = append(rows, r)
	}
	for no := range 2 {
		add("cart", no, 0, 4, 30, 20_000, "", price(forecast.Limit, 1900, 2000, 2200))
		add("mail", no, 0, 4, 15, 20_000, "", price(forecast.Burst, 1500, 1500, 1500))
	}
	add("cart", 2, 2, 2.5, 90, 90_000, "") // ended since
	for no, us := range []int64{21_000, 40_000, 20_000} {
		add("cart", 4+no, 26, 2.5, 3, us, "", price(forecast.Limit, 1, 1, 1))
		add("cart", 4+no, 50, 2.5, 6, us, "", price(forecast.Limit, 1, 1, 1))
	}
	for no := range 2 {
		add("mail", 4+no, 49, 2, 200, 90_000, "") // until the agent applies it
		add("mail", 4+no, 50, 2, 1.5, 20_000, remedy.Burst, price(forecast.Burst, 1, 1, 1))
	}
	for no, limit := range []float64{4, 2} { // a service with two limits
		add("two", no, 0, limit, 0, 1, "")
		add("two", 2+no, 50, limit, 0, 1, "")
	}
	add("more", 0, 0, 2, 0, 1, "")
	add("more", 1, 50, 4, 0, 1, "")
	d, _ := written(t, rows...)
	if len(d.Applied) != 2 || d.Applied[0].Remedy != "burst" || d.Applied[1].Remedy != view.Lower {
		t.Fatalf("%+v", d.Applied)
	}
	burst, limit := d.Applied[0], d.Applied[1]
	if limit.Containers != 3 || limit.Promised != 3 || limit.Compared != 3 || limit.Worse != 1 || len(limit.Days) != 2 {
		t.Errorf("%+v", limit)
	}
	near(t, "stopped before", limit.StoppedBefore, 0.1)
	near(t, "stopped after", limit.StoppedAfter, 4.5/300)
	near(t, "cores before", limit.CoresBefore, 12)
	near(t, "cores after", limit.CoresAfter, 7.5)
	near(t, "promised", limit.SavedPromised, 6)
	near(t, "at least", limit.SavedLow, 3*1.8)
	near(t, "at most", limit.SavedHigh, 3*2.1)
	near(t, "came", limit.Came, 4.5)
	near(t, "p99 before", limit.RequestP99Before, 20)
	near(t, "p99 after", limit.RequestP99After, 40)
	near(t, "stopped on the first day", &limit.Days[0].StoppedShare, 0.01)
	near(t, "cores on the second day", limit.Days[1].Cores, 7.5)
	if burst.Containers != 2 || burst.Promised != 2 || burst.Compared != 2 || burst.Worse != 0 {
		t.Errorf("%+v", burst)
	}
	near(t, "burst: cores before", burst.CoresBefore, 8)
	near(t, "burst: stopped before", burst.StoppedBefore, 0.05)
	near(t, "burst: stopped after", burst.StoppedAfter, 0.005)
	near(t, "burst: promised", burst.SavedPromised, 5)
	near(t, "burst: came", burst.Came, 4)
	if len(d.Rollouts) != 2 || d.Rollouts[0].Service != "cart/app" || d.Rollouts[0].Remedy != view.Lower || d.Rollouts[0].Containers != 3 ||
		len(d.Rollouts[0].Lines) != 3 || len(d.Rollouts[1].Lines) != 2 {
		t.Fatalf("%+v", d.Rollouts)
	}
	for _, line := range d.Rollouts[0].Lines {
		if !line.Since.Equal(noon.Add(26 * time.Hour)) {
			t.Errorf("%+v", line)
		}
		near(t, line.Pod, line.StoppedShare[48], 0.01)
	}
}

// A container keeps its limit with each of these remedies, so that a patch that lowers it is
// told of also where the pods that it made have had the remedy ever since.
func TestLimitsLoweredUnderARemedy(t *testing.T) {
	for _, kind := range remedy.KeepingLimit() {
		var rows []demand.Row
		for no := range 2 {
			patched := rowOf("cart", 2+no, noon.Add(50*time.Hour), 2, 1)
			patched.Remedy = string(kind)
			rows = append(rows, rowOf("cart", no, noon, 4, 1), patched)
		}
		d, _ := written(t, rows...)
		if len(d.Applied) != 1 || d.Applied[0].Remedy != string(kind) || d.Applied[0].Containers != 2 || len(d.Rollouts) != 1 {
			t.Errorf("%s: applied %+v, rollouts %+v", kind, d.Applied, d.Rollouts)
		}
	}
}
