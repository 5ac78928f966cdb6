package realapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	disruption "k8s.io/api/policy/v1"
	scheduling "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/unthrottle/unthrottle/test/apiserver"
	"github.com/unthrottle/unthrottle/test/wait"
)

// deschedulerBinaries is the variable that names the folder with the descheduler.
const deschedulerBinaries = "UNTHROTTLE_DESCHEDULER_BIN"

const deschedulerName = "unthrottle-descheduler"

// descheduled is a cluster of three nodes, with the example's objects. The test is its scheduler and its kubelets.
type descheduled struct {
	*server
	bin, policy string
	args        []string
}

// load is what an agent counts of its node: CPUs used, and threads that wait. An agent without the probe counts no waiting.
type load struct {
	used, contention, quota float64
	unprobed                bool
}

// newDescheduled makes the nodes and the pods. By their requests n1 has the most room, so that what is evicted there is not evicted
// for those.
func newDescheduled(t *testing.T, bin string) *descheduled {
	t.Helper()
	d := &descheduled{server: newServer(t), bin: bin}
	text, err := os.ReadFile(filepath.Join("..", "..", "examples", "kubernetes", "descheduler.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range docs(t, text) {
		if err := d.create(u); err != nil {
			t.Fatalf("%s %s: %v", u.GetKind(), u.GetName(), err)
		}
		switch u.GetKind() {
		case "ConfigMap":
			d.policy, _, err = unstructured.NestedString(u.Object, "data", "policy.yaml")
		case "Deployment":
			var all []any
			all, _, err = unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
			if err == nil {
				d.args, _, err = unstructured.NestedStringSlice(all[0].(map[string]any), "args")
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"n1", "n2", "n3"} {
		d.joins(name)
	}
	d.manager("serviceaccount-controller,replicaset-controller,disruption-controller")
	if _, err := d.client.SchedulingV1().PriorityClasses().Create(t.Context(),
		&scheduling.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "vital"}, Value: 1000}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	hour := time.Hour
	d.runs("shop-a", "guarded", "n1", "", 2, hour, nil) // without requests, so that it would go first
	d.guards("shop-a", "guarded")
	d.runs("shop-b", "cart", "n1", "100m", 2, hour, nil)
	d.runs("batch", "vital", "n1", "100m", 2, hour, func(p *core.PodSpec) { p.PriorityClassName = "vital" })
	d.runs("batch", "alone", "n1", "100m", 1, hour, nil)
	d.runs("batch", "young", "n1", "100m", 2, 0, nil)
	d.runs("batch", "tied", "n1", "100m", 2, hour, func(p *core.PodSpec) { p.NodeSelector = map[string]string{core.LabelHostname: "n1"} })
	d.runs("kube-system", "dns", "n1", "100m", 2, hour, nil)
	d.runs("shop-b", "web", "n2", "1500m", 2, hour, nil)
	d.runs("batch", "etl", "n3", "1500m", 2, hour, nil)
	return d
}

// joins makes a node of four CPUs that is ready.
func (d *descheduled) joins(name string) {
	d.t.Helper()
	nodes := d.client.CoreV1().Nodes()
	n, err := nodes.Create(d.t.Context(), &core.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
		Labels: map[string]string{core.LabelHostname: name}}}, metav1.CreateOptions{})
	if err == nil {
		n.Spec.Taints = nil // the API server says of a new node that it is not ready
		n, err = nodes.Update(d.t.Context(), n, metav1.UpdateOptions{})
	}
	if err == nil {
		has := core.ResourceList{core.ResourceCPU: resource.MustParse("4"), core.ResourceMemory: resource.MustParse("8Gi"),
			core.ResourcePods: resource.MustParse("110")}
		n.Status = core.NodeStatus{Capacity: has, Allocatable: has,
			Conditions: []core.NodeCondition{{Type: core.NodeReady, Status: core.ConditionTrue}}}
		_, err = nodes.UpdateStatus(d.t.Context(), n, metav1.UpdateOptions{})
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

// runs makes a ReplicaSet whose pods are on a node since a while.
func (d *descheduled) runs(namespace, name, node, cpu string, replicas int32, since time.Duration, change func(*core.PodSpec)) {
	d.t.Helper()
	wait.Until(d.t, "the default service account of "+namespace, func() bool {
		_, err := d.client.CoreV1().ServiceAccounts(namespace).Get(d.t.Context(), "default", metav1.GetOptions{})
		return err == nil
	}, func() string { return name })
	labels, c := map[string]string{"app": name}, core.Container{Name: "app", Image: "app"}
	if cpu != "" {
		c.Resources.Requests = core.ResourceList{core.ResourceCPU: resource.MustParse(cpu)}
	}
	spec := core.PodSpec{Containers: []core.Container{c}}
	if change != nil {
		change(&spec)
	}
	if _, err := d.client.AppsV1().ReplicaSets(namespace).Create(d.t.Context(), &apps.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: apps.ReplicaSetSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: core.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec}}},
		metav1.CreateOptions{}); err != nil {
		d.t.Fatal(err)
	}
	for range replicas {
		d.places(namespace, name, node, since)
	}
}

