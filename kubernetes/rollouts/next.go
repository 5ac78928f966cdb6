package rollouts

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/unthrottle/unthrottle/internal/cure/canary"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/kubernetes/policies"
)

// Decider decides on rollouts, on several at a time if it is asked to.
type Decider struct {
	Client dynamic.Interface
	Log    *slog.Logger
	// listing: the API's objects take much memory while they are read, so that one namespace's are read at a time.
	listing sync.Mutex
}

// Next is the state of a policy's rollout after a decision at a time. rules are those in force. What a Prometheus does not answer
// is told in the log, and counts as not measured; what the API server does not answer is an error, and nothing is decided that
// needs pods.
func (d *Decider) Next(ctx context.Context, o policies.Object, r *policies.Rollout, rules policy.Rules, now time.Time) (canary.State,
	error) {
	seen := canary.Seen{Now: now, Chance: rand.Int64()}
	if !o.Rollout.Looks(r.Tried, now) {
		return canary.Next(r.Plan, o.Rollout, r.Tried, seen), nil
	}
	var err error
	log := d.Log.With("policy", o.Key().String())
	if seen.Guard, err = largest(ctx, r.Prometheus, r.Query, now); err != nil {
		log.Warn("a rollout's guard cannot be read", "error", err)
	}
	if stopped := o.Rollout.Stopped(r.Plan, seen); stopped != o.Rollout {
		return stopped, nil // also where pods cannot be listed
	}
	if seen.Pods, seen.Disruptions, err = d.list(ctx, o, rules); err != nil {
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

// list reads the pods of a policy, and how many disruptions each PodDisruptionBudget of their namespace allows.
func (d *Decider) list(ctx context.Context, o policies.Object, rules policy.Rules) ([]canary.Pod, map[string]int, error) {
	d.listing.Lock()
	defer d.listing.Unlock()
	protected, allowed, err := protections(ctx, d.Client, o.Namespace)
	if err != nil {
		return nil, nil, err
	}
	all, err := pods(ctx, d.Client, o.Namespace, o.Key().String(), rules, protected)
	return all, allowed, err
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
