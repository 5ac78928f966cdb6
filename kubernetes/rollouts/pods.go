package rollouts

import (
	"context"
	"fmt"
	"strings"

	core "k8s.io/api/core/v1"
	disruption "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/canary"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/kubernetes/listing"
)

var (
	// Pods are the pods of a cluster.
	Pods    = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	budgets = schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}
)

// most is how many objects of a kind a namespace with a rollout may have.
const most = 20_000

// gather are the objects of a namespace that keep keeps, in its words.
func gather[T any](ctx context.Context, client dynamic.Interface, of schema.GroupVersionResource, namespace string,
	keep func(*unstructured.Unstructured) (*T, error)) ([]T, error) {
	all, err := listing.Gather(ctx, client.Resource(of).Namespace(namespace), most, keep)
	if err != nil {
		err = fmt.Errorf("%s of namespace %s: %w", of.Resource, namespace, err)
	}
	return all, err
}

// protection is one PodDisruptionBudget.
type protection struct {
	name     string
	selector labels.Selector
	allowed  int // disruptions
}

// protections are a namespace's PodDisruptionBudgets, and how many disruptions each allows.
func protections(ctx context.Context, client dynamic.Interface, namespace string) (all []protection, allowed map[string]int, err error) {
	all, err = gather(ctx, client, budgets, namespace, func(u *unstructured.Unstructured) (*protection, error) {
		var b disruption.PodDisruptionBudget
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &b); err != nil {
			return nil, err
		}
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		return &protection{b.Name, selector, int(b.Status.DisruptionsAllowed)}, err
	})
	allowed = map[string]int{}
	for _, p := range all {
		allowed[p.name] = p.allowed
	}
	return all, allowed, err
}

// pods are the running pods of a policy.
func pods(ctx context.Context, client dynamic.Interface, namespace, key string, rules policy.Rules,
	protected []protection) (all []canary.Pod, err error) {
	return gather(ctx, client, Pods, namespace, func(u *unstructured.Unstructured) (*canary.Pod, error) {
		var p core.Pod
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &p); err != nil {
			return nil, err
		}
		if p.Status.Phase != core.PodRunning || p.DeletionTimestamp != nil || !of(&p, key, rules) {
			return nil, nil
		}
		pod := canary.Pod{UID: string(p.UID), Name: p.Name, Node: p.Spec.NodeName, Workload: workload(&p),
			Created: p.CreationTimestamp.Time}
		for _, b := range protected {
			if b.selector.Matches(labels.Set(p.Labels)) {
				pod.Budget = b.name
				break
			}
		}
		return &pod, nil
	})
}

// of tells whether the rule in force of one of a pod's containers is a policy's, and has a remedy.
func of(p *core.Pod, key string, rules policy.Rules) bool {
	for _, c := range p.Spec.Containers {
		r := rules.For(container.Container{Name: p.Namespace + "/" + p.Name + "/" + c.Name, Namespace: p.Namespace, Pod: p.Name,
			PodUID: string(p.UID), ContainerName: c.Name}, p.Labels)
		if r != nil && r.Policy == key && !r.Leave {
			return true
		}
	}
	return false
}

// workload names what made a pod: the Deployment of its ReplicaSet.
func workload(p *core.Pod) string {
	made := metav1.GetControllerOf(p)
	if made == nil {
		return "no workload"
	}
	if name, ok := strings.CutSuffix(made.Name, "-"+p.Labels["pod-template-hash"]); ok && made.Kind == "ReplicaSet" {
		return "Deployment " + name
	}
	return made.Kind + " " + made.Name
}
