package realapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/unthrottle/unthrottle/internal/demand/nodedemand"
	"github.com/unthrottle/unthrottle/internal/demand/nodefit"
	"github.com/unthrottle/unthrottle/internal/demand/phases"
	"github.com/unthrottle/unthrottle/kubernetes/scheduler/pooleddemand"
	"github.com/unthrottle/unthrottle/test/apiserver"
	"github.com/unthrottle/unthrottle/test/wait"
)

// objectsOf are those of a file of YAML in this repository.
func objectsOf(t testing.TB, path ...string) (given []*unstructured.Unstructured) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{"..", "..", ".."}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	for d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		u := &unstructured.Unstructured{}
		if err := d.Decode(&u.Object); errors.Is(err, io.EOF) {
			return given
		} else if err != nil {
			t.Fatal(err)
		}
		if len(u.Object) > 0 {
			given = append(given, u)
		}
	}
}

// example are the objects of the example with those of the chart's golden file for demand.enabled but for the agents, and its scheduler's
// configuration.
func example(t testing.TB) (given []*unstructured.Unstructured, config map[string]any) {
	t.Helper()
	for _, u := range objectsOf(t, "packaging", "chart", "golden", "demand.yaml") {
		if kind := u.GetKind(); kind != "DaemonSet" && kind != "ConfigMap" {
			given = append(given, u)
		}
	}
	if len(given) != 6 {
		t.Fatalf("the golden file has %d objects", len(given))
	}
	for _, u := range objectsOf(t, "examples", "kubernetes", "scheduler.yaml") {
		if u.GetKind() == "ConfigMap" {
			text, _, err := unstructured.NestedString(u.Object, "data", "scheduler.yaml")
			if err != nil {
				t.Fatal(err)
			}
			if err := sigsyaml.Unmarshal([]byte(text), &config); err != nil {
				t.Fatal(err)
			}
		}
		given = append(given, u)
	}
	if config == nil {
		t.Fatal("the example has no ConfigMap")
	}
	return given, config
}

// install makes the example's objects, and waits until NodeDemands are served.
func (s *server) install(t testing.TB) (config map[string]any, objects dynamic.Interface) {
	t.Helper()
	given, config := example(t)
	objects, err := dynamic.NewForConfig(s.config)
	if err != nil {
		t.Fatal(err)
	}
	groups, err := restmapper.GetAPIGroupResources(s.client.Discovery())
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range given {
		kind := u.GroupVersionKind()
		mapping, err := restmapper.NewDiscoveryRESTMapper(groups).RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := objects.Resource(mapping.Resource).Namespace(u.GetNamespace()).Create(t.Context(), u,
			metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}); err != nil {
			t.Fatalf("%s %s: %v", kind.Kind, u.GetName(), err)
		}
	}
	wait.Until(t, "NodeDemands are served", func() bool {
		_, err := objects.Resource(pooleddemand.Resource).List(t.Context(), metav1.ListOptions{})
		return err == nil
	})
	return config, objects
}

