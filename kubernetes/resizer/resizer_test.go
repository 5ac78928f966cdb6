package resizer

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"

	"github.com/unthrottle/unthrottle/internal/podresize"
	"github.com/unthrottle/unthrottle/internal/podresize/sidecar"
	"github.com/unthrottle/unthrottle/kubernetes/autoscalers"
)

func cpu(limit string) core.ResourceList {
	return core.ResourceList{core.ResourceCPU: resource.MustParse(limit),
		core.ResourceMemory: resource.MustParse("64Mi")}
}

// pod has a container and a sidecar of its own.
func pod() *core.Pod {
	always := core.ContainerRestartPolicyAlways
	return &core.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart", UID: "one", Generation: 3},
		Spec: core.PodSpec{
			Containers: []core.Container{{Name: "app", Resources: core.ResourceRequirements{Limits: cpu("500m"),
				Requests: cpu("100m")}}},
			InitContainers: []core.Container{{Name: "proxy", RestartPolicy: &always,
				Resources: core.ResourceRequirements{Limits: cpu("0.2")}}}},
		Status: core.PodStatus{QOSClass: core.PodQOSBurstable, ContainerStatuses: []core.ContainerStatus{{Name: "app",
			ContainerID: "containerd://abc", Resources: &core.ResourceRequirements{Limits: cpu("500m")}}}}}
}

// cluster has autoscalers.
func cluster(scalers ...runtime.Object) *dynamicfake.FakeDynamicClient {
	return dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{autoscalers.Resource: "VerticalPodAutoscalerList"}, scalers...)
}

// start serves a client's cluster and its autoscalers on a socket, and returns the agent's end.
func start(t *testing.T, client *fake.Clientset, scalers ...runtime.Object) podresize.FS {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	ctx, cancel := context.WithCancel(t.Context())
	objects := cluster(scalers...)
	done := make(chan error, 1)
	listens := make(chan struct{})
	go func() { done <- Serve(ctx, socket, client, objects, slog.New(told{slog.DiscardHandler, listens})) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-listens:
	case err := <-done:
		t.Fatal(err)
	}
	return sidecar.New(socket)
}

// told tells of the first line.
type told struct {
	slog.Handler
	first chan struct{}
}

func (told) Enabled(context.Context, slog.Level) bool { return true }

func (t told) Handle(context.Context, slog.Record) error {
	select {
	case <-t.first:
	default:
		close(t.first)
	}
	return nil
}

func TestResize(t *testing.T) {
	client := fake.NewClientset(pod())
	conflicts := 2
	client.PrependReactor("patch", "pods", func(a kubetesting.Action) (bool, runtime.Object, error) {
		if a.GetSubresource() != "resize" {
			t.Errorf("patched %q", a.GetSubresource())
		}
		if conflicts--; conflicts >= 0 {
			return true, nil, apierrors.NewConflict(core.Resource("pods"), "cart", errors.New("the kubelet wrote it"))
		}
		return false, nil, nil
	})
	pods := start(t, client)
	got, err := pods.Read(t.Context(), "shop/cart/app")
	if want := (podresize.CPU{UID: "one", ID: "abc", Limit: 500, Actual: 500}); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	for _, w := range []struct {
		name     string
		from, to podresize.Milli
	}{{"shop/cart/app", 500, 1250}, {"shop/cart/proxy", 200, 400}} {
		if err := pods.Write(t.Context(), w.name, w.from, w.to); err != nil {
			t.Fatal(err)
		}
		if got, err := pods.Read(t.Context(), w.name); err != nil || got.Limit != w.to {
			t.Errorf("%s: %+v, %v", w.name, got, err)
		}
	}
	is, err := client.CoreV1().Pods("shop").Get(t.Context(), "cart", metav1.GetOptions{})
	if err != nil || is.Spec.Containers[0].Resources.Requests.Cpu().String() != "100m" ||
		is.Spec.Containers[0].Resources.Limits.Memory().String() != "64Mi" {
		t.Errorf("beside the limit it changed %+v, %v", is.Spec.Containers[0].Resources, err)
	}
	if err := pods.Write(t.Context(), "shop/cart/app", 500, 2000); !errors.Is(err, podresize.ErrChanged) {
		t.Errorf("from another value: %v", err)
	}
	for _, gone := range []string{"shop/cart/none", "shop/other/app"} {
		if _, err := pods.Read(t.Context(), gone); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", gone, err)
		}
	}
	if _, err := pods.Read(t.Context(), "cart/app"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no name of a container: %v", err)
	}
	events, err := client.CoreV1().Events("shop").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(events.Items) == 0 ||
		events.Items[0].Message != "unthrottle set limits.cpu of container app from 500m to 1250m" {
		t.Errorf("%+v, %v", events, err)
	}
}

