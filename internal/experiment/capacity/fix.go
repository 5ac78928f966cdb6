package capacity

import (
	"context"
	"fmt"
	"slices"
)

// chooseFix settles the variant Fix, if there is one: it searches the load that the plain quota carries, and lets Choose
// record it at recordedShare of that, as a user would who sees stops under an ordinary load.
func (r *run) chooseFix(ctx context.Context) error {
	at := slices.IndexFunc(r.variants, func(a variant) bool { return a.name == Fix })
	if at < 0 {
		return nil
	}
	quota := r.variants[0]
	s := firstSearch(r.capacity(quota), r.o.Steps)
	for load, more := s.next(); more; load, more = s.next() {
		done, err := r.step(ctx, quota, load, r.o.Step, r.seed(0), fmt.Sprintf("the load that fix sees, %.0f/s", load))
		if err != nil {
			return err
		}
		s.note(load, r.o.Objective.judge(done.service) == "")
	}
	if s.met == 0 {
		return &Unmet{fmt.Sprintf("remedy %s: no load met the objective under the plain quota, so that there is none "+
			"to record; try a looser one", Fix)}
	}
	var choice func(context.Context) (Chosen, error)
	b := r.testbed
	b.meanwhile = func(ctx context.Context) (err error) {
		choice, err = r.o.Choose(ctx, b.group.At(), recordedFor)
		return err
	}
	defer func() { b.meanwhile = nil }()
	if _, err := r.step(ctx, quota, recordedShare*s.met, recordedFor+recordedMore, r.seed(300), "recording for fix"); err != nil {
		return err
	}
	chosen, err := choice(ctx)
	if err != nil {
		return fmt.Errorf("remedy %s: %w", Fix, err)
	}
	r.variants[at] = r.variants[at].with(chosen)
	r.notes = append(r.notes, fmt.Sprintf("%s chose %s", Fix, chosen.Name))
	return nil
}

// with is a variant under what was chosen.
func (a variant) with(c Chosen) variant {
	a.limit = c.Limit
	if c.CPUs > 0 && c.CPUs < a.cpus.Size() {
		a.cpus = lastCPUs(a.cpus, c.CPUs)
	}
	if a.granted = float64(a.cpus.Size()); c.Limit.Limited() {
		if limit, ok := c.Limit.Bound(); ok {
			a.granted = min(a.granted, limit)
		}
	}
	return a
}
