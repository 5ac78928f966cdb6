package realapi

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/demand/nodedemand"
	"github.com/unthrottle/unthrottle/internal/demand/store"
	"github.com/unthrottle/unthrottle/kubernetes/scheduler/pooleddemand"
	"github.com/unthrottle/unthrottle/test/apiserver"
	"github.com/unthrottle/unthrottle/test/wait"
)

// rowsOf are those of the last hours of a node whose pods always want so many CPUs.
func rowsOf(node string, wants map[string]int32) (rows []demand.Row) {
	newest := time.Now().UTC().Truncate(demand.SlotLength).Add(-demand.SlotLength)
	for pod, cpus := range wants {
		for i := range 24 {
			start := newest.Add(-time.Duration(i) * demand.SlotLength)
			wanted := 300 * float64(cpus)
			rows = append(rows, demand.Row{Schema: demand.SchemaVersion, Start: start, Began: start, Seconds: 300, Node: node,
				Namespace: "default", Pod: pod, Container: "app", Service: "default/" + pod + "/app", Cgroup: demand.CgroupOf("/" + pod),
				WantedCPUSeconds: &wanted, Wanted: []demand.Level{{CPUs: cpus, Microseconds: 300e6}}})
		}
	}
	return rows
}

// tells has the real container demand of a node's agent write what the node's pods want, of the agent's rows, with the rights of the
// chart. It may write the object of no other node.
func (s *server) tells(t testing.TB, objects dynamic.Interface, node string, wants map[string]int32) {
	t.Helper()
	pod, err := s.client.CoreV1().Pods("unthrottle").Create(t.Context(), &core.Pod{ObjectMeta: metav1.ObjectMeta{Name: "agent-" + node},
		Spec: core.PodSpec{NodeName: node, ServiceAccountName: "unthrottle", Containers: []core.Container{{Name: "agent", Image: "none"}}}},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := s.kubeconfig(t, "unthrottle", "unthrottle", pod)
	program, base, rows := s.File("unthrottle-kubernetes"), s.File("agent.yaml"), s.File("rows")
	if err := os.WriteFile(base, []byte(fmt.Sprintf("version: 1\nexport: {dir: %s}\n", rows)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := store.Write(rows, rowsOf(node, wants)); err != nil {
		t.Fatal(err)
	}
	build(t, program, "../..", "./cmd/unthrottle-kubernetes")
	writer := func(of string) *apiserver.Process {
		return apiserver.Start(t, s.Dir, "demand-"+of, exec.Command(program, "demand", "--base", base, "--kubeconfig", kubeconfig,
			"--node", of, "--look-interval", "200ms"))
	}
	own := writer(node)
	var told nodedemand.Spec
	wait.Until(t, "the node's object is there", func() bool {
		u, err := objects.Resource(pooleddemand.Resource).Get(t.Context(), node, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false
		}
		if err != nil {
			t.Fatal(err)
		}
		if owners := u.GetOwnerReferences(); len(owners) != 1 || owners[0].Kind != "Node" || owners[0].Name != node || owners[0].UID == "" {
			t.Fatalf("its owners are %+v: the cluster would not delete it with its Node", owners)
		}
		text, err := json.Marshal(u.Object["spec"])
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &told); err != nil {
			t.Fatal(err)
		}
		return true
	}, own.Printed)
	if err := told.Check(); err != nil || len(told.Containers) != len(wants) || time.Since(told.Until) > 2*demand.SlotLength {
		t.Errorf("%v: %+v", err, told)
	}
	version := s.version(t, objects, node)
	defer func() { // after many looks
		if s.version(t, objects, node) != version {
			t.Error("it was written again although nothing changed")
		}
	}()
	// The rows of another node, and its name: the rights are the same, and the admission policy refuses them.
	if err := store.Write(rows, rowsOf("busy", map[string]int32{"burns": 0})); err != nil {
		t.Fatal(err)
	}
	other := writer("busy")
	wait.Until(t, "another node's object is refused", func() bool {
		return strings.Contains(other.Printed(), "an agent on node "+node+" may write the object of that node only")
	}, other.Printed)
	if _, err := objects.Resource(pooleddemand.Resource).Get(t.Context(), "busy", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("another node's object: %v", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	agent, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Resource(pooleddemand.Resource).Delete(t.Context(), node, metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("an agent may delete an object: %v", err)
	}
}

// version is that of a node's object.
func (s *server) version(t testing.TB, objects dynamic.Interface, node string) string {
	t.Helper()
	u, err := objects.Resource(pooleddemand.Resource).Get(t.Context(), node, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return u.GetResourceVersion()
}
