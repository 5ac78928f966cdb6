package fix

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/cure/slo"
	"github.com/unthrottle/unthrottle/internal/stats"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
)

// forOthers reports whether the remedy is applied for the sake of the containers beside the target.
func (r *run) forOthers() bool {
	found, _ := remedy.Find(r.plan.Remedy)
	return found.ForOthers
}

// purpose is the plan's, with the time that judging takes at most where the change is on trial.
func (r *run) purpose() txn.Purpose {
	p := r.plan.Purpose()
	if !r.onTrial {
		return p
	}
	p.Trial = 3*r.o.Settle + max(r.o.Window, r.looked) + r.o.LookBack
	if r.judgedByRuns() && r.known != nil && r.known.Forecast != nil {
		p.Trial += moreLooks
	}
	if r.env.Latencies != nil {
		p.Trial += 2 * slo.Limit
	}
	return p
}

// planning is what a fix needs at most, at the start and for each try, beside looking and asking: reading the host, replaying
// a recording, writing.
const planning = time.Minute

// Longest is how long a fix takes at most where it asks no question. Before the tries it may wait for a recording that is
// under way, look, and look for longer twice.
func (o Options) Longest() time.Duration {
	look := max(o.Window, stats.LongestLook)
	try := planning + 3*o.Settle + look + moreLooks + o.LookBack + 3*slo.Limit
	longest := o.Window + 3*look + planning + time.Duration(max(1, o.Tries))*try
	if o.Budget > 0 { // two rounds are made in any case, and each turn waits for a queue to drain
		longest += 2*o.Budget + planning + o.Pause*(o.Budget/(leastVariants*leastTurn))
	}
	return longest
}

// keep ends the trial. A change whose trial cannot be ended is undone.
func (r *run) keep(ctx context.Context) error {
	if !r.onTrial {
		return nil
	}
	ids, err := apply.Keep(ctx, r.env.Apply, r.res.ID)
	switch {
	case errors.As(err, new(*apply.NotOnTrial)):
		r.res.Kept = false
		r.res.StoppedAbove = r.above(r.res.Before)
		return err
	case err != nil:
		return errors.Join(fmt.Errorf("keeping it: %w", err), r.undo(ctx, "it could not be kept"))
	}
	r.res.ID = ids[0]
	return nil
}
