package controller

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	clienttesting "k8s.io/client-go/testing"

	"github.com/unthrottle/unthrottle/internal/cure/canary"
	"github.com/unthrottle/unthrottle/kubernetes/api/v1alpha1"
	"github.com/unthrottle/unthrottle/kubernetes/policies"
	"github.com/unthrottle/unthrottle/test/wait"
)

// rolledOut is a policy with a rollout in a state, and the one that allows it.
func rolledOut(t *testing.T, prometheus string, state v1alpha1.RolloutStatus) (cart, all *unstructured.Unstructured) {
	t.Helper()
	cart = aPolicy("shop", "cart", map[string]any{"remedy": "auto", "verify": "probe"})
	spec := cart.Object["spec"].(map[string]any)
	spec["mode"], spec["rollout"] = "apply", map[string]any{"share": "10%", "watch": "24h", "latency": "p99",
		"guard": map[string]any{"prometheus": prometheus, "query": "errors", "bound": int64(1)}}
	all = &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"allow": map[string]any{"mode": "apply",
		"remedies": []any{"auto"}, "prometheus": []any{prometheus}}}}}
	all.SetAPIVersion(group.String())
	all.SetKind(policies.ClusterThrottlePolicy)
	all.SetName("all")
	all.SetGeneration(1)
	all.SetUID("uid-2")
	out, err := policies.Merge([]byte(base), []policies.Object{objectOf(cart), objectOf(all)}, &policies.Node{})
	if err != nil || out.Rollouts[objectOf(cart).Key()] == nil {
		t.Fatal(err, out.Statuses)
	}
	state.Tried = out.Rollouts[objectOf(cart).Key()].Tried
	kept, err := json.Marshal(v1alpha1.PolicyStatus{Rollout: &state})
	if err != nil {
		t.Fatal(err)
	}
	var status map[string]any
	if err := json.Unmarshal(kept, &status); err != nil {
		t.Fatal(err)
	}
	cart.Object["status"] = status
	return cart, all
}

// statusOf is what a policy's status is now; the zero value: it cannot be read.
func statusOf(t *testing.T, client dynamic.Interface, name string) v1alpha1.PolicyStatus {
	u, err := client.Resource(namespaced).Namespace("shop").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return v1alpha1.PolicyStatus{}
	}
	return statusIn(u)
}

// TestRollout: a controller goes on from the state that another one kept in the status. The node's drawn pods are in the file,
// until a moment; where the guard rises they are not, the status says why, and an event does.
func TestRollout(t *testing.T) {
	var guard atomic.Value
	guard.Store("0")
	prometheus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"scalar","result":[1,%q]}}`, guard.Load())
	}))
	defer prometheus.Close()
	now := time.Now().UTC().Truncate(time.Second)
	cart, all := rolledOut(t, prometheus.URL, v1alpha1.RolloutStatus{Phase: canary.Watches, Why: "drawn", Seed: 1, Below: 1 << 53,
		Newest: now.Add(-30 * time.Minute), Begun: now, Drawn: now, Until: now.Add(time.Hour), Pods: 3, Treated: 1})
	aPod := func(uid string, age time.Duration) *unstructured.Unstructured {
		pod := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"nodeName": "node-1",
			"containers": []any{map[string]any{"name": "app"}}}, "status": map[string]any{"phase": "Running"}}}
		pod.SetAPIVersion("v1")
		pod.SetKind("Pod")
		pod.SetNamespace("shop")
		pod.SetName(uid)
		pod.SetUID(types.UID(uid))
		pod.SetCreationTimestamp(metav1.NewTime(now.Add(-age)))
		return pod
	}
	client := newClient(cart, all, aPod("uid-of-the-pod", time.Hour), aPod("uid-of-control", time.Minute),
		aPod("uid-of-another", time.Minute))
	var mu sync.Mutex
	var told []string
	client.PrependReactor("create", "events", func(action clienttesting.Action) (bool, runtime.Object, error) {
		e := action.(clienttesting.CreateAction).GetObject().(*unstructured.Unstructured)
		mu.Lock()
		defer mu.Unlock()
		told = append(told, fmt.Sprintf("%v %v: %v", e.Object["type"], e.Object["reason"], e.Object["message"]))
		return true, e, nil
	})
	file := running(t, client, func(o *Options) { o.Rollouts, o.Node = true, "node-1" })
	wait.Until(t, "the drawn pod is in the file", has(file, `"pods": ["uid-of-the-pod"]`))
	wait.Until(t, "it ends", has(file, now.Add(time.Hour).Format(time.RFC3339)))
	guard.Store("2")
	is := func() *v1alpha1.RolloutStatus { return statusOf(t, client, "cart").Rollout }
	wait.Until(t, "it is taken back", func() bool { s := is(); return s != nil && s.Phase == canary.Reverted })
	if s := is(); !strings.Contains(s.Why, "the guard is 2, above its bound of 1") || s.Tried == "" {
		t.Errorf("%+v", s)
	}
	wait.Until(t, "the pod is not in the file", func() bool {
		return !has(file, "uid-of-the-pod")() && has(file, "1970-01-01T00:00:00Z")()
	})
	wait.Until(t, "an event says so", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return slices.ContainsFunc(told, func(e string) bool {
			return strings.HasPrefix(e, "Warning RolloutReverted: taken back: the guard is 2")
		})
	})
}

// TestRolloutIsKept: a policy that is not allowed for a while, as where its ClusterThrottlePolicy is made anew, keeps what is known of
// its rollout, and waits no less for the next one.
func TestRolloutIsKept(t *testing.T) {
	again := time.Now().UTC().Truncate(time.Second).Add(time.Hour)
	cart, all := rolledOut(t, "http://prometheus:9090", v1alpha1.RolloutStatus{Phase: canary.Reverted, Why: "taken back", Again: again})
	client := newClient(cart, all)
	running(t, client, func(o *Options) { o.Rollouts, o.Node = true, "node-1" })
	accepted := func(reason string) func() bool {
		return func() bool {
			c := condition(statusOf(t, client, "cart").Conditions, v1alpha1.ConditionAccepted)
			return c != nil && c.Reason == reason
		}
	}
	wait.Until(t, "it is allowed", accepted(v1alpha1.ReasonAccepted))
	if err := client.Resource(clusterWide).Delete(t.Context(), "all", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "it is not allowed", accepted(policies.NotAllowed))
	if _, err := client.Resource(clusterWide).Create(t.Context(), all, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "it is allowed again", accepted(v1alpha1.ReasonAccepted))
	if r := statusOf(t, client, "cart").Rollout; r == nil || r.Phase != canary.Reverted || !r.Again.Equal(again) {
		t.Errorf("%+v", r)
	}
}

// TestSlowPrometheus: a Prometheus that does not answer delays neither the decision on another policy nor its status.
func TestSlowPrometheus(t *testing.T) {
	var over atomic.Bool
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		r.ParseForm() // else the server does not learn that nobody waits any more
		<-r.Context().Done()
		over.Store(true)
	}))
	t.Cleanup(slow.Close) // after the controller, whose question is open still
	above := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}`)
	}))
	defer above.Close()
	now := time.Now().UTC().Truncate(time.Second)
	state := v1alpha1.RolloutStatus{Phase: canary.Watches, Why: "drawn", Begun: now, Drawn: now, Until: now.Add(time.Hour)}
	waits, _ := rolledOut(t, slow.URL, state)
	waits.SetName("waits")
	waits.SetUID("uid-3")
	cart, all := rolledOut(t, above.URL, state)
	if err := unstructured.SetNestedSlice(all.Object, []any{slow.URL, above.URL}, "spec", "allow", "prometheus"); err != nil {
		t.Fatal(err)
	}
	client := newClient(waits, cart, all)
	running(t, client, func(o *Options) { o.Rollouts, o.Node = true, "node-1" })
	wait.Until(t, "the other policy is taken back", func() bool {
		s := statusOf(t, client, "cart").Rollout
		return s != nil && s.Phase == canary.Reverted
	})
	if over.Load() {
		t.Error("it waited for the slow one")
	}
}

