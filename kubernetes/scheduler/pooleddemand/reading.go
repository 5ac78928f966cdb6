package pooleddemand

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/unthrottle/unthrottle/internal/demand/nodedemand"
)

// Resource is that of the objects that nodes tell their demand by.
var Resource = schema.GroupVersionResource{Group: nodedemand.Group, Version: nodedemand.APIVersion, Resource: nodedemand.Plural}

// patience is how long a start waits for the first objects.
const patience = 5 * time.Second

// object is all that is kept of one.
type object struct {
	metav1.ObjectMeta
	// told is nil if the object cannot be read; why says that.
	told *told
	why  error
}

// read keeps the feed up to date until the context ends.
func (f *feed) read(ctx context.Context, config *rest.Config) error {
	if config == nil {
		return errors.New("the scheduler has no configuration of the API server to read NodeDemands with")
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("a client for NodeDemands: %w", err)
	}
	informer := dynamicinformer.NewFilteredDynamicInformer(client, Resource, metav1.NamespaceAll, 0, nil, nil).Informer()
	if err := informer.SetTransform(objectOf); err != nil {
		return fmt.Errorf("NodeDemands: %w", err)
	}
	log := klog.FromContext(ctx).WithName(Name)
	take := func(of any) {
		o, ok := of.(*object)
		if !ok {
			return
		}
		if o.why != nil {
			log.Error(o.why, "a NodeDemand counts as none", "node", o.Name)
		}
		f.set(o.Name, o.told)
	}
	handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: take, UpdateFunc: func(_, now any) { take(now) },
		DeleteFunc: func(gone any) {
			if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(gone); err == nil {
				f.set(key, nil)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("NodeDemands: %w", err)
	}
	go informer.RunWithContext(ctx)
	first, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if !cache.WaitForCacheSync(first.Done(), handler.HasSynced) {
		log.Info("NodeDemands were not read at the start; until they are, pods count as their requests", "waited", patience)
	}
	return nil
}

// objectOf is what is kept of an object; one that cannot be read tells nothing.
func objectOf(given any) (any, error) {
	u, ok := given.(*unstructured.Unstructured)
	if !ok {
		return given, nil // read already, or the name of one that is gone
	}
	o := &object{ObjectMeta: metav1.ObjectMeta{Name: u.GetName(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion()}}
	spec, err := nodedemand.Read(u.Object["spec"])
	if err == nil {
		err = spec.Check()
	}
	if err != nil {
		o.why = fmt.Errorf("NodeDemand %s: %w", u.GetName(), err)
		return o, nil
	}
	o.told = toldBy(&spec)
	return o, nil
}
