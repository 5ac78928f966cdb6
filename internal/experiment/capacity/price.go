package capacity

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/load/sandbox"
	"github.com/unthrottle/unthrottle/internal/load/workload"
	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/stats"
)

// Price is what each remedy costs: predictability, and the neighbour's work.
type Price struct {
	Load float64 // requests per second, the same for all
	Rows []PriceRow
}

// PriceRow is one remedy.
type PriceRow struct {
	Remedy  string
	Granted float64
	// Empty is p99 in ms without a neighbour. Full is p99 in ms beside a neighbour of
	// the same weight that burns on every CPU it may use.
	Empty, Full []float64
	// Predictability is Full over Empty, by pairs, with its interval: 1 is a
	// service that does not notice its neighbours.
	Predictability *stats.Ratio
	// Neighbour is what the neighbour got done, in rounds per second.
	Neighbour []float64
	// NeighbourRatio is that over what it gets done beside the plain quota.
	NeighbourRatio *stats.Ratio
}

// priceLoad is the load, as a share of what the limit's CPUs can carry.
const priceLoad = 0.5

// priceBeyond samples must lie beyond a p99.
const priceBeyond = beyond

// RunPrice measures what the remedies cost, on the shape of the options.
func RunPrice(ctx context.Context, o Options) (result Price, err error) {
	if o, err = o.filled(); err != nil {
		return result, err
	}
	// The neighbour burns on all CPUs. With a higher weight than all other processes
	// it would starve the generator, which then takes up to a second to start.
	o.Fair = true
	b, cpus, err := open(o)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, b.sandbox.Remove()) }()
	limit := limitCPUs(cpus.Size())
	shape, err := newShape(o.Shape, cpus.Size(), limit)
	if err != nil {
		return result, err
	}
	all, err := variants(o.Remedies, shape, cpus, lastCPUs(cpus, limit), limit)
	if err != nil {
		return result, err
	}
	beside, err := b.sandbox.Group("neighbour")
	if err != nil {
		return result, err
	}
	result.Load = priceLoad * float64(limit) / shape.CPU.Seconds()
	for _, a := range all {
		result.Rows = append(result.Rows, PriceRow{Remedy: a.name, Granted: a.granted})
	}
	for repeat := range o.Repeats {
		for i := range all {
			at := (i + repeat) % len(all)
			o.Progress(Event{Doing: fmt.Sprintf("price of %s, repeat %d of %d", all[at].name, repeat+1, o.Repeats)})
			if err := b.price(ctx, all[at], shape, beside, o, repeat, &result.Rows[at], result.Load); err != nil {
				return result, err
			}
		}
	}
	for i := range result.Rows {
		row := &result.Rows[i]
		if r, ok := stats.Ratios(row.Full, row.Empty, 0); ok {
			row.Predictability = &r
		}
		if r, ok := stats.Ratios(row.Neighbour, result.Rows[0].Neighbour, 0); ok && i > 0 {
			row.NeighbourRatio = &r
		}
	}
	return result, nil
}

// price measures one remedy, without and with the neighbour.
func (b *testbed) price(ctx context.Context, a variant, shape Shape, beside *sandbox.Group, o Options, repeat int,
	row *PriceRow, load float64) error {
	seed := o.Seed + uint64(repeat)
	p99 := func() (float64, error) {
		for try := 0; ; try++ {
			s, err := b.run(ctx, a, shape.Streams, load, a.measured(o.Step), seed)
			if err != nil {
				return 0, err
			}
			if why := s.own.Saturated(); why != "" {
				o.Progress(Event{Doing: fmt.Sprintf("price of %s, repeat %d of %d: again, %s", a.name, repeat+1, o.Repeats, why)})
				if try == o.Patience {
					return 0, &Saturated{why}
				}
				continue
			}
			at, ok := s.service.Latency.Quantile(objective.P99, priceBeyond)
			if !ok {
				return 0, fmt.Errorf("%d requests are too few for a p99: longer steps are needed", s.service.Latency.Count())
			}
			return millis(at), nil
		}
	}
	empty, err := p99()
	if err != nil {
		return err
	}
	// Pinned CPUs are the container's alone.
	cpus := b.sandbox.CPUs().Difference(b.generator)
	if a.name == Pin {
		cpus = cpus.Difference(a.cpus)
	}
	if err := beside.SetCPUs(cpus); err != nil {
		return err
	}
	stop, err := neighbour(b, beside, workload.Spec{Burners: b.sandbox.CPUs().Size(), Sleep: 100 * ms, Deadline: o.tries()})
	if err != nil {
		return err
	}
	full, err := p99()
	work, stopped := stop()
	if err := errors.Join(err, stopped); err != nil {
		return err
	}
	row.Empty, row.Full, row.Neighbour = append(row.Empty, empty), append(row.Full, full), append(row.Neighbour, work)
	return nil
}

// tries is the longest that the tries of one step can take, within what a neighbour can live.
func (o Options) tries() time.Duration {
	return min(workload.MaxDeadline, time.Duration(o.Patience+1)*(max(o.Step, forecast.MeasuredPeriods*bandwidth.MaxPeriod)+warm+slack))
}

// neighbour starts threads that burn; stop ends them and says how many rounds
// per second they have gone.
func neighbour(b *testbed, beside *sandbox.Group, spec workload.Spec) (stop func() (float64, error), err error) {
	p, err := workload.Start(b.exe, spec)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(beside.Attach(p.Pid()), p.Go()); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	got := make(chan []workload.Record)
	go func() {
		var records []workload.Record
		for r := range p.Records() {
			records = append(records, r)
		}
		got <- records
	}()
	return func() (float64, error) {
		err := p.Stop()
		records := <-got
		if len(records) < 2 {
			return 0, errors.Join(err, errors.New("the neighbour did nothing that could be measured"))
		}
		first, last := records[0], records[len(records)-1]
		return float64(last.Work-first.Work) / (last.End() - first.End()).Seconds(), err
	}, nil
}
