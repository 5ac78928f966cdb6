package fix

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/verdict"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/stats"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// propose chooses and plans. Where there is nothing to write the result says why.
func (r *run) propose() error {
	proposal, err := policy.Propose(r.own, r.facts, r.o.Wish, r.known)
	if err != nil {
		return err
	}
	r.res.Proposal, r.res.Why = proposal, proposal.Why
	r.res.Not = append([]policy.Rejected{}, proposal.Not...)
	if r.o.Found != nil {
		if err := r.o.Found(proposal); err != nil {
			return err
		}
	}
	if proposal.NotMeasured {
		return &NotMeasured{errors.New(proposal.Why)}
	}
	if proposal.Plan == nil {
		r.noFinding = true
		switch {
		case len(r.res.Tries) > 0:
			r.res.Result = apply.Result{} // what came of the last try stands: see do
		case !r.res.StoppedAbove:
			r.res.Verdict = verdictNothing
		case proposal.Choice != nil:
			r.res.Verdict = string(proposal.Choice.Answer)
		default:
			r.noFinding = false
			return &NoRemedy{Target: r.o.Target.Name, Why: proposal.Why, Not: proposal.Not}
		}
		return nil
	}
	return r.show(proposal)
}

// show plans the writes of a proposal, and shows both.
func (r *run) show(proposal policy.Proposal) error {
	r.plan = *proposal.Plan
	r.res.Proposal, r.res.Why, r.res.Remedy = proposal, proposal.Why, string(r.plan.Remedy)
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

// mostLooks is how often the time after a change is recorded where one recording does not tell.
const mostLooks = 3

// moreLooks is how long those beside the first take at most: after the change, and without it and with it again.
const moreLooks = (mostLooks - 1 + 2) * stats.LongestLook

// judge looks again and compares.
func (r *run) judge(ctx context.Context) error {
	if err := r.env.Wait(ctx, r.o.Settle); err != nil {
		return err
	}
	since := r.now()
	evidence := verdict.Evidence{Quantile: r.o.Objective.Quantile, Before: r.before.MS}
	if err := r.latenciesAtOnce(ctx, since, &evidence); err != nil {
		return err
	}
	records := r.known != nil && r.known.Forecast != nil // what came of the forecast goes into the journal, whatever judges
	length := r.o.Window
	if records {
		length = max(length, r.looked)
	}
	r.say("looking again for %s", text.Duration(length))
	seen, again, changed, err := r.watchOneLimit(ctx, r.watched(), records, length)
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
			if changed == "" {
				changed = r.writtenByOthers(seen[i])
			}
			continue
		}
		evidence.Neighbours = append(evidence.Neighbours, verdict.Neighbour{Name: seen[i].Container.Name,
			Before: r.neighbour[path], After: policy.Observed(seen[i]), Lends: slices.Contains(r.plan.Lenders, path)})
	}
	j, more := r.judgement(evidence, again)
	for looks := 1; more && looks < mostLooks; looks++ {
		length = min(2*length, stats.LongestLook)
		r.say("%s: looking once more, for %s", j.Why, text.Duration(length))
		longer, err := r.env.Learn(ctx, r.o.Target, length)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || longer.Runs == nil {
			break // the shorter recording is sound
		}
		again = longer
		j, more = r.judgement(evidence, again)
	}
	if j.OtherWork && r.onTrial {
		if j, err = r.offAndOn(ctx, evidence, j, again, length); err != nil {
			return err
		}
	}
	if changed != "" {
		j.Verdict, j.Why = verdict.Unverified, changed+", so that before and after cannot be compared; "+j.Why
	}
	r.res.Judgement = &j
	r.res.ObjectiveMet = r.objectiveMet(j)
	r.res.StoppedAbove = r.above(r.res.After)
	return nil
}

// writtenByOthers says which limit of the target is no longer as this change left it: by a write over ours, or at a level that we
// did not write; "": none.
func (r *run) writtenByOthers(after observe.Observation) string {
	drift, err := apply.Drift(r.env.Apply)
	if err != nil {
		return ""
	}
	for _, d := range drift {
		if d.ID == r.res.ID && !d.Gone {
			return fmt.Sprintf("another program wrote %.60q to %s of %.200q meanwhile", d.Current, d.File, d.Path)
		}
	}
	wrote := map[string]bool{}
	for _, w := range r.res.Writes {
		wrote[w.Path] = true
		if w.Kind == change.KindPodCPU { // by the kubelet, the pod's and the container's
			wrote[r.o.Target.Group.Path] = true
		}
	}
	others := slices.DeleteFunc(slices.Clone(r.own.Levels), func(l cgroup.Level) bool { return wrote[l.Path] })
	return recording.LimitsChanged(r.o.Target.Group.Path, observe.CompareLimits(others, after.Levels))
}

// sameLimit gathers the facts again, since a person may have taken minutes to answer, and refuses a plan of a limit that has
// changed since.
func (r *run) sameLimit(ctx context.Context) error {
	planned := r.facts
	if err := r.lookAround(ctx); err != nil {
		return err
	}
	changed := observe.CompareLimits(policy.LevelsOf(planned, r.own.Levels), policy.LevelsOf(r.facts, r.own.Levels))
	if why := recording.LimitsChanged(r.o.Target.Group.Path, changed); why != "" {
		return &NotMeasured{fmt.Errorf("%s since this was planned: nothing was written; look again", why)}
	}
	if own := r.o.Target.Group.Path; processesIn(planned, own) > 0 && processesIn(r.facts, own) == 0 {
		return &NotMeasured{fmt.Errorf("%s ended: no process is left in its cgroup %.200q, and nothing was kept",
			text.Sanitize(r.o.Target.Name, 128), own)}
	}
	return nil
}

// processesIn counts those at or below a cgroup. A threaded one has none to list, and counts as one.
func processesIn(f hoststate.Facts, path string) (n int) {
	for at, group := range f.Groups {
		switch {
		case !cgroup.Below(at, path):
		case group.Type == "threaded":
			n++
		default:
			n += group.Procs
		}
	}
	return n
}

// watched are the target, those whose CPUs shrink, and who lends it CPUs.
func (r *run) watched() []container.Container {
	shrunk := map[string]bool{r.o.Target.Group.Path: true}
	for _, path := range slices.Concat(r.plan.Moved, r.plan.Lenders) {
		shrunk[path] = true
	}
	var containers []container.Container
	for _, c := range r.o.All {
		if shrunk[c.Group.Path] {
			containers = append(containers, c)
		}
	}
	return containers
}