// places waits for a pod that no node has yet, and has a node run it since a while.
func (d *descheduled) places(namespace, owner, node string, since time.Duration) {
	d.t.Helper()
	pods, pod := d.client.CoreV1().Pods(namespace), core.Pod{}
	wait.Until(d.t, "a pod of "+owner+" that waits for a node", func() bool {
		list, err := pods.List(d.t.Context(), metav1.ListOptions{LabelSelector: "app=" + owner, FieldSelector: "spec.nodeName="})
		if err != nil || len(list.Items) == 0 {
			return false
		}
		pod = list.Items[0]
		return true
	}, func() string { return namespace })
	if err := pods.Bind(d.t.Context(), &core.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod.Name},
		Target: core.ObjectReference{Kind: "Node", Name: node}}, metav1.CreateOptions{}); err != nil {
		d.t.Fatal(err)
	}
	now, err := pods.Get(d.t.Context(), pod.Name, metav1.GetOptions{})
	if err != nil {
		d.t.Fatal(err)
	}
	began := metav1.NewTime(time.Now().Add(-since))
	now.Status.Phase, now.Status.StartTime = core.PodRunning, &began
	now.Status.Conditions = append(now.Status.Conditions,
		core.PodCondition{Type: core.PodReady, Status: core.ConditionTrue, LastTransitionTime: began})
	if _, err := pods.UpdateStatus(d.t.Context(), now, metav1.UpdateOptions{}); err != nil {
		d.t.Fatal(err)
	}
}

// guards makes a PodDisruptionBudget that lets none of an owner's two pods be evicted, and waits until its controller has seen them.
func (d *descheduled) guards(namespace, owner string) {
	d.t.Helper()
	budgets := d.client.PolicyV1().PodDisruptionBudgets(namespace)
	if _, err := budgets.Create(d.t.Context(), &disruption.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: owner},
		Spec: disruption.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(2)),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": owner}}}}, metav1.CreateOptions{}); err != nil {
		d.t.Fatal(err)
	}
	var status disruption.PodDisruptionBudgetStatus
	wait.Until(d.t, "a budget of two healthy pods", func() bool {
		now, err := budgets.Get(d.t.Context(), owner, metav1.GetOptions{})
		if err != nil {
			return false
		}
		status = now.Status
		return status.CurrentHealthy == 2 && status.ObservedGeneration == now.Generation
	}, func() string { return fmt.Sprintf("%+v", status) })
}

// sees starts a Prometheus that knows these loads of the nodes, and waits until it has the policy's figure of each that has one.
func (d *descheduled) sees(bin string, loads map[string]load) (address string) {
	d.t.Helper()
	var all []counter
	figures := 0
	for node, l := range loads {
		add := func(name, more string, perSecond float64) {
			all = append(all, counter{instance: node, name: "unthrottle_container_" + name + "_seconds_total",
				labels:    fmt.Sprintf(`namespace="shop-a",pod="all",container="app",id="/%s"%s`, node, more),
				perSecond: perSecond})
		}
		add("used_cpu", "", l.used)
		if !l.unprobed {
			add("waiting", `,cause="contention"`, l.contention)
			add("waiting", `,cause="quota"`, l.quota)
			figures++
		}
	}
	its := *d.server // with a folder of its own: each Prometheus has its own past
	its.Dir = d.t.TempDir()
	address = its.startPrometheus(bin, func() []counter { return all })
	query := regexp.MustCompile(`query: '(.+)'`).FindStringSubmatch(d.policy)
	if query == nil {
		d.t.Fatalf("the policy has no query:\n%s", d.policy)
	}
	answer := ""
	wait.Until(d.t, fmt.Sprintf("%d nodes have the figure %s", figures, query[1]), func() bool {
		got, err := http.Get(address + "/api/v1/query?query=" + url.QueryEscape(query[1]))
		if err != nil {
			return false
		}
		defer got.Body.Close()
		var is struct {
			Data struct{ Result []json.RawMessage }
		}
		if err := json.NewDecoder(got.Body).Decode(&is); err != nil {
			answer = err.Error()
			return false
		}
		answer = fmt.Sprintf("%s", is.Data.Result)
		return len(is.Data.Result) == figures
	}, func() string { return answer })
	return address
}

