package fix

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/trial"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/stats"
)

// Blocks are the turns of a trial that somebody else spreads over hours: one at a time, and what they come to is not decided here.
type Blocks struct {
	r  *run
	t  *turns
	by Measure
}

// Measure is what blocks are compared by: the same in all of a trial and after it, also where another process goes on.
type Measure struct {
	// Judged are the requests or the pool, Quantile the one of theirs that so many as come in two blocks tell.
	Judged   forecast.Judged `json:"judged"`
	Quantile float64         `json:"quantile"`
	// UsualMs is that quantile when the container was looked at first.
	UsualMs float64 `json:"usual_ms"`
}

// MayTellLater tells whether a later look may find what one by Spread did not: the hour was calm, or the host so full that no forecast came
// to its end.
func MayTellLater(err error) bool {
	return errors.As(err, new(*NoRemedy)) || errors.As(err, new(*NotMeasured)) || errors.As(err, new(*forecast.TooSlow))
}

// Spread looks at a container as Run does, and prepares what may be tried. by is what a trial that goes on is judged by; nil: a new one.
// The error is a [NoRemedy] where nothing can be tried in turns, and a [NotMeasured] where nothing would judge.
func Spread(ctx context.Context, env Env, o Options, by *Measure) (*Blocks, error) {
	r := newRun(env, o)
	r.onTrial, r.by = true, by
	if err := r.recover(ctx); err != nil {
		return nil, err
	}
	if err := r.alone(); err != nil {
		return nil, err
	}
	if err := r.lookAndLearn(ctx); err != nil {
		return nil, err
	}
	if !r.trials() {
		if !r.res.StoppedAbove {
			return nil, &NoRemedy{Target: o.Target.Name, Why: "it is hardly stopped, and no remedy at equal CPU is certain to halve its latency"}
		}
		return nil, &NotMeasured{fmt.Errorf("%q: %d requests came while it was recorded, and a trial needs %d", o.Target.Name,
			len(r.sample(r.runs).TookMs), leastSeen)}
	}
	if by == nil && r.runs != nil && r.runs.Lost > mostLost { // all that comes would be measured by it
		return nil, &NotMeasured{fmt.Errorf("%q: the recording lost %.2g events for each one that it has, so that its latencies mean "+
			"nothing", o.Target.Name, r.runs.Lost)}
	}
	t, why, err := r.planTurns()
	if err != nil {
		return nil, err
	}
	if t == nil {
		return nil, &NoRemedy{Target: o.Target.Name, Why: why}
	}
	t.spread = true
	b := &Blocks{r: r, t: t}
	if by != nil {
		b.by = *by
		return b, nil
	}
	b.by = Measure{r.judged(), t.quantile, stats.Rank(slices.Sorted(slices.Values(r.sample(r.runs).TookMs)), t.quantile)}
	return b, nil
}

// Measure is what blocks are compared by.
func (b *Blocks) Measure() Measure { return b.by }

// Names are those of the variants beside leaving the container, which is variant 0.
func (b *Blocks) Names() (names []string) {
	for _, c := range b.t.candidates {
		names = append(names, c.Name)
	}
	return names
}

// Lasts is how long a block takes on average.
func (b *Blocks) Lasts() time.Duration { return b.t.meanTurn() }

// Used is what the container used when it was looked at first, in CPUs; 0: not measured.
func (b *Blocks) Used() float64 { return b.r.res.Before.Used() }

// Shown is what one block showed.
type Shown struct {
	// LogTail is the logarithm of the judged quantile in ms; nil: too few requests came.
	LogTail *float64
	// Requests is how many came, Slow how many took longer than twice the usual quantile.
	Requests, Slow int
	// Ended is why the variant is not tried again, as where a request took far longer than any before; "": it is.
	Ended string
	// Refused is why the variant cannot be applied; "": it can.
	Refused string
}

// Block puts a variant in force, measures it, and takes it back, also after ctx has ended. Variant 0 is leaving the container as it is.
func (b *Blocks) Block(ctx context.Context, v int) (s Shown, took time.Duration, err error) {
	if err := b.r.alone(); err != nil {
		return s, 0, err
	}
	before := b.t.used
	b.t.last = trial.Measured{}
	b.t.rounds++
	err = b.t.turn(ctx, v)
	took = b.t.used - before
	if err != nil {
		return s, took, err
	}
	m := b.t.last
	sorted := slices.Sorted(slices.Values(m.Judged.TookMs))
	s.Requests, s.Ended = len(sorted), b.ended(v, m)
	for _, ms := range sorted {
		if ms > 2*b.by.UsualMs {
			s.Slow++
		}
	}
	if m.Ended == "" {
		s.LogTail = logTail(sorted, b.t.quantile)
	}
	if m.Judged.Window == 0 && v > 0 {
		s.Refused = b.t.of.Out(v)
	}
	return s, took, nil
}

// ended is why a variant is not tried again after a block; "": it is. After one short look that is far worse it is looked at once more.
func (b *Blocks) ended(v int, m trial.Measured) string {
	if m.Late == 0 && b.t.of.Out(v) == "" {
		return ""
	}
	return m.Ended
}

// logTail is the logarithm of a quantile of latencies in ms, in ascending order; nil: so few tell none.
func logTail(sorted []float64, quantile float64) *float64 {
	if len(sorted) < leastSeen {
		return nil
	}
	if ms := stats.Rank(sorted, quantile); ms > 0 {
		return new(math.Log(ms))
	}
	return nil
}

// Keep leaves a variant in force, for a reason.
func (b *Blocks) Keep(ctx context.Context, v int, why string) (Result, error) {
	if v <= 0 || v > len(b.t.candidates) {
		return b.r.res, fmt.Errorf("variant %d of %d: there is none", v, len(b.t.candidates))
	}
	if err := b.r.alone(); err != nil {
		return b.r.res, err
	}
	if err := b.r.sameLimit(ctx); err != nil {
		return b.r.res, err
	}
	b.r.res.Before = b.t.figures(0)
	err := b.t.keep(ctx, v, why)
	return b.r.res, err
}

// Forget ends what systemd keeps of the blocks, also after ctx has ended.
func (b *Blocks) Forget(ctx context.Context) { b.t.forget(ctx) }
