package report

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
)

// price is what a remedy needs, in thousandths.
func price(remedy string, low, cpus, high int32) demand.Price {
	return demand.Price{Remedy: remedy, MilliCPUs: &cpus, LowMilliCPUs: &low, HighMilliCPUs: &high, Microseconds: new(int64(19_000))}
}

// priced is a row with a recording of the container's size: the limit could be 3 CPUs, 2 with a burst, and its threads
// are none of the library's.
func priced(r demand.Row) demand.Row {
	r.PricedAt, r.PricedOf = new(r.Start.Add(time.Minute)), "requests"
	r.PricedQuantile, r.PricedMicroseconds = new(0.99), new(int64(20_000))
	r.Prices = []demand.Price{price(forecast.Limit, 2800, 3000, 3300), price(forecast.Burst, 1900, 2000, 2200),
		{Remedy: forecast.Budget, Why: "no process is of a language that has the library"}}
	return r
}
