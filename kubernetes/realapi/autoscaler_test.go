package realapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The pods of the test: each wants three times what its autoscaler allows for, and uses all of its limit.
const (
	wanted = "2100m"
	limit  = "500m"
)

// metricsAPIs stands for the Prometheus adapter and the metrics server: it answers custom.metrics.k8s.io with what pods
// want, and metrics.k8s.io with what they use.
func metricsAPIs(t *testing.T, pods func() []core.Pod) (port int) {
	t.Helper()
	of := func(selector string) (found []core.Pod) {
		for _, p := range pods() {
			if "app="+p.Labels["app"] == selector {
				found = append(found, p)
			}
		}
		return found
	}
	type object = map[string]any
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		selector, now, items := r.URL.Query().Get("labelSelector"), time.Now().UTC().Format(time.RFC3339), []object{}
		list := func(group, name, kind string) object {
			return object{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group, "resources": []object{
				{"name": name, "singularName": "", "namespaced": true, "kind": kind, "verbs": []string{"get", "list"}}}}
		}
		var answer object
		switch r.URL.Path {
		case "/apis/custom.metrics.k8s.io/v1beta2":
			answer = list("custom.metrics.k8s.io/v1beta2", "pods/wanted_cpus", "MetricValueList")
		case "/apis/metrics.k8s.io/v1beta1":
			answer = list("metrics.k8s.io/v1beta1", "pods", "PodMetrics")
		case "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/pods/*/wanted_cpus":
			for _, p := range of(selector) {
				items = append(
					items,
					object{
						"describedObject": object{
							"kind":       "Pod",
							"apiVersion": "/v1",
							"namespace":  "shop",
							"name":       p.Name,
						},
						"metric":    object{"name": "wanted_cpus"},
						"timestamp": now,
						"value":     wanted,
					},
				)
			}
			answer = object{
				"kind":       "MetricValueList",
				"apiVersion": "custom.metrics.k8s.io/v1beta2",
				"metadata":   object{},
				"items":      items,
			}
		case "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods":
			for _, p := range of(selector) {
				items = append(
					items,
					object{
						"metadata":   object{"namespace": "shop", "name": p.Name, "labels": p.Labels},
						"timestamp":  now,
						"window":     "30s",
						"containers": []object{{"name": "app", "usage": object{"cpu": limit}}},
					},
				)
			}
			answer = object{
				"kind":       "PodMetricsList",
				"apiVersion": "metrics.k8s.io/v1beta1",
				"metadata":   object{},
				"items":      items,
			}
		default:
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	if err == nil {
		port, err = strconv.Atoi(at.Port())
	}
	if err != nil {
		t.Fatal(err)
	}
	return port
}

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

// TestAutoscaler: the page's HorizontalPodAutoscaler, by a real controller, asks at once for what is missing by what
// pods want. By their use, which cannot exceed the limit, it asks for one replica more.
func TestAutoscaler(t *testing.T) {
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
	port := metricsAPIs(t, func() []core.Pod {
		list, err := s.client.CoreV1().Pods("shop").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return nil // the test has ended
		}
		return list.Items
	})
	apis := "apiVersion: v1\nkind: Service\nmetadata: {name: metrics, namespace: shop}\nspec: {type: ExternalName, " +
		"externalName: localhost}\n"
	for _, of := range []string{"v1beta2.custom.metrics.k8s.io", "v1beta1.metrics.k8s.io"} {
		version, group, _ := strings.Cut(of, ".")
		apis += fmt.Sprintf(
			"---\napiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: %s}\nspec: {group: %s, version: %s, "+
				"service: {namespace: shop, name: metrics, port: %d}, insecureSkipTLSVerify: true, "+
				"groupPriorityMinimum: 100, versionPriority: 100}\n",
			of,
			group,
			version,
			port,
		)
	}
	s.makes("metrics", docs(t, []byte(apis)))
	s.saturated("checkout")
	s.saturated("by-use")

	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "howto", "prometheus.md"))
	if err != nil {
		t.Fatal(err)
	}
	recipe := regexp.MustCompile("(?s)```yaml\n(apiVersion: autoscaling/v2\n.*?)```").FindSubmatch(page)
	if recipe == nil {
		t.Fatal("the page has no HorizontalPodAutoscaler")
	}
	byWanted := docs(t, recipe[1])[0]
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
	s.makes("autoscalers", []*unstructured.Unstructured{byWanted, byUse})

	manager := start(
		t,
		s.dir,
		"controller-manager",
		exec.Command(
			filepath.Join(s.bin, "kube-controller-manager"),
			"--kubeconfig",
			s.kubeconfig(adminToken),
			"--leader-elect=false",
			"--controllers=horizontal-pod-autoscaler-controller",
			"--horizontal-pod-autoscaler-sync-period=1s",
			"--bind-address=127.0.0.1",
			"--secure-port="+fmt.Sprint(freePorts(t, 1)[0]),
			"--cert-dir",
			s.file("manager"),
		),
	)
	replicas := func(name string) int32 {
		d, err := s.client.AppsV1().Deployments("shop").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return *d.Spec.Replicas
	}
	why := func() string {
		return fmt.Sprintln(
			replicas("checkout"),
			replicas("by-use"),
		) + said(
			s.now(byWanted),
		) + said(
			s.now(byUse),
		) + manager.printed()
	}
	eventually(t, "by what pods want six replicas, by their use three", func() bool {
		return replicas("checkout") == 6 && replicas("by-use") == 3
	}, why)
}
