package fix

import (
	"context"
	"fmt"
	"slices"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/cure/txn"
	"github.com/unthrottle/unthrottle/internal/cure/txn/apply"
	"github.com/unthrottle/unthrottle/internal/cure/verdict"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/text"
)

// propose looks at all containers, so that the neighbours' figures from before
// are there for every possible neighbour, and plans.
func (r *run) propose(ctx context.Context) error {
	r.say("looking at %s for %v", text.Sanitize(r.o.Target.Name, 128), r.o.Window)
	seen, err := r.env.Observe(ctx, r.o.All, r.o.Window)
	if err != nil {
		return err
	}
	used := map[string]float64{}
	r.neighbour = map[string]hoststate.Observed{}
	var own *observe.Observation
	for i := range seen {
		path := seen[i].Container.Group.Path
		if seen[i].UsedCPUs != nil {
			used[path] = *seen[i].UsedCPUs
		}
		r.neighbour[path] = policy.Observed(seen[i])
		if path == r.o.Target.Group.Path {
			own = &seen[i]
		}
	}
	if own == nil {
		return fmt.Errorf("cgroup %q: vanished while it was looked at", r.o.Target.Group.Path)
	}
	r.res.Before = figures(r.neighbour[r.o.Target.Group.Path])
	r.res.StoppedAbove = r.above(r.res.Before)
	facts, err := r.env.Facts(ctx, r.o.All, used)
	if err != nil {
		return err
	}
	proposal, err := r.proposal(*own, facts)
	if err != nil {
		return err
	}
	r.res.Why = proposal.Why
	r.res.Not = append(r.res.Not, proposal.Not...)
	if proposal.Plan == nil {
		if !r.res.StoppedAbove {
			r.noFinding, r.res.Verdict = true, verdictNothing
			return nil
		}
		return &NoRemedy{Target: r.o.Target.Name, Why: proposal.Why, Not: proposal.Not}
	}
	r.plan = *proposal.Plan
	r.res.Remedy = string(r.plan.Remedy)
	planned, err := apply.Plan(r.env.Apply, r.plan.Purpose(), r.plan.Changes)
	if err != nil {
		return err
	}
	r.take(planned)
	if r.o.Shown != nil {
		return r.o.Shown(proposal, r.res.Result)
	}
	return nil
}

func (r *run) proposal(own observe.Observation, facts hoststate.Facts) (policy.Proposal, error) {
	if !r.o.Plain {
		return policy.Propose(own, facts, r.o.Wish)
	}
	request := r.o.Wish.Request
	observed := policy.Observed(own)
	request.Observed = &observed
	plan, err := remedy.Make(facts, r.o.Target, request)
	if err != nil {
		return policy.Proposal{}, err
	}
	return policy.Proposal{Plan: &plan, Request: request, Why: string(request.Kind) + " was asked for"}, nil
}

// above says whether figures are above the bound; not measured is not above.
func (r *run) above(f *txn.Figures) bool {
	bound := r.o.Wish.Bound
	if bound == 0 {
		bound = policy.DefaultBound
	}
	return f != nil && f.StoppedPerSecondHigh != nil && *f.StoppedPerSecondHigh > bound
}

func figures(o hoststate.Observed) *txn.Figures {
	return &txn.Figures{StoppedPerSecondLow: o.StoppedLow, StoppedPerSecondHigh: o.StoppedHigh, UsedCPUs: o.UsedCPUs}
}

// judge looks again and compares.
func (r *run) judge(ctx context.Context) error {
	if err := r.env.Wait(ctx, r.o.Settle); err != nil {
		return err
	}
	since := r.now()
	evidence := verdict.Evidence{Quantile: r.o.Objective.Quantile, Before: r.before}
	if err := r.latenciesAtOnce(ctx, since, &evidence); err != nil {
		return err
	}
	r.say("looking again for %v", r.o.Window)
	seen, err := r.env.Observe(ctx, r.watched(), r.o.Window)
	if err != nil {
		return err
	}
	if err := r.latenciesAfter(ctx, since, &evidence); err != nil {
		return err
	}
	for i := range seen {
		path := seen[i].Container.Group.Path
		if path == r.o.Target.Group.Path {
			r.res.After = figures(policy.Observed(seen[i]))
			continue
		}
		evidence.Neighbours = append(evidence.Neighbours, verdict.Neighbour{Name: seen[i].Container.Name,
			Before: r.neighbour[path], After: policy.Observed(seen[i]), Lends: slices.Contains(r.plan.Lenders, path)})
	}
	j := verdict.Judge(evidence)
	r.res.Judgement = &j
	if len(evidence.Before) > 0 {
		r.latencyFigures(j)
	}
	r.res.StoppedAbove = r.above(r.res.After)
	return nil
}

// latencyFigures puts the quantiles beside the counters' figures, where they
// have a place there.
func (r *run) latencyFigures(j verdict.Judgement) {
	for _, side := range []struct {
		to   *txn.Figures
		from *verdict.Spread
	}{{r.res.Before, j.Before}, {r.res.After, j.After}} {
		if side.to == nil || side.from == nil {
			continue
		}
		side.to.MaxMs = new(side.from.Longest)
		switch r.o.Objective.Quantile {
		case 0.5:
			side.to.P50Ms = new(side.from.Value)
		case 0.99:
			side.to.P99Ms = new(side.from.Value)
		}
	}
}

// watched are the target, those whose CPUs shrink, and who lends it CPUs.
func (r *run) watched() []container.Container {
	shrunk := map[string]bool{r.o.Target.Group.Path: true}
	for _, path := range slices.Concat(r.plan.Moved, r.plan.Lenders) {
		shrunk[path] = true
	}
	var all []container.Container
	for _, c := range r.o.All {
		if shrunk[c.Group.Path] {
			all = append(all, c)
		}
	}
	return all
}
