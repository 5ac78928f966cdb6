package autoscalers

import (
	"cmp"
	"context"
	"slices"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/unthrottle/unthrottle/kubernetes/listing"
	"github.com/unthrottle/unthrottle/kubernetes/podowner"
)

// Resource is where the objects are.
var Resource = schema.GroupVersionResource{Group: "autoscaling.k8s.io", Version: "v1", Resource: "verticalpodautoscalers"}

// Controlling names the object that changes the CPU of a pod's container, with its mode; "": none does.
func Controlling(ctx context.Context, client dynamic.Interface, pod *core.Pod, container string) (string, error) {
	kind, name := podowner.Of(pod)
	if kind == "" {
		return "", nil // the updater leaves such a pod alone
	}
	all, err := listing.Gather(ctx, client.Resource(Resource).Namespace(pod.Namespace), 0,
		func(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			if targets(u, kind, name) && updates(mode(u)) {
				return u, nil
			}
			return nil, nil
		})
	switch {
	case apierrors.IsNotFound(err): // the cluster has no such objects
		return "", nil
	case err != nil || len(all) == 0:
		return "", err
	}
	u := slices.MinFunc(all, func(a, b unstructured.Unstructured) int {
		return cmp.Or(a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time), cmp.Compare(a.GetName(), b.GetName()))
	})
	p := PolicyOf(&u)(container)
	if p.Off || p.RequestsOnly && pod.Status.QOSClass != core.PodQOSGuaranteed {
		return "", nil
	}
	return "VerticalPodAutoscaler " + u.GetName() + " (updateMode " + mode(&u) + ")", nil
}

// targets tells whether an object is about a workload.
func targets(u *unstructured.Unstructured, kind, name string) bool {
	ref, _, _ := unstructured.NestedMap(u.Object, "spec", "targetRef")
	return ref["kind"] == kind && ref["name"] == name
}

// mode is an object's updateMode.
func mode(u *unstructured.Unstructured) string {
	is, _, _ := unstructured.NestedString(u.Object, "spec", "updatePolicy", "updateMode")
	return cmp.Or(is, "Recreate")
}

// updates tells whether the autoscaler changes pods that run.
func updates(mode string) bool { return mode != "Off" && mode != "Initial" }
