package autoscalers

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Policy is what an object says of one container, or of all: see containerPolicies of autoscaling.k8s.io/v1.
type Policy struct {
	Off, RequestsOnly bool
	// Least and Most bound the request, in CPUs; nil: nothing does.
	Least, Most *float64
}

// PolicyOf finds what an object says of a container: under its name, else under "*".
func PolicyOf(u *unstructured.Unstructured) func(container string) Policy {
	list, _, _ := unstructured.NestedSlice(u.Object, "spec", "resourcePolicy", "containerPolicies")
	return func(container string) (p Policy) {
		for _, name := range []string{"*", container} { // its own is the last
			for _, one := range list {
				of, ok := one.(map[string]any)
				if !ok || of["containerName"] != name {
					continue
				}
				p = Policy{Off: of["mode"] == "Off", RequestsOnly: of["controlledValues"] == "RequestsOnly",
					Least: CPUs(of, "minAllowed"), Most: CPUs(of, "maxAllowed")}
				if controlled, ok, _ := unstructured.NestedStringSlice(of, "controlledResources"); ok &&
					!slices.Contains(controlled, "cpu") {
					p.Off = true
				}
			}
		}
		return p
	}
}

// CPUs reads a number of CPUs below some keys; nil: there is none.
func CPUs(of map[string]any, keys ...string) *float64 {
	value, ok, _ := unstructured.NestedFieldNoCopy(of, append(keys, "cpu")...)
	if !ok {
		return nil
	}
	q, err := resource.ParseQuantity(fmt.Sprint(value))
	if err != nil {
		return nil
	}
	return new(q.AsApproximateFloat64())
}