// node makes a node of four CPUs.
func (s *server) node(t testing.TB, name, group string) {
	t.Helper()
	has := core.ResourceList{core.ResourceCPU: resource.MustParse("4"), core.ResourceMemory: resource.MustParse("8Gi"),
		core.ResourcePods: resource.MustParse("110")}
	n := &core.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"group": group}},
		Status: core.NodeStatus{Allocatable: has, Capacity: has}}
	if _, err := s.client.CoreV1().Nodes().Create(t.Context(), n, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// Admission taints a node until its kubelet says that it is ready.
	if _, err := s.client.CoreV1().Nodes().Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec": {"taints": null}}`),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// pod makes one that requests so many CPUs; on binds it by hand.
func (s *server) pod(t testing.TB, name, scheduler, group, on, cpus string) {
	t.Helper()
	p := &core.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: core.PodSpec{
		SchedulerName: scheduler, NodeName: on, NodeSelector: map[string]string{"group": group},
		Containers: []core.Container{{Name: "app", Image: "none", Resources: core.ResourceRequirements{
			Requests: core.ResourceList{core.ResourceCPU: resource.MustParse(cpus)}}}}}}
	if _, err := s.client.CoreV1().Pods("default").Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// demandOf is what a node tells of pods that always want so many CPUs.
func demandOf(node string, wants map[string]int) *unstructured.Unstructured {
	spec := nodedemand.Spec{Version: nodedemand.Version, Until: time.Now().UTC().Truncate(time.Second),
		Containers: []nodedemand.Container{}}
	for pod, cpus := range wants {
		c := nodedemand.Container{Namespace: "default", Pod: pod, Container: "app", Service: "default/" + pod + "/app", MostCPUs: cpus}
		for range phases.Count {
			c.Phases = append(c.Phases, nodedemand.Phase{180, float64(cpus)})
		}
		spec.Containers = append(spec.Containers, c)
	}
	return objectOf(node, spec)
}

// objectOf is a NodeDemand.
func objectOf(node string, spec nodedemand.Spec) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	text, err := json.Marshal(map[string]any{"apiVersion": "unthrottle.dev/v1alpha1", "kind": "NodeDemand",
		"metadata": map[string]any{"name": node}, "spec": spec})
	if err == nil {
		err = json.Unmarshal(text, &u.Object)
	}
	if err != nil {
		panic(err) // a value of our own
	}
	return u
}

// oversubscribing is the profile of docs/reference/scheduler.md.
func oversubscribing(t testing.TB) (profile any) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "scheduler.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(page), "```yaml\n- schedulerName:")
	text, _, ends := strings.Cut(text, "```")
	var profiles []any
	if err := sigsyaml.Unmarshal([]byte("- schedulerName:"+text), &profiles); err != nil || !found || !ends || len(profiles) != 1 {
		t.Fatalf("docs/reference/scheduler.md: no profile: %v", err)
	}
	return profiles[0]
}

// refused has a kubelet refuse a pod, as that of a node whose allocatable CPUs were not raised does. Then the node gets no further pod
// that makes its requests exceed it.
func (s *server) refused(t *testing.T, name, node string, placed func(name string) string) {
	t.Helper()
	pods := s.client.CoreV1().Pods("default")
	p, err := pods.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.Status.Phase, p.Status.Reason, p.Status.StartTime = core.PodFailed, "OutOfcpu", &metav1.Time{Time: time.Now()}
	if _, err := pods.UpdateStatus(t.Context(), p, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	tries, got := 0, ""
	// The scheduler may decide before it hears of the refusal, or that the pod of the try before is gone.
	wait.Until(t, "the node rests", func() bool {
		tries++
		next := fmt.Sprintf("next-%d", tries)
		s.pod(t, next, "unthrottle-oversubscribe", "low", "", "1")
		if got = placed(next); strings.Contains(got, pooleddemand.Rests) {
			return true
		}
		if err := pods.Delete(t.Context(), next, *metav1.NewDeleteOptions(0)); err != nil {
			t.Fatal(err)
		}
		return false
	}, func() string { return got })
}

// build builds a program of a module.
func build(t testing.TB, program, module, of string) {
	t.Helper()
	build := exec.CommandContext(t.Context(), "go", "-C", module, "build", "-o", program, of)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", of, err, out)
	}
}

