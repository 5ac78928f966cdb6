package fix

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/stats"
)

// Holdback measures a container with what is in force, and once without it: off takes it back, and on puts it in force again, also after
// ctx has ended. It gives the logarithm of the judged quantile with it less that without it; nil: too few requests came to tell.
func Holdback(ctx context.Context, env Env, o Options, off, on func(context.Context) error) (pair *float64, err error) {
	r := newRun(env, o)
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
	q, ok := stats.Tells(int(float64(len(r.sample(r.runs).TookMs))*length.Seconds()/r.sample(r.runs).Window.Seconds()), r.judged().Quantile)
	if !ok {
		return nil, nil
	}
	with, err := r.tailOf(ctx, length, q)
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
	without, err := r.tailOf(ctx, length, q)
	if err != nil || without == nil {
		return nil, err
	}
	return new(*with - *without), nil
}

// tailOf records the target for so long, and gives the logarithm of a quantile of what is judged, in ms; nil: too few requests came.
func (r *run) tailOf(ctx context.Context, length time.Duration, quantile float64) (*float64, error) {
	learned, err := r.env.Learn(ctx, r.o.Target, length)
	if err != nil {
		return nil, err
	}
	return logTail(slices.Sorted(slices.Values(r.sample(learned.Runs).TookMs)), quantile), nil
}
