package fix

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Holdback measures a container with what is in force, and once without it: off takes it back, and on puts it in force again, also after
// ctx has ended. It gives the logarithm of the quantile that the trial was judged by with it less that without it; nil: too few requests
// came to tell, or a recording lost too many events.
func Holdback(ctx context.Context, env Env, o Options, by Measure, off, on func(context.Context) error) (pair *float64, err error) {
	r := newRun(env, o)
	r.by = &by
	if err := r.alone(); err != nil {
		return nil, err
	}
	if err := r.lookAndLearn(ctx); err != nil {
		return nil, err
	}
	if r.runs == nil || r.made() == nil {
		return nil, nil
	}
	length := r.turnLength()
	with, err := r.tailOf(ctx, length, by.Quantile)
	if err != nil || with == nil {
		return nil, err
	}
	if err := off(ctx); err != nil {
		return nil, fmt.Errorf("leaving it alone for a block: %w", err)
	}
	defer func() {
		if failed := on(context.WithoutCancel(ctx)); failed != nil {
			pair, err = nil, errors.Join(err, fmt.Errorf("putting it in force again after a block without it: %w", failed))
		}
	}()
	if err := r.env.Wait(ctx, r.o.Settle); err != nil {
		return nil, err
	}
	without, err := r.tailOf(ctx, length, by.Quantile)
	if err != nil || without == nil {
		return nil, err
	}
	return new(*with - *without), nil
}

// tailOf records the target for so long, and gives the logarithm of a quantile of what is judged, in ms; nil: too few requests came, or
// the recording lost so many events that its latencies mean nothing.
func (r *run) tailOf(ctx context.Context, length time.Duration, quantile float64) (*float64, error) {
	learned, err := r.env.Learn(ctx, r.o.Target, length)
	if err != nil || learned.Runs != nil && learned.Runs.Lost > mostLost {
		return nil, err
	}
	return logTail(slices.Sorted(slices.Values(r.sample(learned.Runs).TookMs)), quantile), nil
}
