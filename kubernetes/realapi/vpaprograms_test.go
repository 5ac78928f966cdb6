package realapi

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unthrottle/unthrottle/test/apiserver"
	"github.com/unthrottle/unthrottle/test/wait"
)

// vpaBinaries is the variable that names the folder with the Vertical Pod Autoscaler's programs, and its objects in deploy.
const vpaBinaries = "UNTHROTTLE_VPA_BIN"

// scaler is this project's recommender beside the Vertical Pod Autoscaler's own programs.
type scaler struct {
	*recommender
	// updater and others print what they do; looks and recommends are where the updater and their recommender count their rounds.
	updater           *apiserver.Process
	others            []*apiserver.Process
	looks, recommends string
}

// scaler starts the programs, each with the rights of its own service account, and waits until pods come through the webhook.
func (s *server) scaler(bin string) *scaler {
	s.t.Helper()
	for _, name := range []string{"vpa-v1-crd-gen.yaml", "vpa-rbac.yaml"} {
		text, err := os.ReadFile(filepath.Join(bin, "deploy", name))
		if err != nil {
			s.t.Fatal(err)
		}
		s.makes(name, docs(s.t, text))
	}
	v := &scaler{recommender: s.recommender()}
	ports := apiserver.FreePorts(s.t, 4)
	at := func(i int) string { return fmt.Sprintf("127.0.0.1:%d", ports[i]) }
	run := func(name string, flags ...string) *apiserver.Process {
		config := s.kubeconfigAs(name+"-kubeconfig", s.token("kube-system", "vpa-"+name))
		cmd := exec.Command(filepath.Join(bin, name), append(flags, "--kubeconfig="+config)...)
		cmd.Env = append(os.Environ(), "NAMESPACE=kube-system")
		return apiserver.Start(s.t, s.Dir, name, cmd)
	}
	v.looks, v.recommends = "http://"+at(0)+"/metrics", "http://"+at(1)+"/metrics"
	v.others = []*apiserver.Process{s.manager("deployment-controller,replicaset-controller,serviceaccount-controller"),
		run("admission-controller", "--address="+at(2), fmt.Sprintf("--port=%d", ports[3]), "--client-ca-file="+s.File("front/ca.crt"),
			"--tls-cert-file="+s.File("front/tls.crt"), "--tls-private-key="+s.File("front/tls.key"), "--register-by-url",
			"--webhook-address=https://localhost", fmt.Sprintf("--webhook-port=%d", ports[3]), "--webhook-failure-policy-fail"),
		run("recommender", "--address="+at(1), "--recommender-interval=1s")}
	v.updater = run("updater", "--address="+at(0), "--updater-interval=1s")
	v.until("the webhook is registered", func() bool {
		all, err := s.client.AdmissionregistrationV1().MutatingWebhookConfigurations().List(s.t.Context(), metav1.ListOptions{})
		return err == nil && len(all.Items) == 1
	})
	return v
}

// until waits until a condition holds, while a kubelet does its work.
func (v *scaler) until(what string, holds func() bool) {
	v.t.Helper()
	wait.Until(v.t, what, func() bool { v.kubelet(); return holds() }, func() string {
		text := ""
		for _, p := range append(slices.Clone(v.others), v.updater) {
			all := p.Printed()
			text += fmt.Sprintf("%s:\n%s\n", filepath.Base(p.Log), all[max(0, len(all)-4000):])
		}
		for _, p := range v.pods("") {
			text += fmt.Sprintf("%s: %v\n", p.Name, p.Spec.Containers[0].Resources)
		}
		return text
	})
}

// kubelet does once what a kubelet does: it runs pods, resizes them, and lets those go that are deleted.
func (v *scaler) kubelet() {
	v.t.Helper()
	pods := v.client.CoreV1().Pods("shop-a")
	all, err := pods.List(v.t.Context(), metav1.ListOptions{})
	if err != nil {
		v.t.Fatal(err)
	}
	for i := range all.Items {
		p := &all.Items[i]
		if p.DeletionTimestamp != nil {
			err = pods.Delete(v.t.Context(), p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)),
				Preconditions: metav1.NewUIDPreconditions(string(p.UID))})
		} else {
			was := p.Status.DeepCopy()
			runs(p)
			if equality.Semantic.DeepEqual(was, &p.Status) {
				continue
			}
			_, err = pods.UpdateStatus(v.t.Context(), p, metav1.UpdateOptions{})
		}
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) { // else the next look does it
			v.t.Fatal(err)
		}
	}
}

