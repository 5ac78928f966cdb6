package fix

import (
	"context"
	"fmt"
	"math"

	"github.com/unthrottle/unthrottle/internal/cure/verdict"
)

// keptRecording waits for a recording of the target that is under way, and returns the one that was kept; nil: there is none
// that may be chosen from, and notKept says why.
func (r *run) keptRecording(ctx context.Context, learns bool) *Learned {
	if !learns || r.env.Kept == nil {
		return nil
	}
	kept, why := r.env.Kept(ctx)
	if r.notKept = why; why != "" {
		return nil
	}
	return &kept
}

// chosenFrom is what the choice rests on. A recording that was kept shows the stops for which it was made, and is longer than
// the one that was just made. It is taken if the container used as much CPU then as it does now. Its runs are not taken: a
// "before" that was picked for its stops would make any change look better.
func (r *run) chosenFrom(made Learned, kept *Learned) Learned {
	if kept == nil || made.Load == nil {
		return made
	}
	switch {
	case kept.Load == nil || kept.Explanation == nil:
		r.notKept = "it cannot be replayed: " + kept.Missing
		return made
	case kept.Explanation.MeanWidth == nil || r.own.UsedCPUs == nil:
		r.notKept = "its use of CPU and that of now cannot be compared"
		return made
	}
	then, now := *kept.Explanation.MeanWidth, *r.own.UsedCPUs
	if math.Abs(then-now) > verdict.SameWork*max(then, now) {
		r.notKept = fmt.Sprintf("it has other work: %.3g CPUs were used then and %.3g now", then, now)
		return made
	}
	made.Explanation, made.Load, made.From = kept.Explanation, kept.Load, kept.From
	return made
}