// inPod is a shell's script: it has a folder where the files of a pod's service account are, and runs a program.
const inPod = `mount -t tmpfs none /run && mkdir -p /run/secrets/kubernetes.io && ln -s "$1" /run/secrets/kubernetes.io/serviceaccount &&
shift && exec "$@"`

// run starts the descheduler as in the example's pod, with its arguments, its policy and its service account, and waits until it has
// looked once. It would look again after the example's interval.
func (d *descheduled) run(prometheus string) *apiserver.Process {
	d.t.Helper()
	const address = "http://prometheus.monitoring:9090"
	if !strings.Contains(d.policy, address) {
		d.t.Fatalf("the policy does not name %s:\n%s", address, d.policy)
	}
	dir := d.t.TempDir()
	certificate, err := os.ReadFile(d.config.CAFile)
	if err != nil {
		d.t.Fatal(err)
	}
	for name, text := range map[string]string{"policy.yaml": strings.ReplaceAll(d.policy, address, prometheus),
		"ca.crt": string(certificate), "token": d.token("unthrottle", deschedulerName)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			d.t.Fatal(err)
		}
	}
	args := []string{"--map-root-user", "--mount", "sh", "-c", inPod, "sh", dir, filepath.Join(d.Bin, "descheduler")}
	for _, a := range d.args {
		args = append(args, strings.ReplaceAll(a, "/policy/", dir+"/"))
	}
	cmd := exec.Command("unshare", args...)
	cmd.Env = append(os.Environ(), "KUBERNETES_SERVICE_HOST=127.0.0.1", fmt.Sprint("KUBERNETES_SERVICE_PORT=", d.Port))
	p := apiserver.Start(d.t, dir, "descheduler", cmd)
	wait.Until(d.t, "the descheduler has looked", func() bool {
		return p.Ended() || strings.Contains(p.Printed(), `"Number of evictions/requests" totalEvicted=`)
	}, p.Printed)
	if p.Ended() {
		d.t.Fatal("the descheduler ended: ", p.Printed())
	}
	return p
}

// evicted are the pods that were evicted, as OWNER of NODE, each with an event. They end, and n2 runs what their owners make in their
// place.
func (d *descheduled) evicted() (names []string) {
	d.t.Helper()
	list, err := d.client.CoreV1().Pods("").List(d.t.Context(), metav1.ListOptions{})
	if err != nil {
		d.t.Fatal(err)
	}
	for _, p := range list.Items {
		if p.DeletionTimestamp == nil {
			continue
		}
		if !slices.ContainsFunc(p.Status.Conditions, func(c core.PodCondition) bool {
			return c.Type == core.DisruptionTarget && c.Reason == "EvictionByEvictionAPI"
		}) {
			d.t.Errorf("%s/%s was deleted, and not evicted: %+v", p.Namespace, p.Name, p.Status.Conditions)
		}
		pod := &unstructured.Unstructured{}
		pod.SetKind("Pod")
		pod.SetNamespace(p.Namespace)
		pod.SetName(p.Name)
		d.told(pod, "Normal LowNodeUtilization: pod eviction from "+p.Spec.NodeName)
		owner := p.Labels["app"]
		names = append(names, owner+" of "+p.Spec.NodeName)
		if err := d.client.CoreV1().Pods(p.Namespace).Delete(d.t.Context(), p.Name,
			metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
			d.t.Fatal(err)
		}
		d.places(p.Namespace, owner, "n2", 0)
	}
	return names
}