// runs gives a pod the status of one that runs with what its spec has.
func runs(p *core.Pod) {
	if p.Status.Phase != core.PodRunning {
		p.Status.Phase, p.Status.StartTime = core.PodRunning, new(metav1.Now())
		p.Status.Conditions = []core.PodCondition{{Type: core.PodReady, Status: core.ConditionTrue, LastTransitionTime: metav1.Now()}}
	}
	p.Status.ContainerStatuses = nil
	for _, c := range p.Spec.Containers {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, core.ContainerStatus{Name: c.Name, Ready: true,
			ContainerID: "containerd://" + string(p.UID), Resources: c.Resources.DeepCopy(),
			State: core.ContainerState{Running: &core.ContainerStateRunning{StartedAt: *p.Status.StartTime}}})
	}
}

// pods are those of a Deployment that are not deleted, or all of the namespace.
func (v *scaler) pods(app string) (live []core.Pod) {
	v.t.Helper()
	selector := ""
	if app != "" {
		selector = "app=" + app
	}
	all, err := v.client.CoreV1().Pods("shop-a").List(v.t.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		v.t.Fatal(err)
	}
	return slices.DeleteFunc(all.Items, func(p core.Pod) bool { return p.DeletionTimestamp != nil })
}

// each tells whether the pods of a Deployment run, and their containers app have these requests and limits.
func (v *scaler) each(app string, want ...string) bool {
	v.t.Helper()
	var are []string
	for _, p := range v.pods(app) {
		if p.Status.Phase == core.PodRunning {
			are = append(are, cpuOf(&p, "app"))
		}
	}
	slices.Sort(are)
	return slices.Equal(are, want)
}

// has tells whether both pods of a Deployment run with the same request and limit.
func (v *scaler) has(app, request, limit string) bool {
	v.t.Helper()
	return v.each(app, request+" "+limit, request+" "+limit)
}

// cpuOf are the CPU request and limit of a container.
func cpuOf(p *core.Pod, container string) string {
	for _, c := range p.Spec.Containers {
		if c.Name == container {
			return c.Resources.Requests.Cpu().String() + " " + c.Resources.Limits.Cpu().String()
		}
	}
	return ""
}

// uids are those of a Deployment's pods, in order.
func (v *scaler) uids(app string) (uids []string) {
	v.t.Helper()
	for _, p := range v.pods(app) {
		uids = append(uids, string(p.UID))
	}
	slices.Sort(uids)
	return uids
}

var round = regexp.MustCompile(`(?m)^vpa_\w+_execution_latency_seconds_count\{step="total"\} (\d+)$`)

// rounds waits until a program has looked at everything this often again.
func (v *scaler) rounds(of string, more int) {
	v.t.Helper()
	done, since := 0, 0
	look := func() {
		answer, err := http.Get(of)
		if err != nil {
			return
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			return
		}
		if found := round.FindSubmatch(text); found != nil {
			done, _ = strconv.Atoi(string(found[1]))
		}
	}
	v.until(fmt.Sprintf("%s has %d rounds more", of, more), func() bool {
		look()
		if since == 0 {
			since = done
		}
		return since > 0 && done >= since+more
	})
}

// deploys makes a Deployment of two pods whose container app has this request and limit.
func (v *scaler) deploys(name, request, limit string) {
	v.t.Helper()
	v.makes(name, docs(v.t, []byte(strings.NewReplacer("NAME", name, "REQUEST", request, "LIMIT", limit).Replace(`
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: shop-a, name: NAME}
spec:
  replicas: 2
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec:
      nodeName: n1
      automountServiceAccountToken: false
      containers:
      - name: app
        image: app
        resources: {requests: {cpu: "REQUEST", memory: 64Mi}, limits: {cpu: "LIMIT", memory: 64Mi}}
      - {name: proxy, image: proxy, resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {cpu: 100m, memory: 64Mi}}}
`))))
	v.until(name+" runs", func() bool { return v.has(name, request, limit) })
}

// scales makes an autoscaler of a Deployment, with more keys of its spec.
func (v *scaler) scales(name, keys string) {
	v.t.Helper()
	v.makes(name, docs(v.t, []byte(strings.NewReplacer("NAME", name, "KEYS", keys).Replace(`
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {namespace: shop-a, name: NAME}
spec: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: NAME}, KEYS}
`))))
}

// node makes the node n1.
func (v *scaler) node(cpus string) {
	v.t.Helper()
	if _, err := v.client.CoreV1().Nodes().Create(v.t.Context(), &core.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"},
		Status: core.NodeStatus{Allocatable: core.ResourceList{core.ResourceCPU: resource.MustParse(cpus),
			core.ResourceMemory: resource.MustParse("8Gi")}}}, metav1.CreateOptions{}); err != nil {
		v.t.Fatal(err)
	}
}

// aScaler starts all that the test needs; without the programs it skips the test.
func aScaler(t *testing.T) *scaler {
	t.Helper()
	bin := os.Getenv(vpaBinaries)
	if bin == "" {
		t.Skipf("%s does not name a folder with the Vertical Pod Autoscaler's programs: make e2e-vpa", vpaBinaries)
	}
	v := newServer(t).scaler(bin)
	v.node("32")
	return v
}
