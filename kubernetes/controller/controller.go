package controller

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/renameio/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	typed "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/cache"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unthrottle/unthrottle/internal/cure/canary"
	"github.com/unthrottle/unthrottle/kubernetes/api/v1alpha1"
	"github.com/unthrottle/unthrottle/kubernetes/policies"
	"github.com/unthrottle/unthrottle/kubernetes/rollouts"
)

// Options of a controller.
type Options struct {
	Client dynamic.Interface
	// Leases has the lease.
	Leases typed.LeasesGetter
	// Base is the chart's own file, Out where the agent's is written.
	Base []byte
	Out  string
	// Identity names this controller in the lease: its pod.
	Identity string
	// Namespace has the lease, LeaseName names it.
	Namespace, LeaseName string
	// LeastInterval is between two writes of the file.
	LeastInterval time.Duration
	// LeaseInterval is how often the lease is renewed. Work that failed is tried again four times as often.
	LeaseInterval time.Duration
	// Rollouts of policies are on; Node is then the one whose file is written.
	Rollouts bool
	Node     string
	Log      *slog.Logger
}

// settle lets changes that belong together become one.
const settle = 300 * time.Millisecond

var (
	group       = schema.GroupVersion{Group: v1alpha1.Group, Version: v1alpha1.Version}
	namespaced  = group.WithResource(v1alpha1.ThrottlePolicies)
	clusterWide = group.WithResource(v1alpha1.ClusterThrottlePolicies)
	resources   = []schema.GroupVersionResource{namespaced, clusterWide}
)

type controller struct {
	Options
	informers []cache.SharedIndexInformer
	pods      cache.SharedIndexInformer // of the node; nil: rollouts are off
	decisions decisions
	wake      chan struct{}
	lease     lease // who writes statuses
	written   []byte
	writtenAt time.Time
	sent      map[string]sent
	refused   string
}

// Run keeps the file and the statuses until ctx ends.
func Run(ctx context.Context, o Options) error {
	if _, err := policies.Merge(o.Base, nil, nil); err != nil {
		return err
	}
	c := &controller{Options: o, wake: make(chan struct{}, 1), sent: map[string]sent{}}
	c.decisions = decisions{Decider: rollouts.Decider{Client: o.Client, Log: o.Log}, changed: c.signal, slots: make(chan struct{}, atOnce),
		running: map[policies.Key]bool{}, made: map[policies.Key]decision{}}
	c.lease = lease{client: o.Leases, namespace: o.Namespace, name: o.LeaseName, identity: o.Identity,
		interval: o.LeaseInterval, changed: c.signal,
		failed: func(err error) {
			if ctx.Err() == nil {
				o.Log.Warn("the lease cannot be renewed", "error", err)
			}
		}}
	var synced []cache.InformerSynced
	for _, resource := range resources {
		i, err := c.policiesOf(resource, c.signal)
		if err != nil {
			return err
		}
		c.informers, synced = append(c.informers, i), append(synced, i.HasSynced)
		go i.RunWithContext(ctx)
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil
	}
	if o.Rollouts {
		var err error
		if c.pods, err = c.nodePods(c.signal); err != nil {
			return err
		}
		go c.pods.RunWithContext(ctx)
		if !cache.WaitForCacheSync(ctx.Done(), c.pods.HasSynced) {
			return nil
		}
	}
	elected := make(chan error, 1)
	go func() {
		defer close(elected)
		elected <- c.lease.keep(ctx)
	}()
	if err := c.loop(ctx, elected); err != nil {
		return err
	}
	select {
	case err := <-elected:
		return err
	case <-time.After(releaseWithin):
		return nil
	}
}

// signal has the loop work, unless it is about to.
func (c *controller) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *controller) informer(resource schema.GroupVersionResource, tweak func(metav1.ListOptions) metav1.ListOptions,
	keep func(*unstructured.Unstructured), handler cache.ResourceEventHandlerFuncs) (cache.SharedIndexInformer, error) {
	i := cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return c.Client.Resource(resource).List(ctx, tweak(o))
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return c.Client.Resource(resource).Watch(ctx, tweak(o))
		},
	}, c.Client), &unstructured.Unstructured{}, 0, nil)
	if err := i.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		c.Log.Warn("objects cannot be read; what was known stays in force", "resource", resource.Resource, "error", err)
	}); err != nil {
		return nil, err
	}
	if err := i.SetTransform(func(of any) (any, error) {
		if u, ok := of.(*unstructured.Unstructured); ok {
			keep(u)
		}
		return of, nil
	}); err != nil {
		return nil, err
	}
	_, err := i.AddEventHandler(handler)
	return i, err
}

