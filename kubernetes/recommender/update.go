package recommender

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/kubernetes/autoscalers"
	"github.com/unthrottle/unthrottle/kubernetes/listing"
)

// workloads are the kinds that a report knows.
var workloads = map[string]string{"Deployment": "deployments", "StatefulSet": "statefulsets", "DaemonSet": "daemonsets"}

// maxMessage bounds a condition's message.
const maxMessage = 1000

// Done is what became of the objects.
type Done struct {
	// Objects name this recommender; Written of them have another status than before, Known have a recommendation for each container.
	Objects, Written, Known int
	// Failed are those that could not be read or written, by the reason.
	Failed []string
}

// Update gives each object that names the recommender its recommendation. The error is about the API server; what is
// wrong with one object is in Failed.
func Update(ctx context.Context, client dynamic.Interface, r *Report, now time.Time) (done Done, err error) {
	all, err := listed(ctx, client)
	if err != nil {
		return done, err
	}
	done.Objects = len(all)
	for i := range all {
		u := &all[i]
		written, known, err := update(ctx, client, r, u, now)
		switch {
		case ctx.Err() != nil:
			return done, ctx.Err()
		case err != nil:
			done.Failed = append(done.Failed,
				text.Sanitize(fmt.Sprintf("%s/%s: %v", u.GetNamespace(), u.GetName(), advised(err)), maxMessage))
			continue
		}
		if written {
			done.Written++
		}
		if known {
			done.Known++
		}
	}
	return done, nil
}

// listed are the objects that name this recommender. All are read before the first is written: to write a page of them may take longer
// than the token lasts that leads to the next one.
func listed(ctx context.Context, client dynamic.Interface) ([]unstructured.Unstructured, error) {
	ours := func(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		if !named(u) {
			return nil, nil
		}
		return u, nil
	}
	all, err := listing.Gather(ctx, client.Resource(autoscalers.Resource), 0, ours)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("the cluster has no VerticalPodAutoscaler of autoscaling.k8s.io/v1: install the "+
			"Vertical Pod Autoscaler first (%w)", err)
	case err != nil:
		return nil, fmt.Errorf("the VerticalPodAutoscalers cannot be listed: %w", advised(err))
	}
	return all, nil
}

// advised adds the way out to an answer that refuses.
func advised(err error) error {
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w; give the service account the role of examples/kubernetes/recommender.yaml", err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the API server does not take the token: %w; give another in --kubeconfig, or run as the "+
			"service account of examples/kubernetes/recommender.yaml", err)
	}
	return err
}

// named reports whether an object names this recommender.
func named(u *unstructured.Unstructured) bool {
	all, _, _ := unstructured.NestedSlice(u.Object, "spec", "recommenders")
	return slices.ContainsFunc(all, func(one any) bool {
		of, ok := one.(map[string]any)
		return ok && of["name"] == Name
	})
}

// update writes the status of one object, if it is another than before.
func update(ctx context.Context, client dynamic.Interface, r *Report, u *unstructured.Unstructured,
	now time.Time) (written, known bool, err error) {
	version, _, _ := unstructured.NestedString(u.Object, "spec", "targetRef", "apiVersion")
	kind, _, _ := unstructured.NestedString(u.Object, "spec", "targetRef", "kind")
	name, _, _ := unstructured.NestedString(u.Object, "spec", "targetRef", "name")
	of := Target{kind, u.GetNamespace(), name}
	var recommendations []Recommendation
	var left []Left
	// Other groups have kinds of the same names, such as the StatefulSet of apps.kruise.io.
	group, _, _ := strings.Cut(version, "/")
	if plural := workloads[kind]; plural == "" || group != "" && group != "apps" {
		left = []Left{{Why: "its target is a " + text.Quoted(kind) + " of " + text.Quoted(version) +
			", and not a Deployment, StatefulSet or DaemonSet of apps/v1"}}
	} else {
		target, err := client.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1",
			Resource: plural}).Namespace(of.Namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			left = []Left{{Why: "there is no " + kind + " " + text.Quoted(name)}}
		case err != nil:
			return false, false, err
		default:
			recommendations, left = For(r, of, containersOf(target), autoscalers.PolicyOf(u))
		}
	}
	patch, err := patchOf(u, recommendations, left, now)
	if err != nil || patch == nil {
		return false, len(left) == 0, err
	}
	write := func(parts ...string) error {
		_, err := client.Resource(autoscalers.Resource).Namespace(u.GetNamespace()).Patch(ctx, u.GetName(), types.MergePatchType,
			patch, metav1.PatchOptions{FieldManager: "unthrottle-recommender"}, parts...)
		return err
	}
	if err = write("status"); apierrors.IsNotFound(err) {
		// Definitions before 1.0 have no status of their own.
		if err = write(); apierrors.IsForbidden(err) {
			// Without %w: the example's role, which others are told to give, is not enough.
			err = fmt.Errorf("it is gone, or its definition has no subresource status: %v; let the role patch "+
				"verticalpodautoscalers, too", err)
		}
	}
	return err == nil, len(left) == 0, err
}

