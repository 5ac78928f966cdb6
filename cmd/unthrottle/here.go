package main

import (
	"context"
	"fmt"
	"os"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/text"
)

// ofAFile is why a recording's file says nothing about this host.
const ofAFile = "a recording's file does not say whether its container still runs here; name the container instead"

// beside is a look at all containers while one of them is recorded: what fix plans by, for commands that change nothing.
type beside struct {
	h       *cgroup.Host
	target  container.Container
	all     []container.Container
	sampler *observe.Sampler
	first   []observe.Sample
	// used are the CPUs that containers used, by path; seen is what was seen of the target. err says why they are not known.
	used map[string]float64
	seen hoststate.Observed
	err  error
}

// lookBeside begins to look.
func lookBeside(ctx context.Context, h *cgroup.Host, target container.Container, containers []container.Container) *beside {
	b := &beside{h: h, target: target, all: withTarget(containers, target), sampler: observe.NewSampler(h, observe.Options{}),
		used: map[string]float64{}}
	b.first, b.err = b.sampler.Sample(ctx, b.all, nil)
	return b
}

// end ends the look. It is called as soon as the recording ends, so that what this program does afterwards does not count.
func (b *beside) end(ctx context.Context) {
	defer b.sampler.Close()
	if b.err != nil {
		return
	}
	var second []observe.Sample
	if second, b.err = b.sampler.Sample(ctx, b.all, nil); b.err != nil {
		return
	}
	for i := range second {
		if second[i].Gone {
			continue
		}
		o := observe.Delta(&b.first[i], &second[i])
		path := o.Container.Group.Path
		if o.UsedCPUs != nil {
			b.used[path] = *o.UsedCPUs
		}
		if path == b.target.Group.Path {
			b.seen = policy.Observed(o)
		}
	}
}

// choose chooses from the forecast of the container that was recorded as fix does: its own past outcomes move the forecast,
// and what this host cannot do is refused. Of a recording's file (b is nil) neither is known.
func (b *beside) choose(ctx context.Context, made *forecast.Forecast) (*forecast.Forecast, policy.Choice) {
	if b == nil {
		return made, policy.Choose(made, policy.Terms{Unseen: ofAFile})
	}
	made = corrected(made)
	return made, policy.Choose(made, b.terms(ctx, made))
}

// terms are what this host can do, and with which rights.
func (b *beside) terms(ctx context.Context, made *forecast.Forecast) (t policy.Terms) {
	w := writeFlags{stateDir: defaultStateDir()}
	refused, spender, bySystemd, err := b.refused(ctx, w, made)
	if err != nil {
		t.Unseen = err.Error()
		return t
	}
	t.Refused = refused
	if spender != nil {
		t.Notes = append(t.Notes, fmt.Sprintf("No forecast has a cap of the container that spends the quota they share: 'unthrottle fix' tries %q too",
			spender.Name))
	}
	if note := w.whose(os.Geteuid(), false); note != "" {
		t.Notes = append(t.Notes, "What is in force is not known whole: "+note)
	}
	if err := mayWrite(b.h, b.target.Group.Path, bySystemd); err != nil {
		t.Notes = append(t.Notes, "This user cannot apply it: "+err.Error())
	}
	return t
}

// refused are the rows that this host cannot do, and spender a cap of the sibling that spends a common quota (nil: none).
// bySystemd: systemd would write.
func (b *beside) refused(ctx context.Context, w writeFlags, made *forecast.Forecast) (_ map[int]string, spender *policy.Candidate,
	bySystemd bool, err error) {
	if b.err != nil {
		return nil, nil, false, b.err
	}
	env, done, _, err := w.reading(ctx, b.h)
	if err != nil {
		return nil, nil, false, err
	}
	defer done()
	facts, err := w.facts(ctx, b.h, env, b.all, b.used)
	if err != nil {
		return nil, nil, false, err
	}
	if _, there := facts.Groups[b.target.Group.Path]; !there {
		return nil, nil, false, fmt.Errorf("%s is gone", text.Sanitize(b.target.Name, 128))
	}
	here := policy.Here{Facts: facts, Target: b.target, Settings: remedy.Request{Observed: &b.seen}}
	refused, err := here.Refused(made)
	if err != nil {
		return nil, nil, false, err
	}
	spender, err = here.Cap()
	return refused, spender, env.Systemd != nil, err
}
