package fix

import (
	"context"
	"fmt"
	"math"

	"github.com/unthrottle/unthrottle/internal/cure/verdict"
	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// earlierRecording waits for a recording of the target that is under way, and returns the one that there is; nil: none may be
// chosen from, and notEarlier says why.
func (r *run) earlierRecording(ctx context.Context, learns bool) *Learned {
	if !learns || r.env.Earlier == nil {
		return nil
	}
	earlier, why := r.env.Earlier(ctx)
	if r.notEarlier = why; why != "" {
		return nil
	}
	return &earlier
}

// chosenFrom is what the choice rests on. An earlier recording shows the stops for which it was made, and is longer than the
// one that was just made. It is taken if the container used as much CPU then as it does now. Its runs are not taken: a
// "before" that was picked for its stops would make any change look better.
func (r *run) chosenFrom(made Learned, earlier *Learned) Learned {
	if earlier == nil || made.Load == nil {
		return made
	}
	switch {
	case earlier.Load == nil || earlier.Explanation == nil:
		r.notEarlier = "it cannot be replayed: " + earlier.Missing
		return made
	case r.otherLimit(earlier, made) != "":
		r.notEarlier = r.otherLimit(earlier, made) + " since then"
		return made
	case earlier.Explanation.MeanWidth == nil || r.own.UsedCPUs == nil:
		r.notEarlier = "its use of CPU and that of now cannot be compared"
		return made
	}
	then, now := *earlier.Explanation.MeanWidth, *r.own.UsedCPUs
	if math.Abs(then-now) > verdict.SameWork*max(then, now) {
		r.notEarlier = fmt.Sprintf("it has other work: %.3g CPUs were used then and %.3g now", then, now)
		return made
	}
	made.Explanation, made.Load, made.From = earlier.Explanation, earlier.Load, earlier.From
	return made
}

// otherLimit says which limit differs between two recordings of the target; "": none does.
func (r *run) otherLimit(earlier *Learned, made Learned) string {
	if made.Explanation == nil {
		return ""
	}
	return recording.LimitsChanged(r.o.Target.Group.Path, recording.CompareLimits(earlier.Explanation.Levels, made.Explanation.Levels))
}
