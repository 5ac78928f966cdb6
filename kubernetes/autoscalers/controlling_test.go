package autoscalers

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

// cluster has one object for each spec, the first the oldest.
func cluster(t *testing.T, specs ...string) *fake.FakeDynamicClient {
	t.Helper()
	var all []runtime.Object
	for i, spec := range specs {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(fmt.Appendf(nil, "apiVersion: autoscaling.k8s.io/v1\nkind: VerticalPodAutoscaler\nspec: {%s}", spec),
			&u.Object); err != nil {
			t.Fatal(err)
		}
		u.SetNamespace("shop")
		u.SetName(fmt.Sprint("scaler-", len(specs)-i))
		u.SetCreationTimestamp(metav1.NewTime(time.Unix(int64(i), 0)))
		all = append(all, u)
	}
	return fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{Resource: "VerticalPodAutoscalerList"}, all...)
}

func TestControlling(t *testing.T) {
	const ofCart = "targetRef: {apiVersion: apps/v1, kind: Deployment, name: cart}"
	mode := func(mode string) string { return ofCart + ", updatePolicy: {updateMode: " + mode + "}" }
	policy := func(policy string) string { return ofCart + ", resourcePolicy: {containerPolicies: [" + policy + "]}" }
	for name, c := range map[string]struct {
		specs      []string
		guaranteed bool
		want       string
	}{
		"none":              {},
		"another workload":  {specs: []string{"targetRef: {kind: Deployment, name: cart-api}", "targetRef: {kind: StatefulSet, name: cart}"}},
		"no mode":           {specs: []string{ofCart}, want: "scaler-1 (updateMode Recreate)"},
		"in place":          {specs: []string{mode("InPlaceOrRecreate")}, want: "scaler-1 (updateMode InPlaceOrRecreate)"},
		"off":               {specs: []string{mode(`"Off"`)}},
		"as pods are made":  {specs: []string{mode("Initial")}},
		"the oldest counts": {specs: []string{mode(`"Off"`), mode("Auto"), ofCart}, want: "scaler-2 (updateMode Auto)"},
		"of its policy too": {specs: []string{policy(`{containerName: app, mode: "Off"}`), ofCart}},
		"memory alone":      {specs: []string{policy(`{containerName: "*", controlledResources: [memory]}`)}},
		"another container": {specs: []string{policy(`{containerName: proxy, mode: "Off"}`)}, want: "scaler-1 (updateMode Recreate)"},
		"requests alone":    {specs: []string{policy(`{containerName: app, controlledValues: RequestsOnly}`)}},
		"requests alone, which go with limits": {specs: []string{policy(`{containerName: app, controlledValues: RequestsOnly}`)},
			guaranteed: true, want: "scaler-1 (updateMode Recreate)"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &core.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart-7d9c5b8f6-x2x4x",
				Labels:          map[string]string{"pod-template-hash": "7d9c5b8f6"},
				OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "cart-7d9c5b8f6", Controller: new(true)}}}}
			if c.guaranteed {
				pod.Status.QOSClass = core.PodQOSGuaranteed
			}
			if c.want != "" {
				c.want = "VerticalPodAutoscaler " + c.want
			}
			got, err := Controlling(t.Context(), cluster(t, c.specs...), pod, "app")
			if err != nil || got != c.want {
				t.Errorf("%q, %v, want %q", got, err, c.want)
			}
			pod.OwnerReferences = nil
			if got, err := Controlling(t.Context(), cluster(t, c.specs...), pod, "app"); err != nil || got != "" {
				t.Errorf("of a pod that nothing makes: %q, %v", got, err)
			}
		})
	}
}

// TestNotTold: a cluster without the objects has none; any other error is one.
func TestNotTold(t *testing.T) {
	pod := &core.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop",
		OwnerReferences: []metav1.OwnerReference{{Kind: "StatefulSet", Name: "cart", Controller: new(true)}}}}
	ask := func(ctx context.Context, answer error) error {
		client := cluster(t)
		client.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, answer })
		got, err := Controlling(ctx, dynamic.Interface(client), pod, "app")
		if got != "" {
			t.Errorf("%q", got)
		}
		return err
	}
	if err := ask(t.Context(), apierrors.NewNotFound(Resource.GroupResource(), "")); err != nil {
		t.Error(err)
	}
	if err := ask(t.Context(), apierrors.NewForbidden(Resource.GroupResource(), "", errors.New("no"))); !apierrors.IsForbidden(err) {
		t.Error(err)
	}
}
