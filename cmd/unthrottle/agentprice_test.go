package main

import (
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/sim/forecast"
)

// A burst in a longer period is not a price of the burst: older reports know one of each remedy.
func TestPricingOfLongerPeriods(t *testing.T) {
	p := pricingOf(&forecast.Forecast{Priced: []forecast.Priced{
		{Remedy: forecast.Remedy{Name: forecast.Burst}, CPUs: new(2.0), Low: new(1.5)},
		{Remedy: forecast.Remedy{Name: forecast.Burst, Period: 300 * time.Millisecond}, CPUs: new(1.25), Low: new(1.0), High: new(1.5)},
		{Remedy: forecast.Remedy{Name: forecast.Burst, Period: time.Second}, Why: "the recording has fewer than 10 of its periods of 1s"},
	}})
	if len(p.Prices) != 1 || *p.Prices[0].MilliCPUs != 2000 || len(p.Long) != 1 || p.Long[0].BurstPeriodMicroseconds != 300_000 ||
		p.Long[0].MilliCPUs != 1250 || *p.Long[0].LowMilliCPUs != 1000 || *p.Long[0].HighMilliCPUs != 1500 {
		t.Errorf("%+v", p)
	}
}
