package fix

import (
	"context"
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/verdict"
)

// progress is how often a long wait says how much of it is left.
const progress = 5 * time.Second

func (r *run) now() time.Time {
	if r.env.Apply.Now != nil {
		return r.env.Apply.Now()
	}
	return time.Now()
}

// latenciesBefore asks the user's source once before anything is written, for as
// much time as afterwards.
func (r *run) latenciesBefore(ctx context.Context) error {
	if r.env.Latencies == nil || r.asked {
		return nil
	}
	r.asked = true
	r.say("asking the latency source, before")
	var err error
	since := r.now().Add(-max(r.o.Window, r.o.LookBack))
	r.before, err = r.env.Latencies(ctx, since)
	if err == nil && len(r.before.MS) == 0 {
		err = &NotMeasured{fmt.Errorf("the latency source gave nothing for the time since %s", since.UTC().Format(time.RFC3339))}
	}
	quantile, enough := verdict.Quantile(r.before.MS, r.o.Objective.Quantile)
	switch {
	case err != nil:
	case !enough:
		err = &NotMeasured{r.tooFew(len(r.before.MS))}
	case r.o.OnlyIfMissed && r.o.Objective.Met(quantile.Value):
		err = ErrObjectiveMet
	}
	if err != nil {
		return fmt.Errorf("before anything was changed: %w", err)
	}
	return nil
}

// latenciesAtOnce asks a source that declares no look-back right after the change,
// to tell later whether it follows the present. It may have nothing to say yet. Times
// tell that by themselves.
func (r *run) latenciesAtOnce(ctx context.Context, since time.Time, e *verdict.Evidence) error {
	if r.env.Latencies == nil || r.o.LookBack > 0 || r.before.Began != nil {
		return nil
	}
	r.say("asking the latency source, right after")
	if first, err := r.env.Latencies(ctx, since); err == nil {
		e.First = first.MS
	}
	return ctx.Err()
}

// latenciesAfter asks the source for the time since the change, once nothing that
// it declares to look back on is from before it.
func (r *run) latenciesAfter(ctx context.Context, since time.Time, e *verdict.Evidence) error {
	if r.env.Latencies == nil {
		return nil
	}
	for left := since.Add(r.o.LookBack).Sub(r.now()); left > 0; left -= progress {
		r.say("waiting for %v more: the latency source looks back %v", left.Round(time.Second), r.o.LookBack)
		if err := r.env.Wait(ctx, min(left, progress)); err != nil {
			return err
		}
	}
	r.say("asking the latency source, after")
	after, err := r.env.Latencies(ctx, since)
	e.After = after.MS
	if r.before.Began != nil && after.Began != nil {
		e.BeforeAt, e.AfterAt = sinceMs(since, r.before.Began), sinceMs(since, after.Began)
	}
	return err
}

// sinceMs are times as ms since another one.
func sinceMs(from time.Time, times []time.Time) []float64 {
	all := make([]float64, len(times))
	for i, at := range times {
		all[i] = ms(at.Sub(from))
	}
	return all
}
