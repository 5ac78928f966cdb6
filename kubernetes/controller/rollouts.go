package controller

import (
	"context"
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

// rollouts are the states of the policies' rollouts. They are decided on once in LeaseInterval; between, and where something
// cannot be read, they stay as they were.
func (c *controller) rollouts(ctx context.Context, objects []policies.Object, out policies.Result) map[policies.Key]canary.State {
	states, now := map[policies.Key]canary.State{}, time.Now()
	due := now.Sub(c.decided) >= c.LeaseInterval
	if due {
		c.decided = now
	}
	for _, o := range objects {
		r := out.Rollouts[o.Key()]
		if r == nil {
			continue
		}
		next := o.Rollout
		if due {
			var err error
			if next, err = rollouts.Next(ctx, c.Client, o, r, out.InForce, now, c.Log); err != nil && ctx.Err() == nil {
				c.Log.Warn("nothing is decided on a rollout", "policy", text.Sanitize(o.Key().String(), 300), "error", err)
			}
		}
		if next.Phase != "" { // else it begins with the next decision
			states[o.Key()] = next
		}
	}
	return states
}
