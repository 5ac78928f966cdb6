package rollouts

import (
	"context"
	"fmt"
	"slices"

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
	"github.com/unthrottle/unthrottle/kubernetes/podowner"
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

// pods are a namespace's pods that run, or are about to, by the key of each policy whose they are.
func pods(ctx context.Context, client dynamic.Interface, namespace string, rules policy.Rules,
	protected []protection) (map[string][]canary.Pod, error) {
	type owned struct {
		canary.Pod
		keys []string
	}
	all, err := gather(ctx, client, Pods, namespace, func(u *unstructured.Unstructured) (*owned, error) {
		// Of thousands of pods a few fields are read: to convert each whole one takes most of a decision's time.
		phase, _, err := unstructured.NestedString(u.Object, "status", "phase")
		pending := phase == string(core.PodPending)
		if err != nil || !pending && phase != string(core.PodRunning) || u.GetDeletionTimestamp() != nil {
			return nil, err
		}
		keys, err := keysOf(u, rules)
		if err != nil || len(keys) == 0 {
			return nil, err
		}
		node, _, err := unstructured.NestedString(u.Object, "spec", "nodeName")
		if err != nil {
			return nil, err
		}
		pod := canary.Pod{UID: string(u.GetUID()), Name: u.GetName(), Node: node, Pending: pending,
			Workload: workload(u), Created: u.GetCreationTimestamp().Time}
		for _, b := range protected {
			if b.selector.Matches(labels.Set(u.GetLabels())) {
				pod.Budget = b.name
				break
			}
		}
		return &owned{pod, keys}, nil
	})
	by := map[string][]canary.Pod{}
	for _, pod := range all {
		for _, key := range pod.keys {
			by[key] = append(by[key], pod.Pod)
		}
	}
	return by, err
}

// keysOf are the keys of the policies whose a pod is: the rule in force of one of its containers is the policy's, and has a remedy.
func keysOf(u *unstructured.Unstructured, rules policy.Rules) (keys []string, err error) {
	names, err := containers(u)
	if err != nil {
		return nil, err
	}
	has := u.GetLabels()
	for _, name := range names {
		r := rules.For(container.Container{Name: u.GetNamespace() + "/" + u.GetName() + "/" + name, Namespace: u.GetNamespace(),
			Pod: u.GetName(), PodUID: string(u.GetUID()), ContainerName: name}, has)
		if r != nil && r.Policy != "" && !r.Leave && !slices.Contains(keys, r.Policy) {
			keys = append(keys, r.Policy)
		}
	}
	return keys, nil
}

// containers are the names of a pod's containers that run as long as it does: its sidecars too, which are init containers that are
// started again.
func containers(u *unstructured.Unstructured) (names []string, err error) {
	for _, kind := range []string{"containers", "initContainers"} {
		all, _, err := unstructured.NestedFieldNoCopy(u.Object, "spec", kind)
		if err != nil {
			return nil, err
		}
		list, _ := all.([]any)
		for _, c := range list {
			fields, _ := c.(map[string]any)
			if kind == "containers" || fields["restartPolicy"] == string(core.ContainerRestartPolicyAlways) {
				name, _ := fields["name"].(string)
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// workload names what made a pod: the Deployment of its ReplicaSet.
func workload(u *unstructured.Unstructured) string {
	kind, name := podowner.Of(u)
	if kind == "" {
		return "no workload"
	}
	return kind + " " + name
}