// The request of a Guaranteed pod goes with its limit; what the API server refuses comes back in its words.
func TestGuaranteedAndRefused(t *testing.T) {
	p := pod()
	p.Status.QOSClass = core.PodQOSGuaranteed
	p.Spec.Containers[0].Resources.Requests = cpu("500m")
	client := fake.NewClientset(p)
	pods := start(t, client)
	if err := pods.Write(t.Context(), "shop/cart/app", 500, 1000); err != nil {
		t.Fatal(err)
	}
	is, err := client.CoreV1().Pods("shop").Get(t.Context(), "cart", metav1.GetOptions{})
	if err != nil || is.Spec.Containers[0].Resources.Requests.Cpu().String() != "1" {
		t.Errorf("%+v, %v", is.Spec.Containers[0].Resources, err)
	}
	client.PrependReactor("patch", "pods", func(kubetesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(core.Resource("pods"), "cart",
			errors.New("exceeded quota: cpu, requested: 1"))
	})
	refused := new(podresize.Refused)
	if err := pods.Write(t.Context(), "shop/cart/app", 1000, 2000); !errors.As(err, &refused) || refused.Reason != "" ||
		!strings.Contains(err.Error(), "the API server refuses it: pods \"cart\" is forbidden: exceeded quota") {
		t.Errorf("%v", err)
	}
}

// What the kubelet says of an earlier resize does not count.
func TestConditions(t *testing.T) {
	p := pod()
	p.Spec.Resources = &core.ResourceRequirements{Limits: cpu("2")}
	p.Spec.Containers[0].ResizePolicy = []core.ContainerResizePolicy{{ResourceName: core.ResourceCPU,
		RestartPolicy: core.RestartContainer}}
	p.Status.Conditions = []core.PodCondition{
		{Type: core.PodResizePending, Status: core.ConditionTrue, Reason: core.PodReasonInfeasible, Message: "earlier",
			ObservedGeneration: 2},
		{Type: core.PodResizeInProgress, Status: core.ConditionTrue, Message: "now", ObservedGeneration: 3}}
	if got := cpuOf(p, &p.Spec.Containers[0]); got.Pending != "" || !got.Running || got.Message != "now" ||
		!got.PodLevel || !got.Restarts {
		t.Errorf("%+v", got)
	}
	p.Status.ContainerStatuses[0].Ready = true
	if cpuOf(p, &p.Spec.Containers[0]).Ready {
		t.Error("no probe says that it is ready")
	}
	p.Spec.Containers[0].ReadinessProbe = &core.Probe{}
	if !cpuOf(p, &p.Spec.Containers[0]).Ready {
		t.Error("its readiness probe says that it is ready")
	}
	p.Status.Conditions[0].ObservedGeneration = 3
	if got := cpuOf(p, &p.Spec.Containers[0]); got.Pending != podresize.PendingInfeasible || got.Message != "earlier" {
		t.Errorf("%+v", got)
	}
}

// The agent is told of the autoscaler that resizes a pod, and of an answer that is missing; both let it take back what is in force.
func TestAutoscaler(t *testing.T) {
	p := pod()
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "StatefulSet", Name: "cart", Controller: new(true)}}
	scaler := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler",
		"metadata": map[string]any{"namespace": "shop", "name": "of-cart"},
		"spec":     map[string]any{"targetRef": map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "cart"}}}}
	pods := start(t, fake.NewClientset(p), scaler)
	const want = "VerticalPodAutoscaler of-cart (updateMode Recreate)"
	if got, err := pods.Read(t.Context(), "shop/cart/app"); err != nil || got.Autoscaler != want || got.Untold != "" {
		t.Errorf("%+v, %v", got, err)
	}
	if err := pods.Write(t.Context(), "shop/cart/app", 500, 400); err != nil {
		t.Errorf("what is in force cannot be taken back: %v", err)
	}
	objects := cluster()
	objects.PrependReactor("list", "*", func(kubetesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(autoscalers.Resource.GroupResource(), "", errors.New("no"))
	})
	r := &resizer{objects: objects}
	if name, untold := r.autoscaler(t.Context(), p, place{"shop", "cart", "app"}); name != "" ||
		!strings.HasPrefix(untold, "verticalpodautoscalers.autoscaling.k8s.io is forbidden: ") ||
		!strings.HasSuffix(untold, ": upgrade the chart") {
		t.Errorf("%q, %q", name, untold)
	}
}
