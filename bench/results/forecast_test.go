package main

import (
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/experiment/capacity"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
)

// Rows of a forecast that the bench does not measure are not taken for its own.
func TestRemedyOf(t *testing.T) {
	const ms = time.Millisecond
	for want, rows := range map[string][]forecast.Remedy{
		capacity.Quota:   {{Name: forecast.None}},
		capacity.Burst:   {{Name: forecast.Burst, Burst: 100 * ms}},
		capacity.Burst1s: {{Name: forecast.Burst, Burst: 1000 * ms, Period: 1000 * ms}},
		capacity.Period:  {{Name: forecast.Period, Period: capacity.ShortPeriod}},
		capacity.Raise:   {{Name: forecast.Raise, Factor: capacity.Raised}},
		capacity.Weight:  {{Name: forecast.Weight}},
		capacity.Pin:     {{Name: forecast.Pin, CPUs: 1}},
		capacity.Pools:   {{Name: forecast.Pools, CPUs: 1}},
		"": {{Name: forecast.Burst, Burst: 20 * ms, Period: 20 * ms}, {Name: forecast.Burst, Burst: 300 * ms, Period: 300 * ms},
			{Name: forecast.Period, Period: 20 * ms},
			{Name: forecast.Raise, Factor: 2},
			{Name: forecast.Narrow, Credit: 800 * ms}, {Name: forecast.Narrow, Burst: 100 * ms}, {Name: forecast.Narrow}},
	} {
		for _, row := range rows {
			if got := remedyOf(row); got != want {
				t.Errorf("%+v is %q, want %q", row, got, want)
			}
		}
	}
}
