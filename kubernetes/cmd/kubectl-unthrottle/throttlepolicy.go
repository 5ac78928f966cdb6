package main

import (
	"context"
	"errors"
	"fmt"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/kubernetes/api/v1alpha1"
	"github.com/unthrottle/unthrottle/kubernetes/policies"
)

const (
	// managedBy is the label of the policies that this plugin wrote, with the value program. It changes no others.
	managedBy = "app.kubernetes.io/managed-by"
	program   = "kubectl-unthrottle"
)

var resource = schema.GroupVersionResource{Group: v1alpha1.Group, Version: v1alpha1.Version, Resource: v1alpha1.ThrottlePolicies}

// wish is what a user asks for a pod's owner.
type wish struct {
	of        owner
	container string // "": all containers
	match     string
	remedy    string
	mode      string
}

// wished makes the wish of a pod.
func wished(pod *core.Pod, container, remedy, mode string) wish {
	of := ownerOf(pod)
	return wish{of: of, container: container, match: match(of, pod, container), remedy: remedy, mode: mode}
}

// name is the policy's: that of the owner, and of the container if one was named.
func (w wish) name() string {
	if w.container == "" {
		return w.of.name
	}
	return w.of.name + "." + w.container
}

// object is the policy as it is written.
func (w wish) object(namespace string) *unstructured.Unstructured {
	rule := map[string]any{"match": map[string]any{"name": w.match}, "remedy": w.remedy}
	if w.remedy == "auto" {
		rule["verify"] = policy.VerifyProbe
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.Group + "/" + v1alpha1.Version, "kind": policies.ThrottlePolicy,
		"metadata": map[string]any{"name": w.name(), "namespace": namespace, "labels": map[string]any{managedBy: program}},
		"spec":     map[string]any{"mode": w.mode, "rules": []any{rule}},
	}}
}

// objects is where the policies of a namespace are.
func (c *connected) objects(namespace string) dynamic.ResourceInterface {
	return c.dynamic.Resource(resource).Namespace(namespace)
}

// missing reports whether the API server does not know ThrottlePolicies at all.
func missing(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.IsUnexpectedServerError(err)
}

// said says what to do about an answer of the API server about policies.
func said(err error, verb, namespace string) error {
	switch {
	case missing(err):
		return errors.New("this cluster has no ThrottlePolicies: install or upgrade the chart with --set policies.enabled=true")
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w; you need '%s' on throttlepolicies.%s in namespace %s", err, verb, v1alpha1.Group, namespace)
	}
	return err
}

// there is the policy of a name, nil if there is none. One that this plugin did not write, or wrote for other pods, is an error.
func (c *connected) there(ctx context.Context, namespace string, w wish) (*unstructured.Unstructured, error) {
	got, err := c.objects(namespace).Get(ctx, w.name(), meta.GetOptions{})
	if apierrors.IsNotFound(err) && !missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, said(err, "get", namespace)
	}
	if got.GetLabels()[managedBy] != program {
		return nil, fmt.Errorf("throttlepolicy/%s in namespace %s was not written by this plugin, which leaves it "+
			"alone: 'kubectl -n %[2]s edit throttlepolicy %[1]s' changes it", w.name(), namespace)
	}
	if was := matchOf(got); was != w.match {
		return nil, fmt.Errorf("throttlepolicy/%s in namespace %s is for pods %s, and not for %s: 'kubectl -n "+
			"%[2]s delete throttlepolicy %[1]s' removes it", w.name(), namespace, text.Shown(was), w.match)
	}
	return got, nil
}

// written is a policy after a write.
type written struct {
	*unstructured.Unstructured
	// made: there was none before. changed: there was another one.
	made, changed bool
}

// write makes the policy of a wish what is wished. dry asks the API server to check it, and to write nothing.
func (c *connected) write(ctx context.Context, namespace string, w wish, dry bool) (written, error) {
	before, err := c.there(ctx, namespace, w)
	if err != nil {
		return written{}, err
	}
	objects := c.objects(namespace)
	var run []string
	if dry {
		run = []string{meta.DryRunAll}
	}
	next := w.object(namespace)
	if before == nil {
		got, err := objects.Create(ctx, next,
			meta.CreateOptions{DryRun: run, FieldManager: program, FieldValidation: meta.FieldValidationStrict})
		return written{got, true, false}, said(err, "create", namespace)
	}
	if equality.Semantic.DeepEqual(before.Object["spec"], next.Object["spec"]) {
		return written{before, false, false}, nil
	}
	changed := before.DeepCopy()
	changed.Object["spec"] = runtime.DeepCopyJSONValue(next.Object["spec"])
	got, err := objects.Update(ctx, changed,
		meta.UpdateOptions{DryRun: run, FieldManager: program, FieldValidation: meta.FieldValidationStrict})
	return written{got, false, true}, said(err, "update", namespace)
}

// matchOf is the pattern of the first rule.
func matchOf(u *unstructured.Unstructured) string {
	rules, _, _ := unstructured.NestedSlice(u.Object, "spec", "rules") // another shape is another pattern
	if len(rules) == 0 {
		return ""
	}
	rule, _ := rules[0].(map[string]any)
	name, _, _ := unstructured.NestedString(rule, "match", "name")
	return name
}

// condition is one of the newest spec; ok: the agents have said it.
func condition(u *unstructured.Unstructured, kind string) (found meta.Condition, ok bool) {
	var status v1alpha1.PolicyStatus
	given, _, _ := unstructured.NestedMap(u.Object, "status")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(given, &status); err != nil ||
		status.ObservedGeneration != u.GetGeneration() {
		return found, false
	}
	for _, c := range status.Conditions {
		if c.Type == kind {
			return c, true
		}
	}
	return found, false
}