// The real program, with the rights that the example gives it, places pods by what others on the node want.
func TestScheduler(t *testing.T) {
	s := newServer(t)
	config, objects := s.install(t)
	for name, group := range map[string]string{"low": "low", "busy": "busy", "calm": "scored", "hot": "scored"} {
		s.node(t, name, group)
	}
	// The requests of low are full and its pods idle; those of busy are not and its pod burns.
	for name, on := range map[string]string{"idle-a": "low", "idle-b": "low", "calm-a": "calm", "hot-a": "hot"} {
		s.pod(t, name, "none", map[string]string{"calm": "scored", "hot": "scored"}[on]+map[string]string{"low": "low"}[on], on, "2")
	}
	s.pod(t, "burns", "none", "busy", "busy", "1")
	s.tells(t, objects, "low", map[string]int32{"idle-a": 1, "idle-b": 0})
	for _, u := range []*unstructured.Unstructured{
		demandOf("busy", map[string]int{"burns": 4}), demandOf("calm", map[string]int{"calm-a": 0}),
		demandOf("hot", map[string]int{"hot-a": 3})} {
		if _, err := objects.Resource(pooleddemand.Resource).Create(t.Context(), u,
			metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}); err != nil {
			t.Fatal(err)
		}
	}
	config["profiles"] = append(config["profiles"].([]any), oversubscribing(t))
	config["clientConnection"] = map[string]any{"kubeconfig": s.kubeconfig(t, "unthrottle", "unthrottle-scheduler", nil)}
	text, err := sigsyaml.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	file, program := s.File("scheduler.yaml"), s.File("unthrottle-scheduler")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	build(t, program, "..", "./cmd/unthrottle-scheduler")
	scheduler := apiserver.Start(t, s.Dir, "scheduler", exec.Command(program, "--config", file, "--bind-address", "127.0.0.1",
		"--secure-port", "0", "--cert-dir", s.File("certificates")))

	// placed is where a pod is, or why it is nowhere.
	placed := func(name string) string {
		p, err := s.client.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range p.Status.Conditions {
			if c.Type == core.PodScheduled && c.Status == core.ConditionFalse {
				return c.Message
			}
		}
		return p.Spec.NodeName
	}
	for _, c := range []struct{ name, scheduler, group, cpus, want string }{
		{"plain", "unthrottle", "low", "1", "Insufficient cpu"},                     // off: requests count as ever
		{"fits", "unthrottle-oversubscribe", "low", "1", "low"},                     // requests are 1.25 times the node's
		{"more", "unthrottle-oversubscribe", "low", "2", nodefit.TooManyRequests},   // 1.75
		{"burning", "unthrottle-oversubscribe", "busy", "1", nodefit.TooMuchDemand}, // requests would fit
		{"unrefused", "unthrottle", "busy", "1", "busy"},                            // off: nobody refuses it
		{"chosen", "unthrottle", "scored", "1", "calm"},                             // equal requests
		{"chosen-again", "unthrottle-oversubscribe", "scored", "1", "calm"},
	} {
		s.pod(t, c.name, c.scheduler, c.group, "", c.cpus)
		wait.Until(t, c.name+" is decided on", func() bool { return scheduler.Ended() || placed(c.name) != "" },
			scheduler.Printed)
		if got := placed(c.name); !strings.Contains(got, c.want) || scheduler.Ended() {
			t.Errorf("%s: %q, want %s\n%s", c.name, got, c.want, scheduler.Printed())
		}
	}
	said := ""
	wait.Until(t, "the pod is told", func() bool {
		all, err := s.client.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		said = ""
		for _, e := range all.Items {
			if e.Reason == pooleddemand.Reason {
				said += fmt.Sprintln(e.InvolvedObject.Name, e.Message)
			}
		}
		return said != ""
	}, scheduler.Printed)
	if !strings.HasPrefix(said, "fits requests of CPU on low are now 1.25 times what it has (at most 1.50)") ||
		strings.Count(said, "\n") != 1 {
		t.Errorf("events: %s", said)
	}
	// Else it could take the place of the pod that is refused, and the node would be too full to say that it rests.
	if err := s.client.CoreV1().Pods("default").Delete(t.Context(), "more", *metav1.NewDeleteOptions(0)); err != nil {
		t.Fatal(err)
	}
	s.refused(t, "fits", "low", func(name string) string {
		wait.Until(t, name+" is decided on", func() bool { return scheduler.Ended() || placed(name) != "" },
			scheduler.Printed)
		return placed(name)
	})
}
