package pooleddemand

import (
	"context"
	"fmt"
	"maps"
	"time"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	informers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// outOfCPU is the reason of a pod that its kubelet refused since requests of CPU exceed what the node can allocate
// (InsufficientResourceError in pkg/kubelet/lifecycle/predicate.go).
const outOfCPU = "OutOf" + string(core.ResourceCPU)

// restsFor is for how long a node whose kubelet refused a pod so gets none beyond what it can allocate: its kubelet does not see what
// the API server says it can allocate, and would refuse the next one too.
const restsFor = 30 * time.Minute

// Rests is why a node does not hold a pod meanwhile.
const Rests = "node(s) whose kubelet refused a pod for requests of CPU (" + outOfCPU + ") within the last 30 minutes"

// refusals are the nodes whose kubelets refused a pod for its request of CPU, and until when they rest.
type refusals struct{ copied[time.Time] }

// note takes a refusal. Nodes that have rested are dropped.
func (r *refusals) note(node string, at, now time.Time) {
	until := at.Add(restsFor)
	if at.After(now) { // by another clock
		until = now.Add(restsFor)
	}
	r.change(func(all map[string]time.Time) {
		maps.DeleteFunc(all, func(_ string, until time.Time) bool { return !until.After(now) })
		if until.After(now) && until.After(all[node]) {
			all[node] = until
		}
	})
}

// rests tells whether a node's kubelet refused a pod lately.
func (r *refusals) rests(node string, now time.Time) bool {
	return now.Before(r.get(node))
}

// read notes what kubelets refuse until the context ends. The scheduler's own informer has no pods that failed, and of one that fails
// it shows the state before.
func (r *refusals) read(ctx context.Context, client kubernetes.Interface, now func() time.Time) error {
	informer := informers.NewFilteredPodInformer(client, metav1.NamespaceAll, 0, cache.Indexers{}, func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("status.phase", string(core.PodFailed)).String()
	})
	if err := informer.SetTransform(refusalOf); err != nil {
		return fmt.Errorf("pods that failed: %w", err)
	}
	take := func(of any) {
		p, ok := of.(*core.Pod)
		if !ok || p.Status.Reason != outOfCPU || p.Spec.NodeName == "" {
			return
		}
		at := p.CreationTimestamp
		if p.Status.StartTime != nil { // when its kubelet saw it
			at = *p.Status.StartTime
		}
		r.note(p.Spec.NodeName, at.Time, now())
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: take,
		UpdateFunc: func(_, now any) { take(now) }}); err != nil {
		return fmt.Errorf("pods that failed: %w", err)
	}
	go informer.RunWithContext(ctx)
	return nil
}

// refusalOf is all that is kept of a pod that failed: there may be thousands.
func refusalOf(given any) (any, error) {
	p, ok := given.(*core.Pod)
	if !ok {
		return given, nil
	}
	return &core.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion,
			CreationTimestamp: p.CreationTimestamp},
		Spec:   core.PodSpec{NodeName: p.Spec.NodeName},
		Status: core.PodStatus{Phase: p.Status.Phase, Reason: p.Status.Reason, StartTime: p.Status.StartTime},
	}, nil
}
