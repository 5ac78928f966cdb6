package fix

import (
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/stats"
)

// TooFewLatencies is the error of a latency source that printed too few numbers to tell the objective.
type TooFewLatencies struct {
	Objective objective.Objective
	// Count is how many there are, Need how many the objective takes.
	Count, Need int
	// Lower is the objective with the highest percentile that Count tell; zero: they tell none.
	Lower objective.Objective
	// Longer is how long a look takes that brings enough, in whole seconds; 0: longer than policy.MaxLookBack. LooksBack:
	// the source always looks back, and that is what must be longer.
	Longer    time.Duration
	LooksBack bool
}

func (e *TooFewLatencies) Error() string {
	says := fmt.Sprintf("the latency source printed %d numbers, too few to tell %v: %d are needed", e.Count, e.Objective, e.Need)
	lower, longer := "", "let it look back further (--slo-look-back, look_back)"
	if e.Lower != (objective.Objective{}) {
		lower = fmt.Sprintf("give --slo '%v', which they tell, or ", e.Lower)
	}
	switch {
	case e.Longer > 0 && e.LooksBack:
		longer = fmt.Sprintf("let it look back %v (--slo-look-back %[1]v, look_back)", e.Longer)
	case e.Longer > 0:
		longer = fmt.Sprintf("look for %v (--for %[1]v)", e.Longer)
	}
	return says + "; " + lower + longer
}

// tooFew is the error of a source that printed n numbers about the time since it was asked for.
func (r *run) tooFew(n int) error {
	q := r.o.Objective.Quantile
	e := &TooFewLatencies{Objective: r.o.Objective, Count: n, Need: stats.Need(q), LooksBack: r.o.LookBack > 0}
	if lower, ok := stats.Tells(n, q); ok {
		e.Lower = objective.Objective{Quantile: lower, Bound: r.o.Objective.Bound}
	}
	looked := max(r.o.Window, r.o.LookBack)
	if longer := (looked*time.Duration(e.Need)/time.Duration(n) + time.Second - 1).Truncate(time.Second); longer <= policy.MaxLookBack {
		e.Longer = longer
	}
	return e
}