// policiesOf is the informer of one kind of policies.
func (c *controller) policiesOf(resource schema.GroupVersionResource, changed func()) (cache.SharedIndexInformer, error) {
	// Who made an object, and by which fields, takes more memory than the object.
	bare := func(u *unstructured.Unstructured) { u.SetManagedFields(nil) }
	signal := func(any) { changed() }
	return c.informer(resource, func(o metav1.ListOptions) metav1.ListOptions { return o }, bare,
		cache.ResourceEventHandlerFuncs{AddFunc: signal, UpdateFunc: func(_, of any) { signal(of) }, DeleteFunc: signal})
}

// loop works until ctx ends, or the election cannot begin.
func (c *controller) loop(ctx context.Context, elected <-chan error) error {
	retry := time.NewTicker(c.LeaseInterval / 4)
	defer retry.Stop()
	for {
		later := c.once(ctx)
		var again <-chan time.Time
		if later > 0 {
			again = time.After(later)
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-elected:
			return err
		case <-retry.C:
		case <-again:
		case <-c.wake:
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(settle):
			}
		}
	}
}

// once brings file and statuses up to date. It returns after which time it must be called again; 0: after the next change.
func (c *controller) once(ctx context.Context) (later time.Duration) {
	var live []*unstructured.Unstructured
	var objects []policies.Object
	for _, i := range c.informers {
		for _, of := range i.GetStore().List() {
			if u, ok := of.(*unstructured.Unstructured); ok {
				live, objects = append(live, u), append(objects, objectOf(u))
			}
		}
	}
	out, err := policies.Merge(c.Base, objects, c.node())
	if err != nil {
		if c.refused != err.Error() {
			c.Log.Error("the policies make no rules file; the one before stays", "error", err)
		}
		c.refused = err.Error()
		return 0
	}
	c.refused = ""
	if wait := c.LeastInterval - time.Since(c.writtenAt); !bytes.Equal(out.File, c.written) && c.written != nil && wait > 0 {
		later = wait
	} else if !bytes.Equal(out.File, c.written) {
		if err := WriteFile(c.Out, out.File); err != nil {
			c.Log.Error("the rules file cannot be written; the one before stays", "error", err)
			return c.LeaseInterval / 4
		}
		c.Log.Info("rules written", "file", c.Out, "policies", len(objects), "rules_of_policies", out.Rules)
		c.written, c.writtenAt = out.File, time.Now()
	}
	if made := c.decisions.take(); c.lease.held.Load() {
		c.statuses(ctx, live, out, states(objects, out, made, time.Now()))
		c.decisions.begin(ctx, objects, out, c.LeaseInterval)
	}
	return later
}

func objectOf(u *unstructured.Unstructured) policies.Object {
	o := policies.Object{Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(),
		Created: u.GetCreationTimestamp().Time, Generation: u.GetGeneration()}
	o.Spec, _, _ = unstructured.NestedMap(u.Object, "spec")
	o.Kept, _, _ = unstructured.NestedMap(u.Object, "status", "inForce", "spec")
	o.KeptGeneration, _, _ = unstructured.NestedInt64(u.Object, "status", "inForce", "generation")
	if kept := statusIn(u).Rollout; kept != nil {
		o.Rollout = canary.State(*kept)
	}
	return o
}

// WriteFile writes a file whole: a reader sees the old one or the new one.
func WriteFile(name string, content []byte) error {
	if err := renameio.WriteFile(name, content, 0o644, renameio.WithTempDir(filepath.Dir(name)),
		renameio.WithStaticPermissions(0o644)); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// sorted makes the order of writes the same each time.
func sorted(given []*unstructured.Unstructured) []*unstructured.Unstructured {
	slices.SortFunc(given, func(a, b *unstructured.Unstructured) int {
		return a.GetCreationTimestamp().Time.Compare(b.GetCreationTimestamp().Time)
	})
	return given
}
