package controller

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"

	"github.com/unthrottle/unthrottle/internal/cure/canary"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/kubernetes/policies"
	"github.com/unthrottle/unthrottle/kubernetes/rollouts"
)

// nodePods is the informer of the node's pods. It keeps what says which of them are treated: a pod that changes stays the same one.
func (c *controller) nodePods(changed func()) (cache.SharedIndexInformer, error) {
	bare := func(u *unstructured.Unstructured) {
		kept := &unstructured.Unstructured{Object: map[string]any{}}
		kept.SetAPIVersion(u.GetAPIVersion())
		kept.SetKind(u.GetKind())
		kept.SetNamespace(u.GetNamespace())
		kept.SetName(u.GetName())
		kept.SetUID(u.GetUID())
		kept.SetResourceVersion(u.GetResourceVersion())
		kept.SetCreationTimestamp(u.GetCreationTimestamp())
		u.Object = kept.Object
	}
	signal := func(any) { changed() }
	return c.informer(rollouts.Pods, func(o metav1.ListOptions) metav1.ListOptions {
		o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", c.Node).String()
		return o
	}, bare, cache.ResourceEventHandlerFuncs{AddFunc: signal, DeleteFunc: signal})
}

// node is what the file needs to know of the node; nil: rollouts are off.
func (c *controller) node() *policies.Node {
	if c.pods == nil {
		return nil
	}
	n := &policies.Node{Pods: map[string][]canary.Pod{}}
	for _, of := range c.pods.GetStore().List() {
		if u, ok := of.(*unstructured.Unstructured); ok {
			n.Pods[u.GetNamespace()] = append(n.Pods[u.GetNamespace()], canary.Pod{UID: string(u.GetUID()),
				Created: u.GetCreationTimestamp().Time})
		}
	}
	return n
}

// atOnce is how many rollouts are decided on at a time: one whose Prometheus is slow delays neither the others nor the node's file.
const atOnce = 8

// decision is what became of the state of a policy's rollout.
type decision struct{ from, to canary.State }

// decisions on rollouts are made beside the controller's loop.
type decisions struct {
	rollouts.Decider
	// changed is told that there is one to take.
	changed func()
	begun   time.Time
	slots   chan struct{}
	mu      sync.Mutex
	running map[policies.Key]bool
	made    map[policies.Key]decision
}

// begin decides on each rollout, once in an interval; not on those that are being decided on still.
func (d *decisions) begin(ctx context.Context, objects []policies.Object, out policies.Result, interval time.Duration) {
	if time.Since(d.begun) < interval {
		return
	}
	d.begun = time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	pass := d.Pass(out.InForce)
	for _, o := range objects {
		if r := out.Rollouts[o.Key()]; r != nil && !d.running[o.Key()] {
			d.running[o.Key()] = true
			go d.decide(ctx, pass, o, r)
		}
	}
}

// decide decides on one. Where something cannot be read its state stays as it was.
func (d *decisions) decide(ctx context.Context, pass *rollouts.Pass, o policies.Object, r *policies.Rollout) {
	d.slots <- struct{}{}
	defer func() { <-d.slots }()
	to, err := pass.Next(ctx, o, r, time.Now())
	if err != nil && ctx.Err() == nil {
		d.Log.Warn("nothing is decided on a rollout", "policy", text.Sanitize(o.Key().String(), 300), "error", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.running, o.Key())
	if to != o.Rollout {
		d.made[o.Key()] = decision{o.Rollout, to}
		d.changed()
	}
}

// take returns what was decided since, once.
func (d *decisions) take() map[policies.Key]decision {
	d.mu.Lock()
	defer d.mu.Unlock()
	made := d.made
	d.made = map[policies.Key]decision{}
	return made
}

// states are those of the policies' rollouts, after what was decided. A decision on another state than the one that is there came
// too late. What is known of a policy that is not accepted is kept for when it is again, and its step ends in time.
func states(objects []policies.Object, out policies.Result, made map[policies.Key]decision,
	now time.Time) map[policies.Key]canary.State {
	all := map[policies.Key]canary.State{}
	for _, o := range objects {
		state := o.Rollout
		switch d, decided := made[o.Key()]; {
		case out.Rollouts[o.Key()] == nil && out.Statuses[o.Key()].Wrong == nil:
			continue // it has no rollout
		case out.Rollouts[o.Key()] == nil:
			state = state.Stopped(canary.Plan{}, canary.Seen{Now: now})
		case decided && d.from == state:
			state = d.to
		}
		if state.Phase != "" { // else it begins with the next decision
			all[o.Key()] = state
		}
	}
	return all
}
