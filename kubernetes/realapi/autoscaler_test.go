package realapi

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unthrottle/unthrottle/test/apiserver"
	"github.com/unthrottle/unthrottle/test/wait"
)

// The pods of the test: each wants three times what its autoscaler allows for, and uses all of its limit.
const (
	wanted = 2.1 // CPUs
	limit  = "500m"
)

// saturated makes a Deployment of two pods that use all of their limit. No controller makes the pods of more replicas.
func (s *server) saturated(name string) {
	s.t.Helper()
	labels, cpu := map[string]string{"app": name}, core.ResourceList{core.ResourceCPU: resource.MustParse(limit)}
	spec := core.PodSpec{
		NodeName: "n1",
		Containers: []core.Container{{Name: "app", Image: "app", Resources: core.ResourceRequirements{
			Requests: cpu, Limits: cpu}}},
	}
	if _, err := s.client.AppsV1().Deployments("shop").Create(s.t.Context(),
		&apps.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: apps.DeploymentSpec{Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: core.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec}}},
		metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	began := metav1.NewTime(time.Now().Add(-time.Hour))
	for i := range 2 {
		pods := s.client.CoreV1().Pods("shop")
		pod, err := pods.Create(
			s.t.Context(),
			&core.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(name, "-", i), Labels: labels},
				Spec: spec},
			metav1.CreateOptions{},
		)
		if err != nil {
			s.t.Fatal(err)
		}
		pod.Status = core.PodStatus{
			Phase:     core.PodRunning,
			StartTime: &began,
			Conditions: []core.PodCondition{{Type: core.PodReady,
				Status: core.ConditionTrue, LastTransitionTime: began}},
		}
		if _, err := pods.UpdateStatus(s.t.Context(), pod, metav1.UpdateOptions{}); err != nil {
			s.t.Fatal(err)
		}
	}
}

// wanting are the counters of what each pod's threads want.
func (s *server) wanting() (all []counter) {
	for _, pod := range s.podsOf("") {
		all = append(all, counter{instance: "agents", name: "unthrottle_container_wanted_cpu_seconds_total",
			labels: fmt.Sprintf(`id=%q,namespace="shop",pod=%q,container="app"`, "/"+pod, pod), perSecond: wanted})
	}
	return all
}

// TestAutoscaler: the page's HorizontalPodAutoscaler with the Prometheus adapter, and its ScaledObject with KEDA, ask at once for
// what is missing by what pods want. By their use, which cannot exceed the limit, an autoscaler asks for one replica more.
func TestAutoscaler(t *testing.T) {
	bin := os.Getenv(adapterBinaries)
	if bin == "" {
		t.Skipf("%s does not name a folder with Prometheus, its adapter and KEDA: make e2e-autoscaler", adapterBinaries)
	}
	s := newServer(t)
	if _, err := s.client.CoreV1().Namespaces().Create(t.Context(),
		&core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.client.CoreV1().ServiceAccounts("shop").Create(t.Context(),
		&core.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"checkout", "by-keda", "by-use"} {
		s.saturated(name)
	}
	prometheus := s.startPrometheus(bin, s.wanting)
	adapter, custom := s.startAdapter(bin, prometheus, recipe(t, "rules:"))
	keda, operator, external := s.startKEDA(bin)
	s.behind("v1beta2", "custom.metrics.k8s.io", adapter)
	s.behind("v1beta1", "external.metrics.k8s.io", keda)
	s.behind("v1beta1", "metrics.k8s.io", usedMetrics(t, s.podsOf))

	byWanted := docs(t, []byte(recipe(t, "apiVersion: autoscaling/v2")))[0]
	byUse := byWanted.DeepCopy()
	byUse.SetName("by-use")
	for _, set := range []struct {
		to any
		at []string
	}{{"by-use", []string{"spec", "scaleTargetRef", "name"}},
		{[]any{map[string]any{"type": "Resource", "resource": map[string]any{
			"name": "cpu", "target": map[string]any{"type": "Utilization", "averageUtilization": int64(70)}}}},
			[]string{"spec", "metrics"}}} {
		if err := unstructured.SetNestedField(byUse.Object, set.to, set.at...); err != nil {
			t.Fatal(err)
		}
	}
	scaled := strings.NewReplacer("checkout", "by-keda", "http://prometheus.monitoring:9090", prometheus).
		Replace(recipe(t, "apiVersion: keda.sh"))
	byKEDA := docs(t, []byte(scaled))[0]
	s.makes("autoscalers", []*unstructured.Unstructured{byWanted, byUse, byKEDA})

	manager := s.manager("horizontal-pod-autoscaler-controller", "--horizontal-pod-autoscaler-sync-period=1s")
	replicas := func(name string) int32 {
		d, err := s.client.AppsV1().Deployments("shop").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return *d.Spec.Replicas
	}
	why := func() string {
		text := ""
		for _, u := range []*unstructured.Unstructured{byWanted, byKEDA, byUse} {
			text += fmt.Sprintf("%s %s: %d replicas\n%s", u.GetKind(), u.GetName(), replicas(u.GetName()), said(s.now(u)))
		}
		for _, p := range []*apiserver.Process{custom, operator, external, manager} {
			all := p.Printed()
			text += fmt.Sprintf("%s:\n%s\n", filepath.Base(p.Log), all[max(0, len(all)-4000):])
		}
		return text
	}
	wait.Until(t, "by what pods want six replicas, by their use three", func() bool {
		return replicas("checkout") == 6 && replicas("by-keda") == 6 && replicas("by-use") == 3
	}, why)
}

// recipe is the YAML of the page on Prometheus that begins so.
func recipe(t *testing.T, begins string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "howto", "prometheus.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```yaml\n(" + regexp.QuoteMeta(begins) + ".*?)```").FindSubmatch(page)
	if found == nil {
		t.Fatalf("the page has no YAML that begins with %q", begins)
	}
	return string(found[1])
}
