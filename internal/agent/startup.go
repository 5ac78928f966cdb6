package agent

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/fix"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
)

const (
	// startTries is how often a start is tried, as the kubelet may not know the container yet. The tries are roundsBetweenTries apart, so
	// that all of them come while the agent looks after the newcomer.
	startTries         = 3
	roundsBetweenTries = newcomerRounds / startTries
	// startLimit is what one may take: a kubelet has half a minute, and as long to take it back.
	startLimit = 2 * time.Minute
)

// triedStart is what was tried for the start of one container.
type triedStart struct {
	tries int
	next  time.Time // not before
}

// starts ends what is in force for containers that have started, and gives the next starting one what its rule says,
// one at a time. It is on trial while it lasts, so that what comes after this process undoes it. Of the acting
// goroutine alone.
func (a *agent) starts(ctx context.Context, newcomers bool) {
	if a.Rules.Mode != policy.Apply || !slices.ContainsFunc(a.Rules.Rules,
		func(r policy.Rule) bool { return r.Startup.Remedy != "" }) {
		return
	}
	held, err := a.held()
	if err != nil || slices.ContainsFunc(held, func(f txn.InForce) bool { return f.Unfinished }) {
		return // it is told, or being written
	}
	starting := slices.ContainsFunc(held, func(f txn.InForce) bool { return f.Parameters[remedy.ParamStartup] != "" })
	if !newcomers && !starting {
		return
	}
	containers, err := a.List()
	if err != nil {
		a.Log.Warn("containers cannot be listed", "error", err)
		return
	}
	// A container that starts again has its path again, and another cgroup.
	there, ids := make(map[string]container.Container, len(containers)), make(map[uint64]bool, len(containers))
	for _, c := range containers {
		there[c.Group.Path] = c
		ids[a.cgroupOf(c)] = true
	}
	maps.DeleteFunc(a.startsTried, func(id uint64, _ triedStart) bool { return !ids[id] })
	drift, err := apply.Drift(a.Env)
	if err != nil {
		a.Log.Warn("drift cannot be told", "error", err)
		return
	}
	inForce := map[string]bool{}
	for _, f := range held {
		anew := slices.ContainsFunc(drift, func(d txn.DriftItem) bool { return d.Gone && d.ID == f.ID && d.Path == f.Target })
		if f.Parameters[remedy.ParamStartup] != "" && (anew || a.started(ctx, f, there[f.Target])) {
			a.endStart(ctx, f)
		}
		if !anew {
			inForce[f.Target] = true
		}
	}
	for _, c := range containers {
		id := a.cgroupOf(c)
		if rule := a.startRule(c, id); rule != nil && !inForce[c.Group.Path] && len(inForce) < a.Rules.Budget.Containers {
			defer a.resume(a.busy("a start of "+boundedPath(c.Group.Path), startLimit))
			a.start(ctx, c, id, containers, rule.Startup)
			a.signal() // the next one; this one, if it failed, waits for its next try
			return
		}
	}
}

// cgroupOf tells a container's cgroup from others that had its path before; 0: it is gone.
func (a *agent) cgroupOf(c container.Container) uint64 {
	id, err := a.Direct.ID(cgroup.CPU, c.Group.Path)
	if err != nil {
		return 0
	}
	return id
}

// startRule is the rule of a container that starts and gets something for it; nil: it does not, or it was tried.
func (a *agent) startRule(c container.Container, id uint64) *policy.Rule {
	if tried := a.startsTried[id]; id == 0 || tried.tries >= startTries || a.time().Before(tried.next) {
		return nil
	}
	rule := a.Rules.Effective(c, a.chooser.pods.pod(c.ID)).Rule
	if rule == nil || rule.Leave || rule.Observes(a.time()) || rule.Startup.Remedy == "" {
		return nil
	}
	if age, ok := a.Age(c); !ok || age >= rule.Startup.Most {
		if ok {
			a.startsTried[id] = triedStart{tries: startTries} // it will not be younger
		}
		return nil
	}
	return rule
}

// start gives one container what it is to have. One that is ready gets nothing: an agent before this one saw its start.
func (a *agent) start(ctx context.Context, c container.Container, id uint64, all []container.Container, s policy.Startup) {
	log := a.Log.With("container", text.Sanitize(c.Name, 128), "remedy", s.Remedy)
	a.startsTried[id] = triedStart{a.startsTried[id].tries + 1, a.time().Add(roundsBetweenTries * a.Rules.Interval)}
	pod := fix.PodOf(ctx, a.Env.Pods, c)
	if ready(pod, c) {
		a.startsTried[id] = triedStart{tries: startTries}
		return
	}
	facts, err := a.Facts(ctx, all, map[string]float64{})
	if err != nil {
		log.Warn("a start cannot be planned", "error", err)
		return
	}
	facts.Pod = pod
	plan, err := remedy.Make(facts, c, remedy.Request{Kind: s.Remedy, Starting: s.Most})
	if err == nil {
		purpose := plan.Purpose()
		purpose.Trial = s.Most
		_, err = apply.Apply(ctx, a.Env, purpose, plan.Changes)
	}
	if err != nil {
		log.Warn("nothing is done for its start", "why", err)
		return
	}
	a.startsTried[id] = triedStart{tries: startTries}
	log.Info("in force while it starts", "most", s.Most)
}

// started tells whether a container is ready, or has had what it gets for long enough.
func (a *agent) started(ctx context.Context, f txn.InForce, c container.Container) bool {
	most, err := time.ParseDuration(f.Parameters[remedy.ParamStartup])
	had := a.time().Sub(f.Since)
	if err != nil || had < 0 || had >= most { // below 0: the clock was set back, so that nothing tells for how long it had it
		return true
	}
	return ready(fix.PodOf(ctx, a.Env.Pods, c), c)
}

// ready tells whether the kubelet says that a container is ready: this one, and not the one before it in its pod, of which the status tells
// until the kubelet has seen that it ended.
func ready(pod *hoststate.Pod, c container.Container) bool {
	return pod != nil && pod.CPU.Ready && (pod.CPU.ID == c.ID || pod.CPU.ID == "" || c.ID == "")
}

// endStart takes back what was in force for a start.
func (a *agent) endStart(ctx context.Context, f txn.InForce) {
	defer a.resume(a.busy("the end of a start of "+boundedPath(f.Target), startLimit))
	if _, err := apply.Restore(ctx, a.Env, apply.Selector{IDs: []string{f.ID}}); err != nil {
		a.Log.Warn("what was in force for a start could not be taken back", "transaction", f.ID, "error", err)
		return
	}
	a.Log.Info("it has started: what was in force for that is taken back", "transaction", f.ID, "remedy", f.Remedy)
}
