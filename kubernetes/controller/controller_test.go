package controller

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/unthrottle/unthrottle/kubernetes/api/v1alpha1"
	"github.com/unthrottle/unthrottle/kubernetes/rollouts"
	"github.com/unthrottle/unthrottle/test/wait"
)

const base = "version: 1\nmode: apply\n"

// running starts a controller. what it writes is in the file.
func running(t *testing.T, client dynamic.Interface, change ...func(*Options)) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "rules.yaml")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		o := Options{Client: client, Leases: &leasesInMemory{}, Base: []byte(base), Out: file,
			Identity: "pod-a", Namespace: "unthrottle", LeaseName: "policies",
			LeastInterval: time.Millisecond, LeaseInterval: 200 * time.Millisecond, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
		for _, c := range change {
			c(&o)
		}
		done <- Run(ctx, o)
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the controller: %v", err)
		}
	})
	if model, ok := client.(*fake.FakeDynamicClient); ok { // it forgets what changes between a list and the watch after it
		wait.Until(t, "policies are watched", func() bool {
			return slices.ContainsFunc(model.Actions(), func(a clienttesting.Action) bool {
				return a.GetVerb() == "watch" && a.GetResource() == namespaced
			})
		})
	}
	return file
}

func aPolicy(namespace, name string, rules ...any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"rules": rules}}}
	u.SetAPIVersion(group.String())
	u.SetKind("ThrottlePolicy")
	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetGeneration(1)
	u.SetUID("uid-1")
	return u
}

func has(file, text string) func() bool {
	return func() bool {
		data, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(data), text)
	}
}

func newClient(objects ...runtime.Object) *fake.FakeDynamicClient {
	return fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		namespaced: "ThrottlePolicyList", clusterWide: "ClusterThrottlePolicyList", events: "EventList",
		rollouts.Pods: "PodList",
		{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}: "PodDisruptionBudgetList"}, objects...)
}

// TestController: a policy reaches the file, a mistake reaches its status with the field, and the last good one stays.
func TestController(t *testing.T) {
	ctx := t.Context()
	client := newClient(aPolicy("shop", "cart", map[string]any{"remedy": "none"}))
	file := running(t, client)
	resourceInterface := client.Resource(namespaced).Namespace("shop")
	accepted := func(status metav1.ConditionStatus, says string) func() bool {
		return func() bool {
			u, err := resourceInterface.Get(ctx, "cart", metav1.GetOptions{})
			if err != nil {
				return false
			}
			c := condition(statusIn(u).Conditions, v1alpha1.ConditionAccepted)
			return c != nil && c.Status == status && strings.Contains(c.Message, says)
		}
	}
	wait.Until(t, "the rule is in the file", has(file, `"remedy": "none"`))
	wait.Until(t, "it is accepted", accepted(metav1.ConditionTrue, "in force"))
	u, err := resourceInterface.Get(ctx, "cart", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	u.Object["spec"] = map[string]any{"rules": []any{map[string]any{"remedy": "pray"}}}
	u.SetGeneration(2)
	if _, err := resourceInterface.Update(ctx, u, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the mistake is named", accepted(metav1.ConditionFalse, `spec.rules[0].remedy: "pray": choose from`))
	if !accepted(metav1.ConditionFalse, "(generation 1) stays in force")() || !has(file, `"remedy": "none"`)() {
		t.Error("the last good one does not stay in force")
	}
	told := 0
	list, err := client.Resource(events).Namespace("shop").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list.Items {
		if message, _, _ := unstructured.NestedString(e.Object, "message"); strings.Contains(message,
			"spec.rules[0].remedy") && e.Object["type"] == "Warning" {
			told++
		}
	}
	// The fake API has no generated names, so that the second event is the first one's conflict: at least one event is there.
	if len(list.Items) == 0 {
		t.Errorf("no event; %d of the mistake", told)
	}
	if err := resourceInterface.Delete(ctx, "cart", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "a policy that is deleted leaves the file", func() bool { return !has(file, `"remedy"`)() })
}
