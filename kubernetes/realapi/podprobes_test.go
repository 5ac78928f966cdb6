package realapi

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unthrottle/unthrottle/internal/agent/answers"
	"github.com/unthrottle/unthrottle/test/apiserver"
	"github.com/unthrottle/unthrottle/test/wait"
)

// probedPod makes one on a node, whose container runs as a kubelet would say.
func (s *server) probedPod(node, name string) *core.Pod {
	s.t.Helper()
	pods := s.client.CoreV1().Pods("shop-a")
	pod, err := pods.Create(s.t.Context(), &core.Pod{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: core.PodSpec{NodeName: node,
			Containers: []core.Container{{Name: "app", Image: "app",
				LivenessProbe: &core.Probe{ // the rest is the API's defaults
					ProbeHandler: core.ProbeHandler{Exec: &core.ExecAction{Command: []string{"true"}}}}}}}},
		metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	began := metav1.NewTime(time.Now().Add(-time.Minute).Truncate(time.Second))
	pod.Status.ContainerStatuses = []core.ContainerStatus{{Name: "app", ContainerID: "containerd://id-" + name,
		Started: new(true),
		State:   core.ContainerState{Running: &core.ContainerStateRunning{StartedAt: began}}, RestartCount: 1,
		LastTerminationState: core.ContainerState{Terminated: &core.ContainerStateTerminated{ExitCode: 137,
			Reason:    "Error",
			StartedAt: began, FinishedAt: began}}}}
	if pod, err = pods.UpdateStatus(s.t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	return pod
}

// TestPodProbes: with the chart's rights the pods of the own node reach the file, and a finding becomes an event of its
// pod.
func TestPodProbes(t *testing.T) {
	s := newServer(t)
	s.install("policies")
	if _, err := s.client.CoreV1().ServiceAccounts("shop-a").Create(t.Context(),
		&core.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	cart := s.probedPod("n1", "cart")
	s.probedPod("n2", "etl")
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/trials" {
			_ = json.NewEncoder(w).Encode(answers.Trials{Schema: answers.TrialsSchema, Version: answers.Version})
			return
		}
		_ = json.NewEncoder(w).Encode(answers.Probes{Schema: answers.ProbesSchema, Version: answers.Version,
			Findings: []answers.ProbeFinding{{Namespace: "shop-a", Pod: "cart", UID: string(cart.UID), Container: "app",
				Probe: answers.PodProbe{Probe: "liveness"}, Says: "liveness probe: too late"}}})
	}))
	defer agent.Close()
	base, file := s.File("unthrottle.yaml"), s.File("pods.json")
	if err := os.WriteFile(base, []byte(chartFile(t, "policies")), 0o600); err != nil {
		t.Fatal(err)
	}
	begin := func() *apiserver.Process {
		cmd := exec.Command(s.program(), append(arguments(t, "probes", "policies"), "--base", base, "--out",
			s.File("rules.yaml"),
			"--kubeconfig", s.kubeconfig(s.token("unthrottle", "unthrottle")), "--pods", file, "--agent", agent.URL,
			"--lease-interval", "1s")...)
		cmd.Env = append(os.Environ(), "POD_NAME=a", "POD_NAMESPACE=unthrottle", "NODE_NAME=n1")
		return apiserver.Start(t, s.Dir, "sidecar", cmd)
	}
	told := func() string {
		text, _ := os.ReadFile(file) // it may not be there yet
		return string(text)
	}

	p := begin()
	wait.Until(t, "without the right to watch pods it says so", func() bool {
		return strings.Contains(p.Printed(), "the node's pods cannot be read") &&
			strings.Contains(p.Printed(), "rules written")
	}, p.Printed)
	if got := told(); got != "" {
		t.Errorf("it was told %s", got)
	}
	_ = p.End(syscall.SIGTERM)
	if err := os.Truncate(p.Log, 0); err != nil {
		t.Fatal(err)
	}

	var rights []*unstructured.Unstructured
	for _, u := range golden(t, "probes") {
		if u.GetKind() != "DaemonSet" {
			rights = append(rights, u)
		}
	}
	s.makes("probes", rights)
	p = begin()
	wait.Until(t, "the pod is told", func() bool {
		got := told()
		return strings.Contains(got, `"id":"id-cart"`) && strings.Contains(got, `"handler":"exec","timeout_seconds":1,`+
			`"period_seconds":10,"failure_threshold":3`) && strings.Contains(got, `"exit_code":137`)
	}, func() string { return told() + p.Printed() })
	if strings.Contains(told(), "etl") {
		t.Errorf("a pod of another node is told: %s", told())
	}
	events := func() string {
		list, err := s.client.CoreV1().Events("shop-a").List(t.Context(),
			metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(cart.UID)})
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, e := range list.Items {
			all = append(all, e.Type+" "+e.Reason+": "+e.Message)
		}
		return strings.Join(all, "\n")
	}
	wait.Until(t, "an event of the pod",
		func() bool { return events() == "Warning ProbeMissesByQuota: liveness probe: too late" },
		func() string { return events() + p.Printed() })
	if got := p.Printed(); strings.Contains(got, "forbidden") || strings.Contains(got, "level=WARN") {
		t.Errorf("with the chart's rights it says: %s", got)
	}
	s.probedPod("n1", "later")
	wait.Until(t, "a pod that comes later is told", func() bool { return strings.Contains(told(), `"id":"id-later"`) }, p.Printed)
}
