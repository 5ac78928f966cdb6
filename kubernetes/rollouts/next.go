package rollouts

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/unthrottle/unthrottle/internal/cure/canary"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/kubernetes/policies"
)

// Decider decides on rollouts.
type Decider struct {
	Client dynamic.Interface
	Log    *slog.Logger
	// listing: the API's objects take much memory while they are read, so that one namespace's are read at a time.
	listing sync.Mutex
}

// Pass is one round of decisions, on several rollouts at a time if it is asked to. Policies of one namespace share what is listed of it.
type Pass struct {
	*Decider
	rules  policy.Rules
	listed map[string]*listed // by namespace; listing guards it
}

// Pass begins a round of decisions by the rules in force.
func (d *Decider) Pass(rules policy.Rules) *Pass {
	return &Pass{Decider: d, rules: rules, listed: map[string]*listed{}}
}

// Next is the state of a policy's rollout after a decision at a time. What a Prometheus does not answer is told in the log, and counts as
// not measured; what the API server does not answer is an error, and nothing is decided that needs pods.
func (p *Pass) Next(ctx context.Context, o policies.Object, r *policies.Rollout, now time.Time) (canary.State, error) {
	seen := canary.Seen{Now: now, Chance: rand.Int64()}
	if !o.Rollout.Looks(r.Tried, now) {
		return canary.Next(r.Plan, o.Rollout, r.Tried, seen), nil
	}
	var err error
	log := p.Log.With("policy", o.Key().String())
	if seen.Guard, err = largest(ctx, r.Prometheus, r.Query, now); err != nil {
		log.Warn("a rollout's guard cannot be read", "error", err)
	}
	if stopped := o.Rollout.Stopped(r.Plan, seen); stopped != o.Rollout {
		return stopped, nil // also where pods cannot be listed
	}
	if seen.Pods, seen.Disruptions, err = p.list(ctx, o, now); err != nil {
		return o.Rollout, err
	}
	if o.Rollout.Due(r.Plan, now) {
		before, err := byPod(ctx, r.Prometheus, r.Latency, o.Namespace, o.Rollout.Begun)
		after, later := byPod(ctx, r.Prometheus, r.Latency, o.Namespace, now)
		if err == nil {
			err = later
		}
		switch {
		case err != nil:
			log.Warn("a rollout's latencies cannot be read", "error", err)
		case len(before) == 0 || len(after) == 0:
			log.Warn("a rollout's latency gives no value with a label pod, so that nothing can be compared: try the query in Prometheus",
				"query", r.Latency, "pods_before", len(before), "pods_now", len(after))
		default:
			measured(seen.Pods, o.Rollout.Begun, before, after)
		}
	}
	return canary.Next(r.Plan, o.Rollout, r.Tried, seen), nil
}

// listFor is for how long a list counts: a decision may wait for others whose Prometheus is slow, and pods come and go meanwhile.
const listFor = time.Minute

// listed is what was listed of a namespace, or why that failed.
type listed struct {
	at time.Time
	// pods are those of each policy, by its key, and allowed how many disruptions each PodDisruptionBudget allows.
	pods    map[string][]canary.Pod
	allowed map[string]int
	err     error
}

// list gives the pods of a policy, and how many disruptions each PodDisruptionBudget of their namespace allows. A list that failed is tried
// again by the next pass, and not by each policy of the namespace.
func (p *Pass) list(ctx context.Context, o policies.Object, now time.Time) ([]canary.Pod, map[string]int, error) {
	p.listing.Lock()
	defer p.listing.Unlock()
	l := p.listed[o.Namespace]
	if l == nil || now.Sub(l.at) > listFor {
		l = &listed{at: now}
		var protected []protection
		if protected, l.allowed, l.err = protections(ctx, p.Client, o.Namespace); l.err == nil {
			l.pods, l.err = pods(ctx, p.Client, o.Namespace, p.rules, protected)
		}
		p.listed[o.Namespace] = l
	}
	if l.err != nil {
		return nil, nil, l.err
	}
	return slices.Clone(l.pods[o.Key().String()]), l.allowed, nil // a decision notes latencies in its pods
}

// measured gives pods their latencies. A pod that was made after the first draw has none of before: an older one had its name.
func measured(pods []canary.Pod, begun time.Time, before, after map[string]float64) {
	for i := range pods {
		p := &pods[i]
		if was, ok := before[p.Name]; ok && !p.Created.After(begun) {
			p.Before = &was
		}
		if is, ok := after[p.Name]; ok {
			p.After = &is
		}
	}
}
