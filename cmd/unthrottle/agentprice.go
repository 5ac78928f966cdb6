package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/infile"
	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
)

// priceFile finds the least CPUs of each remedy from a recording, for the rows of the fleet.
func priceFile(
	ctx context.Context, name string, o objective.Objective, each func(n int, do func(i int) error) error,
) (demand.Pricing, error) {
	file, err := infile.Open(ctx, name)
	if err != nil {
		return demand.Pricing{}, err
	}
	defer file.Close()
	l, err := readLoad(file, name)
	if err != nil {
		return demand.Pricing{}, err
	}
	f, err := forecast.Price(l, schedExt().Can, o, each)
	if err != nil {
		return demand.Pricing{}, err
	}
	if figure := f.Check.Failed(); figure != "" {
		return demand.Pricing{}, fmt.Errorf("the replay of its recording differs from it in %s", figure)
	}
	return pricingOf(f), nil
}

// pricingOf is what a forecast tells, as rows have it.
func pricingOf(f *forecast.Forecast) demand.Pricing {
	p := demand.Pricing{Recorded: f.Recorded}
	if j := f.Judged; j != nil {
		if p.Of, p.Quantile = j.Pool, j.Quantile; j.Of == forecast.OfRequests {
			p.Of = j.Of
		}
	}
	thousandths := func(cpus *float64) *int32 {
		if cpus == nil {
			return nil
		}
		return new(int32(math.Ceil(*cpus * 1000)))
	}
	for _, of := range f.Priced {
		if of.Bound != nil {
			p.Bound = time.Duration(math.Round(*of.Bound*1000)) * time.Microsecond
		}
		if of.Remedy.Period > 0 {
			if of.CPUs != nil {
				p.Long = append(p.Long, demand.LongPrice{BurstPeriodMicroseconds: of.Remedy.Period.Microseconds(),
					MilliCPUs: *thousandths(of.CPUs), LowMilliCPUs: thousandths(of.Low), HighMilliCPUs: thousandths(of.High)})
			}
			continue
		}
		price := demand.Price{Remedy: of.Remedy.Name, MilliCPUs: thousandths(of.CPUs), LowMilliCPUs: thousandths(of.Low),
			HighMilliCPUs: thousandths(of.High), Why: of.Why}
		if of.Judged != nil {
			price.Microseconds = new(int64(*of.Judged * 1000))
		}
		p.Prices = append(p.Prices, price)
	}
	return p
}
