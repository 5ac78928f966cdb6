package fix

import (
	"context"
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/verdict"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
)

// offAndOn looks at the container without the change once more, where other work came after it than before, and applies the
// change again. What is seen without it is then between two looks with it: the one whose work is alike is compared. j is the
// verdict so far, which stands where neither is.
//
// A killed process leaves nothing: each part is a transaction of its own, and the second one is on trial as the first was.
func (r *run) offAndOn(ctx context.Context, e verdict.Evidence, j verdict.Judgement, on Learned,
	length time.Duration) (verdict.Judgement, error) {
	r.say("%s: taking it back for %s, to see this work without it", j.Why, text.Duration(length+r.o.Settle))
	back, err := apply.Restore(ctx, r.env.Apply, apply.Selector{IDs: []string{r.res.ID}, Again: true})
	if err != nil {
		return j, fmt.Errorf("taking it back to look without it: %w", err)
	}
	r.res.Kept = false
	writes := append(r.res.Writes, back.Writes...)
	off, err := r.settled(ctx, length)
	if err != nil {
		return j, err
	}
	r.say("applying it again")
	done, err := apply.Apply(ctx, r.env.Apply, r.purpose(), r.plan.Changes)
	if err != nil {
		return j, fmt.Errorf("applying it again: %w", err)
	}
	r.take(done)
	r.res.Writes, r.res.Kept = append(writes, r.res.Writes...), done.ID != ""
	if !r.res.Kept {
		return j, fmt.Errorf("applying it again changed nothing: another program wrote the same meanwhile; see unthrottle status")
	}
	if off.Runs == nil {
		return j, nil // there is nothing to compare with
	}
	later, err := r.settled(ctx, length)
	if err != nil {
		return j, err
	}
	first := r.runs
	r.runs = off.Runs
	for _, with := range []Learned{later, on} {
		if with.Runs == nil {
			continue
		}
		if other, _ := r.judgement(e, with); !other.OtherWork {
			other.Why += "; before is a look without it between two with it, because other work came at first"
			return other, nil
		}
	}
	r.runs = first
	return j, nil
}

// settled records the target for so long, once what was written has settled. A recording that cannot be made has no Runs.
func (r *run) settled(ctx context.Context, length time.Duration) (Learned, error) {
	if err := r.env.Wait(ctx, r.o.Settle); err != nil {
		return Learned{}, err
	}
	learned, err := r.env.Learn(ctx, r.o.Target, length)
	if ctx.Err() != nil {
		return Learned{}, ctx.Err()
	}
	if err != nil {
		return Learned{}, nil // the verdict so far is sound
	}
	return learned, nil
}
