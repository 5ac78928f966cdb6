package realapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	core "k8s.io/api/core/v1"
	disruption "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/canary"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/kubernetes/api/v1alpha1"
	"github.com/unthrottle/unthrottle/test/apiserver"
	"github.com/unthrottle/unthrottle/test/wait"
)

// prometheusBinaries is the variable that names the folder with Prometheus.
const prometheusBinaries = "UNTHROTTLE_PROMETHEUS_BIN"

// rolloutWatch is how long each step is watched. The test turns the times in the status back by as much: nothing else is hastened.
const rolloutWatch = 5 * time.Minute

// workload is a Deployment's pods on two nodes, as their agents and a Prometheus see them.
type workload struct {
	*server
	policy *unstructured.Unstructured
	pods   map[string]core.Pod // by name
	nodes  map[string]*sidecar

	// byStatus takes pods for treated as the policy's status says, not the files of the nodes that the test runs.
	byStatus bool

	mu     sync.Mutex
	effect float64 // what the remedy multiplies a pod's latency by
	errors float64 // the guard's value
}

// newWorkload starts all of it: an API server with the chart's objects, pods on so many nodes, the container policies of two of these and a
// Prometheus.
func newWorkload(t *testing.T, pods, nodes int) *workload {
	t.Helper()
	bin := os.Getenv(prometheusBinaries)
	if bin == "" {
		t.Skipf("%s does not name a folder with Prometheus: make e2e-rollout", prometheusBinaries)
	}
	w := &workload{server: newServer(t), pods: map[string]core.Pod{}, nodes: map[string]*sidecar{}, effect: 1}
	w.install("policies")
	w.install("rollout")
	if _, err := w.client.CoreV1().ServiceAccounts("shop-a").Create(t.Context(),
		&core.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var making errgroup.Group
	making.SetLimit(8)
	for i := range pods {
		making.Go(func() error { return w.pod(fmt.Sprintf("cart-abc-%02d", i), fmt.Sprint("n", 1+i%nodes)) })
	}
	if err := making.Wait(); err != nil {
		t.Fatal(err)
	}
	w.Write("prometheus.yaml", fmt.Sprintf(`global: {scrape_interval: %v}
scrape_configs:
- job_name: shop
  honor_labels: true
  fallback_scrape_protocol: PrometheusText0.0.4
  static_configs: [{targets: [%q]}]
`, scrapeEvery, w.metrics()))
	for i := range 2 {
		w.begin(fmt.Sprint("n", i+1))
	}
	address := w.runPrometheus(bin)
	all := aPolicy(t, "", "all", "{allow: {mode: apply, remedies: [auto], prometheus: ["+address+"]}}")
	w.policy = aPolicy(t, "shop-a", "cart", w.spec(address, "cart-*"))
	for _, u := range []*unstructured.Unstructured{all, w.policy} {
		if err := w.create(u); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// spec is the policy's, for pods of a name.
func (w *workload) spec(address, name string) string {
	return "{mode: apply, rules: [{match: {name: '" + name + "'}, remedy: auto, verify: probe}], rollout: {share: 10%, watch: " +
		rolloutWatch.String() + ", latency: p99_seconds, guard: {prometheus: '" + address + "', query: errors, bound: 0.5}}}"
}

// pod makes one that runs, as a Deployment's.
func (w *workload) pod(name, node string) error {
	pods := w.client.CoreV1().Pods("shop-a")
	made, err := pods.Create(w.t.Context(), &core.Pod{ObjectMeta: metav1.ObjectMeta{Name: name,
		Labels: map[string]string{"app": "cart", "pod-template-hash": "abc"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "cart-abc",
			UID: types.UID("r"), Controller: new(true)}}},
		Spec: core.PodSpec{NodeName: node, Containers: []core.Container{{Name: "app", Image: "app"}}}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	made.Status.Phase = core.PodRunning
	if _, err := pods.UpdateStatus(w.t.Context(), made, metav1.UpdateOptions{}); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pods[name] = *made
	return nil
}

// begin starts the container policies of a node, again if it was killed.
func (w *workload) begin(node string) {
	w.t.Helper()
	applies := strings.Replace(chartFile(w.t, "policies"), "mode: observe", "mode: apply", 1)
	c := w.sidecarOn(node, "rollout", "agent-"+node, applies)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodes[node] = c
}

// treated are the pods for which a node's agent has a rule that applies something, as its file says.
func (w *workload) treated() (names []string) {
	if w.byStatus {
		return w.treatedByStatus()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for node, c := range w.nodes {
		text, err := os.ReadFile(c.out)
		if err != nil {
			continue // it is not written yet
		}
		rules, err := policy.ParseRules(text)
		if err != nil {
			names = append(names, err.Error())
		}
		for name, p := range w.pods {
			r := rules.For(container.Container{Name: "shop-a/" + name + "/app", Namespace: "shop-a", Pod: name,
				PodUID: string(p.UID), ContainerName: "app"}, p.Labels)
			if p.Spec.NodeName == node && r != nil && r.Policy != "" && !r.Observes(time.Now()) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// treatedByStatus are those that the policy's status says.
func (w *workload) treatedByStatus() (names []string) {
	if w.policy == nil {
		return nil
	}
	s := w.state()
	for name, p := range w.pods {
		if s.Treats(canary.Pod{UID: string(p.UID), Created: p.CreationTimestamp.Time}) {
			names = append(names, name)
		}
	}
	return names
}

// metrics serves what Prometheus scrapes: the p99 of each pod, which a remedy changes, and errors.
func (w *workload) metrics() (host string) {
	handler := http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		treated := map[string]bool{}
		for _, name := range w.treated() {
			treated[name] = true
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		fmt.Fprintf(out, "errors %f\n", w.errors)
		for i, name := range slices.Sorted(maps.Keys(w.pods)) {
			p99 := 0.02 * (1 + 0.01*float64(i%7)) * (1 + 0.02*float64(time.Now().Unix()%5))
			if treated[name] {
				p99 *= w.effect
			}
			fmt.Fprintf(out, "p99_seconds{namespace=\"shop-a\",pod=%q} %f\n", name, p99)
		}
	})
	server := httptest.NewServer(handler)
	w.t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// set changes what pods do.
func (w *workload) set(effect, errors float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.effect, w.errors = effect, errors
}

// state is the policy's rollout as its status says.
func (w *workload) state() (s canary.State) {
	w.t.Helper()
	of, _, _ := unstructured.NestedMap(w.now(w.policy).Object, "status", "rollout")
	data, err := json.Marshal(of)
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// is waits until the rollout is in a phase, for a reason, with so many pods treated on the nodes; -1: whatever is treated.
func (w *workload) is(phase, why string, treated int) canary.State {
	w.t.Helper()
	var s canary.State
	w.until(fmt.Sprintf("%s: %s, %d treated", phase, why, treated), func() bool {
		s = w.state()
		return s.Phase == phase && strings.Contains(s.Why, why) && (treated < 0 || len(w.treated()) == treated)
	})
	return s
}

// until waits for something.
func (w *workload) until(what string, holds func() bool) {
	w.t.Helper()
	wait.Until(w.t, what, holds, func() string {
		return fmt.Sprintf("%+v\ntreated: %v\n%s%s", w.state(), w.treated(), w.nodes["n1"].Printed(), w.nodes["n2"].Printed())
	})
}

// after turns the status's times back, as if so much time had passed. Latencies of before keep their own time.
func (w *workload) after(passed time.Duration) {
	w.t.Helper()
	time.Sleep(3 * scrapeEvery) // what is now in force is seen by Prometheus
	resource, err := w.of(w.policy)
	if err != nil {
		w.t.Fatal(err)
	}
	wait.Until(w.t, "the status is turned back", func() bool {
		next := w.now(w.policy)
		s := w.state()
		for _, at := range []*time.Time{&s.Drawn, &s.Until, &s.Again} {
			if !at.IsZero() {
				*at = at.Add(-passed)
			}
		}
		kept := v1alpha1.RolloutStatus(s)
		data, failed := json.Marshal(kept)
		var of map[string]any
		if err = failed; err == nil {
			err = json.Unmarshal(data, &of)
		}
		if err == nil {
			err = unstructured.SetNestedMap(next.Object, of, "status", "rollout")
		}
		if err == nil {
			_, err = resource.UpdateStatus(context.Background(), next, metav1.UpdateOptions{})
		}
		return err == nil
	}, func() string { return err.Error() })
}

// kill ends a node's container policies without a word, and starts the next one.
func (w *workload) kill(node string) {
	w.t.Helper()
	_ = w.nodes[node].End(syscall.SIGKILL) // it says that it was killed
	w.begin(node)
}

// protect makes a PodDisruptionBudget of the pods, which allows so many disruptions.
func (w *workload) protect(disruptions int32) {
	w.t.Helper()
	budgets := w.client.PolicyV1().PodDisruptionBudgets("shop-a")
	made, err := budgets.Get(w.t.Context(), "cart", metav1.GetOptions{})
	if err != nil {
		made, err = budgets.Create(w.t.Context(), &disruption.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "cart"},
			Spec: disruption.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(1)),
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "cart"}}}}, metav1.CreateOptions{})
	}
	if err == nil {
		made.Status.DisruptionsAllowed = disruptions
		_, err = budgets.UpdateStatus(w.t.Context(), made, metav1.UpdateOptions{})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// TestRollout: a policy goes over a workload's pods on two nodes by the chart's rights, program and schema, on a real API server, judged
// by a real Prometheus. The container policies is killed in each step, once the API server too.
func TestRollout(t *testing.T) {
	w := newWorkload(t, 20, 2)
	w.protect(0)
	w.becomes(w.nodes["n1"], w.policy, "Accepted=True")
	w.is(canary.Waits, "nothing is in force for one watch", 0)
	w.after(rolloutWatch)
	w.is(canary.Waits, "no pod can be drawn: a PodDisruptionBudget allows no disruption", 0)
	w.protect(20)
	w.is(canary.Watches, "2 of 20 pods are treated at first", 2)
	w.told(w.policy, "Normal RolloutWatches: 2 of 20 pods")

	w.set(0.6, 0)
	had := w.treated()
	for i, want := range []int{4, 8, 10} {
		w.kill(fmt.Sprint("n", 1+i%2))
		w.until("what was treated still is", func() bool { return fmt.Sprint(w.treated()) == fmt.Sprint(had) })
		w.after(rolloutWatch)
		w.is(canary.Watches, fmt.Sprintf("no harm, so that %d of 20 pods are treated", want), want)
		now := w.treated()
		for _, name := range had {
			if !slices.Contains(now, name) {
				t.Errorf("%s was treated, and is no longer: %v, %v", name, had, now)
			}
		}
		had = now
	}
	for _, c := range w.nodes { // before the API server is killed: one that starts refuses all until it has read the roles
		if got := c.Printed(); strings.Contains(got, "forbidden") {
			t.Errorf("with the chart's rights it says: %s", got)
		}
	}
	_ = w.API.End(syscall.SIGKILL)
	w.startAPI()
	w.after(rolloutWatch)
	w.is(canary.Finishes, "better, so that the other pods get it", 19) // never all that are left of a PodDisruptionBudget's at once
	w.after(rolloutWatch)
	w.is(canary.Finishes, "better, so that the other pods get it", 20)
	w.after(rolloutWatch)
	w.is(canary.Kept, "better", 20)
	w.told(w.policy, "Normal RolloutKept: ")
	if err := w.pod("cart-abc-20", "n1"); err != nil {
		t.Fatal(err)
	}
	w.until("a pod that comes later is treated", func() bool { return len(w.treated()) == 21 })

	t.Run("a remedy that harms", func(t *testing.T) {
		w.t = t
		w.set(2, 0)
		address, _, _ := unstructured.NestedString(w.now(w.policy).Object, "spec", "rollout", "guard", "prometheus")
		w.change(w.policy, w.spec(address, "cart-abc-*"))
		w.is(canary.Waits, "nothing is in force for one watch", 0)
		w.after(rolloutWatch)
		w.is(canary.Watches, "2 of 21 pods are treated at first", 2)
		w.after(rolloutWatch)
		w.is(canary.Reverted, "times as long", 0)
		w.told(w.policy, "Warning RolloutReverted: taken back: ")
	})
	t.Run("a guard", func(t *testing.T) {
		w.t = t
		w.after(canary.Cooldown)
		w.is(canary.Watches, "2 of 21 pods are treated at first", 2)
		w.set(1, 9)
		w.is(canary.Reverted, "the guard is 9, above its bound of 0.5", 0)
	})
}

// requests are how many of each kind the API server has answered: VERB RESOURCE.
func (w *workload) requests() map[string]float64 {
	w.t.Helper()
	page, err := w.client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	all := map[string]float64{}
	for _, m := range regexp.MustCompile(`(?m)^apiserver_request_total\{.*?resource="(\w+)".*?verb="(\w+)".*?\} (\S+)$`).
		FindAllStringSubmatch(string(page), -1) {
		n, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			w.t.Fatal(err)
		}
		all[m[2]+" "+m[1]] += n
	}
	return all
}

// spent is a process's CPU time, and the most memory that it had at once.
func spent(t *testing.T, p *apiserver.Process) (cpu time.Duration, bytes int64) {
	t.Helper()
	dir := fmt.Sprint("/proc/", p.PID(), "/")
	status, err := os.ReadFile(dir + "status")
	stat, failed := os.ReadFile(dir + "stat")
	if err := errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	_, behind, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(behind)
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	if m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status); m != nil {
		kib, _ := strconv.ParseInt(string(m[1]), 10, 64)
		bytes = kib << 10
	}
	const tick = 10 * time.Millisecond // USER_HZ
	return time.Duration(user+system) * tick, bytes
}

// eachDecision is a request that is made once in each.
const eachDecision = "LIST poddisruptionbudgets"

// The chart's container policies may have this much memory.
const sidecarMemory = 256 << 20

// TestRolloutOfManyPods: 10,000 pods on 1,000 nodes. What the controller costs is logged; its memory and the policy's size in etcd are
// bounded.
func TestRolloutOfManyPods(t *testing.T) {
	w := newWorkload(t, 10_000, 1000)
	w.byStatus = true
	w.is(canary.Waits, "nothing is in force for one watch", 0)
	w.after(rolloutWatch)
	w.is(canary.Watches, "1000 of 10000 pods are treated at first", 1000)
	w.set(0.6, 0)
	before := w.requests()
	var cpu [2]time.Duration
	for i, node := range []string{"n1", "n2"} {
		cpu[i], _ = spent(t, w.nodes[node].Process)
	}
	time.Sleep(30 * time.Second)
	requests := w.requests()
	decisions := requests[eachDecision] - before[eachDecision]
	if decisions == 0 {
		t.Fatal("nothing was decided")
	}
	for name, n := range requests {
		if n -= before[name]; n > 0 && !strings.HasPrefix(name, "GET ") { // the test's own
			t.Logf("%s: %.1f a decision", name, n/decisions)
		}
	}
	for i, node := range []string{"n1", "n2"} {
		used, bytes := spent(t, w.nodes[node].Process)
		t.Logf("%s: %v of CPU time a decision, %d MiB at most", node, time.Duration(float64(used-cpu[i])/decisions), bytes>>20)
		if bytes > sidecarMemory {
			t.Errorf("%s: it had %d MiB, and the chart gives it %d", node, bytes>>20, sidecarMemory>>20)
		}
	}
	for _, want := range []int{2000, 4000, 5000} {
		w.after(rolloutWatch)
		w.is(canary.Watches, fmt.Sprintf("no harm, so that %d of 10000 pods are treated", want), want)
	}
	w.after(rolloutWatch)
	w.is(canary.Finishes, "better, so that the other pods get it", 10_000)
	w.after(rolloutWatch)
	w.is(canary.Kept, "better", 10_000)
	kept, err := json.Marshal(w.now(w.policy).Object)
	if err != nil || len(kept) > 8<<10 {
		t.Errorf("the policy takes %d bytes: %v", len(kept), err)
	}
	t.Logf("the policy takes %d bytes", len(kept))
}