// containersOf are the containers of a workload's template.
func containersOf(target *unstructured.Unstructured) (containers []Container) {
	list, _, _ := unstructured.NestedSlice(target.Object, "spec", "template", "spec", "containers")
	for _, one := range list {
		of, ok := one.(map[string]any)
		if !ok {
			continue
		}
		name, _, _ := unstructured.NestedString(of, "name")
		containers = append(containers, Container{name, autoscalers.CPUs(of, "resources", "requests"),
			autoscalers.CPUs(of, "resources", "limits")})
	}
	return containers
}

// provided is the type of an object's condition that it has a recommendation.
const provided = "RecommendationProvided"

// patchOf is the change of an object's status; nil: none. Containers of which nothing is known keep what they had, and
// those that the template
// no longer has lose it.
func patchOf(u *unstructured.Unstructured, recommendations []Recommendation, left []Left, now time.Time) ([]byte, error) {
	was, _, _ := unstructured.NestedSlice(u.Object, "status", "recommendation", "containerRecommendations")
	var next []any
	for _, one := range was {
		of, ok := one.(map[string]any)
		if ok && slices.ContainsFunc(left, func(l Left) bool { return l.Container == "" || l.Container == of["containerName"] }) {
			next = append(next, of)
		}
	}
	for _, recommendation := range recommendations {
		next = append(next, recommendation)
	}
	status := map[string]any{}
	if len(next) > 0 {
		status["recommendation"] = map[string]any{"containerRecommendations": next}
	} else if len(was) > 0 {
		status["recommendation"] = nil // a merge patch keeps a key that it does not have
	}
	state, reason := "True", "FleetReport"
	if len(recommendations) == 0 {
		state, reason = "False", "NotKnown"
	}
	var why []string
	for _, l := range left {
		why = append(why, l.String())
	}
	message := text.Sanitize(strings.Join(why, "; "), maxMessage)
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	since := now.UTC().Format(time.RFC3339)
	kept := []any{}
	for _, one := range conditions {
		of, ok := one.(map[string]any)
		if !ok || of["type"] != provided {
			kept = append(kept, one)
		} else if at, ok := of["lastTransitionTime"].(string); ok && of["status"] == state {
			since = at
		}
	}
	status["conditions"] = append(kept, map[string]any{"type": provided, "status": state, "reason": reason,
		"message": message, "lastTransitionTime": since})
	// The same in the same form: what there is may have keys in another order.
	before, err := json.Marshal(map[string]any{"recommendation": map[string]any{"containerRecommendations": was}, "conditions": conditions})
	if err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(status)
	if err != nil {
		return nil, err
	}
	if same(before, encoded) {
		return nil, nil
	}
	return json.Marshal(map[string]any{"status": json.RawMessage(encoded)})
}

// same reports whether two statuses say the same.
func same(a, b []byte) bool {
	canonical := func(of []byte) string {
		var v map[string]any
		if json.Unmarshal(of, &v) != nil {
			return ""
		}
		if r, ok := v["recommendation"].(map[string]any); ok && r["containerRecommendations"] == nil {
			delete(v, "recommendation")
		}
		text, err := json.Marshal(v)
		if err != nil {
			return ""
		}
		return string(text)
	}
	is := canonical(a)
	return is != "" && is == canonical(b)
}