// TestEachDecisionIsTold: also where a draw changes neither phase nor reason, and where the event of a condition fails.
func TestEachDecisionIsTold(t *testing.T) {
	cart, _ := rolledOut(t, "http://prometheus:9090", v1alpha1.RolloutStatus{})
	client := newClient(cart)
	var told []string
	client.PrependReactor("create", "events", func(action clienttesting.Action) (bool, runtime.Object, error) {
		e := action.(clienttesting.CreateAction).GetObject().(*unstructured.Unstructured)
		if reason := fmt.Sprint(e.Object["reason"]); strings.HasPrefix(reason, "Rollout") {
			told = append(told, reason)
			return true, e, nil
		}
		return true, nil, errors.New("no room for events")
	})
	c := controller{Options: Options{Client: client}, sent: map[string]sent{}}
	at := time.Unix(1_800_000_000, 0).UTC()
	want := v1alpha1.PolicyStatus{Conditions: []metav1.Condition{{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionTrue}},
		Rollout: &v1alpha1.RolloutStatus{Phase: canary.Finishes, Why: "better", Drawn: at}}
	if err := c.write(t.Context(), cart, v1alpha1.PolicyStatus{}, want, ""); err == nil || !strings.Contains(err.Error(), "no room") {
		t.Error(err)
	}
	was := want
	for i, drawn := range []time.Time{at, at.Add(time.Hour), at.Add(time.Hour), at.Add(2 * time.Hour)} {
		want.Rollout = &v1alpha1.RolloutStatus{Phase: canary.Finishes, Why: "better", Drawn: drawn}
		if err := c.write(t.Context(), cart, was, want, ""); err != nil {
			t.Error(i, err)
		}
		was = want
	}
	if fmt.Sprint(told) != "[RolloutFinishes RolloutFinishes RolloutFinishes]" {
		t.Error(told)
	}
}

// TestStates: the step of a policy that is not accepted any longer ends when its time is over, and of one without a rollout nothing is
// kept. A decision on a state that is not there any more is none.
func TestStates(t *testing.T) {
	at := time.Unix(1_800_000_000, 0).UTC()
	watches := canary.State{Phase: canary.Watches, Until: at}
	other := watches
	other.Seed = 1
	rollout, wrong := &policies.Rollout{}, &policies.Mistake{}
	for name, c := range map[string]struct {
		rollout *policies.Rollout
		wrong   *policies.Mistake
		from    canary.State
		now     time.Time
		want    string
	}{
		"decided":                  {rollout, nil, watches, at, canary.Kept},
		"decided on another":       {rollout, nil, other, at, canary.Watches},
		"not accepted":             {nil, wrong, watches, at.Add(-time.Second), canary.Watches},
		"not accepted, and over":   {nil, wrong, watches, at, canary.Reverted},
		"accepted, but no rollout": {nil, nil, watches, at, ""},
	} {
		o := policies.Object{Kind: policies.ThrottlePolicy, Namespace: "shop", Name: "cart", Rollout: watches}
		out := policies.Result{Statuses: map[policies.Key]policies.Status{o.Key(): {Wrong: c.wrong}},
			Rollouts: map[policies.Key]*policies.Rollout{o.Key(): c.rollout}}
		made := map[policies.Key]decision{o.Key(): {c.from, canary.State{Phase: canary.Kept}}}
		if got := states([]policies.Object{o}, out, made, c.now)[o.Key()]; got.Phase != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
