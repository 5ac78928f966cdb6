package rollouts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/unthrottle/unthrottle/internal/cure/canary"
	"github.com/unthrottle/unthrottle/kubernetes/policies"
)

var morning = time.Date(2026, 11, 29, 9, 0, 0, 0, time.UTC)

// prometheus answers two queries: latencies by pod, which depend on the time, and the guard.
type prometheus struct {
	latency func(pod int, at time.Time) float64
	pods    int
	guard   string
	asked   []string
}

func (p *prometheus) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	seconds, err := strconv.ParseInt(r.FormValue("time"), 10, 64)
	if r.URL.Path != "/api/v1/query" || r.Method != http.MethodPost || err != nil {
		http.NotFound(w, r)
		return
	}
	query, result := r.FormValue("query"), []any{}
	p.asked = append(p.asked, query)
	add := func(labels map[string]string, value string) {
		result = append(result, map[string]any{"metric": labels, "value": []any{float64(seconds), value}})
	}
	switch query {
	case "p99":
		for i := range p.pods {
			add(map[string]string{"pod": fmt.Sprint("cart-", i), "namespace": "shop"},
				fmt.Sprint(p.latency(i, time.Unix(seconds, 0).UTC())))
			add(map[string]string{"pod": fmt.Sprint("cart-", i), "namespace": "another"}, "1e9")
		}
	case "errors":
		if p.guard != "" {
			add(nil, p.guard)
			add(nil, "NaN")
		}
	default:
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"status":"error","error":"parse error"}`)
		return
	}
	json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": map[string]any{"resultType": "vector", "result": result}})
}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	var of map[string]any
	if err := yaml.Unmarshal([]byte(text), &of); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return u
}

func aPod(t *testing.T, i int, phase string) *unstructured.Unstructured {
	return object(t, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: cart-%d, namespace: shop, uid: uid-%d, creationTimestamp: "2026-11-29T08:00:00Z",
  labels: {app: cart, pod-template-hash: abc}, ownerReferences: [{kind: ReplicaSet, name: cart-abc, controller: true, apiVersion: apps/v1, uid: r}]},
  spec: {nodeName: node-%d, containers: [{name: app}]}, status: {phase: %s}}`, i, i, i, phase))
}

// scene is a policy with a rollout and its pods.
type scene struct {
	t      *testing.T
	client *fake.FakeDynamicClient
	prom   *prometheus
	object policies.Object
	base   policies.Object
	now    time.Time
	log    bytes.Buffer
}

func newScene(t *testing.T, pods int, more ...runtime.Object) *scene {
	t.Helper()
	prom := &prometheus{pods: pods, guard: "0.001", latency: func(pod int, _ time.Time) float64 { return 20 + float64(pod) }}
	server := httptest.NewServer(prom)
	t.Cleanup(server.Close)
	objects := more
	for i := range pods {
		objects = append(objects, aPod(t, i, "Running"))
	}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		Pods: "PodList", budgets: "PodDisruptionBudgetList"}, objects...)
	s := &scene{t: t, client: client, prom: prom, now: morning}
	s.object = policies.Object{Kind: policies.ThrottlePolicy, Namespace: "shop", Name: "cart", Generation: 1, Spec: map[string]any{
		"mode": "apply", "rules": []any{map[string]any{"match": map[string]any{"name": "cart-*", "labels": map[string]any{"app": "cart"}},
			"remedy": "auto", "verify": "probe"}},
		"rollout": map[string]any{"share": "10%", "watch": "15m", "latency": "p99",
			"guard": map[string]any{"prometheus": server.URL, "query": "errors", "bound": 0.01}}}}
	s.base = policies.Object{Kind: policies.ClusterThrottlePolicy, Name: "all", Generation: 1, Spec: map[string]any{
		"allow": map[string]any{"mode": "apply", "remedies": []any{"auto"}, "prometheus": []any{server.URL}}}}
	return s
}

// next decides a while after the last time, from what was kept alone: each decision is a new controller's.
func (s *scene) next(after time.Duration) (canary.State, error) {
	s.t.Helper()
	s.now = s.now.Add(after)
	out, err := policies.Merge([]byte("version: 1\nmode: apply\n"), []policies.Object{s.object, s.base}, &policies.Node{})
	if err != nil {
		s.t.Fatal(err)
	}
	r := out.Rollouts[s.object.Key()]
	if r == nil {
		s.t.Fatalf("%v", out.Statuses[s.object.Key()].Wrong)
	}
	d := Decider{Client: s.client, Log: slog.New(slog.NewTextHandler(&s.log, nil))}
	state, err := d.Pass(out.InForce).Next(s.t.Context(), s.object, r, s.now)
	s.object.Rollout = state
	return state, err
}

// is decides, and compares.
func (s *scene) is(after time.Duration, phase, why string) canary.State {
	s.t.Helper()
	state, err := s.next(after)
	if err != nil || state.Phase != phase || !strings.Contains(state.Why, why) {
		s.t.Fatalf("%s: %s (%v), want %s: %s", state.Phase, state.Why, err, phase, why)
	}
	return state
}

// effect has treated pods take a multiple.
func (s *scene) effect(times float64) {
	s.prom.latency = func(pod int, at time.Time) float64 {
		v := 20 + float64(pod)
		if !at.After(s.object.Rollout.Begun) {
			return v
		}
		v *= 1.3 + 0.01*float64(pod%7) // the load of the day, and what varies
		if s.object.Rollout.Treats(canary.Pod{UID: fmt.Sprint("uid-", pod), Created: morning.Add(-time.Hour)}) {
			v *= times
		}
		return v
	}
}

// TestNoLatencies: a query that gives no value is told, and what nobody could compare is taken back after two watches.
func TestNoLatencies(t *testing.T) {
	s := newScene(t, 20)
	s.prom.pods = 0
	s.is(0, canary.Waits, "")
	s.is(15*time.Minute, canary.Watches, "")
	if s.log.Len() > 0 {
		t.Errorf("before anything is compared: %s", s.log.String())
	}
	s.is(16*time.Minute, canary.Watches, "")
	if said := s.log.String(); !strings.Contains(said, "gives no value with a label pod") || !strings.Contains(said, "query=p99") {
		t.Errorf("said: %s", said)
	}
	s.is(16*time.Minute, canary.Reverted, "0 treated and 0 other pods could be compared in two watches, too few")
}

// TestHarm: it is taken back after its first watch, and before was asked for with its own time.
func TestHarm(t *testing.T) {
	s := newScene(t, 20)
	s.effect(2)
	s.is(0, canary.Waits, "nothing is in force for one watch")
	if len(s.prom.asked) > 0 {
		t.Errorf("it asks %v before it looks", s.prom.asked)
	}
	s.is(10*time.Minute, canary.Waits, "")
	s.is(5*time.Minute, canary.Watches, "2 of 20 pods are treated at first")
	s.is(10*time.Minute, canary.Watches, "")
	s.is(5*time.Minute, canary.Reverted, "times as long")
}

// TestGain: it spreads by steps, and is kept.
func TestGain(t *testing.T) {
	s := newScene(t, 20)
	s.effect(0.7)
	s.next(0)
	var treated []int64
	for range 12 {
		state, err := s.next(15 * time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		treated = append(treated, state.Treated)
	}
	if got := fmt.Sprint(treated[:6]); got != "[2 4 8 10 20 20]" || s.object.Rollout.Phase != canary.Kept {
		t.Errorf("treated %s, then %+v", got, s.object.Rollout)
	}
}

// TestGuard: above its bound all is taken back at once; a Prometheus that does not answer is waited for, and no longer than two watches.
func TestGuard(t *testing.T) {
	s := newScene(t, 20)
	s.prom.guard = ""
	s.next(0)
	s.is(15*time.Minute, canary.Waits, "the guard cannot be read")
	s.prom.guard = "0.001"
	s.is(time.Minute, canary.Watches, "")
	s.prom.guard = "0.5"
	s.is(time.Minute, canary.Reverted, "the guard is 0.5, above its bound of 0.01")
	s.prom.guard = "0.001"
	s.is(canary.Cooldown, canary.Watches, "")
	s.prom.guard = ""
	s.is(15*time.Minute, canary.Watches, "")
	s.is(15*time.Minute, canary.Reverted, "the guard could not be read in two watches")
}

// TestGuardAlone: where pods cannot be listed the guard takes back all the same.
func TestGuardAlone(t *testing.T) {
	s := newScene(t, 20)
	s.next(0)
	s.is(15*time.Minute, canary.Watches, "")
	s.client.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(Pods.GroupResource(), "", nil)
	})
	if state, err := s.next(time.Minute); err == nil || state.Phase != canary.Watches {
		t.Errorf("%+v, %v", state, err)
	}
	s.prom.guard = "0.5"
	s.is(time.Minute, canary.Reverted, "the guard is 0.5, above its bound of 0.01")
}

// TestWhoCounts: pods that are over, or that another rule is for, are not the policy's; PodDisruptionBudgets count.
func TestWhoCounts(t *testing.T) {
	pdb := object(t, `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: cart, namespace: shop}, spec: {selector: {matchLabels: {app: cart}}},
  status: {disruptionsAllowed: 0}}`)
	s := newScene(t, 10, aPod(t, 90, "Pending"), aPod(t, 91, "Succeeded"), pdb,
		object(t, `{apiVersion: v1, kind: Pod, metadata: {name: cart-other, namespace: shop, uid: o}, spec: {containers: [{name: app}]}, status: {phase: Running}}`))
	s.next(0)
	s.is(15*time.Minute, canary.Waits, "no pod can be drawn: a PodDisruptionBudget allows no disruption")
	if err := unstructured.SetNestedField(pdb.Object, int64(1), "status", "disruptionsAllowed"); err != nil {
		t.Fatal(err)
	}
	if err := s.client.Tracker().Update(budgets, pdb, "shop"); err != nil {
		t.Fatal(err)
	}
	s.is(time.Minute, canary.Watches, "1 of 11 pods are treated at first")
	one := newScene(t, 1)
	one.next(0)
	one.is(15*time.Minute, canary.Waits, "too few pods: 1 pod, and a canary needs 4")
}

// TestListedOnce: the policies of a namespace share its lists in one pass, each with its own pods. The next pass lists anew, and so does a
// decision that comes late in one.
func TestListedOnce(t *testing.T) {
	var more []runtime.Object
	for i := range 12 {
		more = append(more, object(t, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: web-%d, namespace: shop, uid: web-%d,
  creationTimestamp: "2026-11-29T08:00:00Z", labels: {app: web}}, spec: {nodeName: node-%d, containers: [{name: app}]},
  status: {phase: Running}}`, i, i, i)))
	}
	s := newScene(t, 20, more...)
	web := s.object
	web.Name = "web"
	web.Spec = map[string]any{"mode": "apply", "rollout": s.object.Spec["rollout"], "rules": []any{map[string]any{
		"match": map[string]any{"name": "web-*"}, "remedy": "auto", "verify": "probe"}}}
	all := []policies.Object{s.object, web}
	d := Decider{Client: s.client, Log: slog.New(slog.NewTextHandler(&s.log, nil))}
	lists := func() string {
		count := map[string]int{}
		for _, a := range s.client.Actions() {
			if a.GetVerb() == "list" {
				count[a.GetResource().Resource]++
			}
		}
		return fmt.Sprint(count)
	}
	for pass, c := range []struct {
		after []time.Duration // one pass decides so long after the morning
		want  string
	}{
		{[]time.Duration{0}, "map[]"}, // it is asked for nothing before a rollout looks
		{[]time.Duration{15 * time.Minute}, "map[poddisruptionbudgets:1 pods:1]"},
		{[]time.Duration{16 * time.Minute, 16*time.Minute + listFor}, "map[poddisruptionbudgets:2 pods:2]"},
		{[]time.Duration{18 * time.Minute, 18*time.Minute + 2*listFor}, "map[poddisruptionbudgets:4 pods:4]"},
	} {
		out, err := policies.Merge([]byte("version: 1\nmode: apply\n"), append([]policies.Object{s.base}, all...), &policies.Node{})
		if err != nil {
			t.Fatal(err)
		}
		p := d.Pass(out.InForce)
		for _, after := range c.after {
			for i := range all {
				if all[i].Rollout, err = p.Next(t.Context(), all[i], out.Rollouts[all[i].Key()], morning.Add(after)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got := lists(); got != c.want {
			t.Errorf("pass %d: listed %s, want %s", pass, got, c.want)
		}
	}
	for i, want := range []int64{20, 12} {
		if r := all[i].Rollout; r.Phase != canary.Watches || r.Pods != want {
			t.Errorf("%s: %s, %d pods, want %d: %s", all[i].Name, r.Phase, r.Pods, want, r.Why)
		}
	}
	// A list that failed is not tried again by the namespace's other policies.
	refused := 0
	s.client.PrependReactor("list", "poddisruptionbudgets", func(clienttesting.Action) (bool, runtime.Object, error) {
		refused++
		return true, nil, apierrors.NewForbidden(budgets.GroupResource(), "", nil)
	})
	out, err := policies.Merge([]byte("version: 1\nmode: apply\n"), append([]policies.Object{s.base}, all...), &policies.Node{})
	if err != nil {
		t.Fatal(err)
	}
	p := d.Pass(out.InForce)
	for i := range all {
		if _, err := p.Next(t.Context(), all[i], out.Rollouts[all[i].Key()], morning.Add(22*time.Minute)); !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", all[i].Name, err)
		}
	}
	if refused != 1 {
		t.Errorf("a list that failed was tried %d times", refused)
	}
}

// TestSidecars: a policy may be for a native sidecar, and is for no init container that ends.
func TestSidecars(t *testing.T) {
	for policy, why := range map[string]string{"Always": "2 of 4 pods are treated at first", "": "too few pods: 0 pods"} {
		var all []runtime.Object
		for i := range 4 {
			pod, side := aPod(t, i, "Running"), map[string]any{"name": "proxy"}
			if policy != "" {
				side["restartPolicy"] = policy
			}
			pod.Object["spec"].(map[string]any)["initContainers"] = []any{side}
			all = append(all, pod)
		}
		s := newScene(t, 0, all...)
		s.object.Spec["rules"].([]any)[0].(map[string]any)["match"] = map[string]any{"name": "proxy"}
		s.object.Spec["rollout"].(map[string]any)["share"] = "50%"
		s.next(0)
		if state, err := s.next(15 * time.Minute); err != nil || !strings.Contains(state.Why, why) {
			t.Errorf("restartPolicy %q: %s (%v), want %s", policy, state.Why, err, why)
		}
	}
}

// TestPending: a pod that did not run yet when others were drawn is not treated beyond their number when it runs.
func TestPending(t *testing.T) {
	for range 12 {
		late := aPod(t, 90, "Pending") // as old as those that run
		s := newScene(t, 10, late)
		s.object.Spec["rollout"].(map[string]any)["share"] = "50%"
		s.next(0)
		drawn := s.is(15*time.Minute, canary.Watches, "5 of 11 pods are treated at first")
		late.Object["status"] = map[string]any{"phase": "Running"}
		if err := s.client.Tracker().Update(Pods, late, "shop"); err != nil {
			t.Fatal(err)
		}
		state, treated := s.is(time.Minute, canary.Watches, ""), 0
		for _, i := range []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 90} {
			if state.Treats(canary.Pod{UID: fmt.Sprint("uid-", i), Created: morning.Add(-time.Hour)}) {
				treated++
			}
		}
		if treated != int(drawn.Treated) {
			t.Fatalf("%d pods are treated, %d were drawn", treated, drawn.Treated)
		}
	}
}

// TestListExpires: a list whose next page the API server no longer has begins anew, and no pod counts twice.
func TestListExpires(t *testing.T) {
	for expired, wants := range map[int]string{0: "4 pods", 2: "4 pods", 4: "410"} {
		s, asked := newScene(t, 0), 0
		s.client.PrependReactor("list", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
			asked++
			list := &unstructured.UnstructuredList{}
			from := 0
			if options := action.(clienttesting.ListActionImpl).ListOptions; options.Continue != "" {
				if expired--; expired >= 0 {
					return true, nil, apierrors.NewResourceExpired("410: the provided continue parameter is too old")
				}
				from = 2
			} else {
				list.SetContinue("2")
			}
			for i := range 2 {
				list.Items = append(list.Items, *aPod(t, from+i, "Running"))
			}
			return true, list, nil
		})
		kept, err := gather(t.Context(), s.client, Pods, "shop", func(u *unstructured.Unstructured) (*string, error) {
			return new(u.GetName()), nil
		})
		if got := fmt.Sprint(len(kept), " pods ", err); !strings.Contains(got, wants) || err == nil && fmt.Sprint(kept) != "[cart-0 cart-1 cart-2 cart-3]" {
			t.Errorf("%d left: %s, %v, want %s, asked %d times", expired, got, kept, wants, asked)
		}
	}
}

// TestAsk: what a Prometheus may answer, and what its errors say.
func TestAsk(t *testing.T) {
	answer, redirected := "", false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/elsewhere":
			redirected = true
		case answer == "redirect":
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}
		fmt.Fprint(w, answer)
	}))
	defer server.Close()
	for given, want := range map[string]string{
		`{"status":"success","data":{"resultType":"scalar","result":[1,"0.5"]}}`:                             "0.5",
		`{"status":"success","data":{"resultType":"vector","result":[{"value":[1,"2"]},{"value":[1,"3"]}]}}`: "3",
		`{"status":"success","data":{"resultType":"vector","result":[]}}`:                                    "QUERY or vector(0)",
		`{"status":"success","data":{"resultType":"vector","result":[{"value":[1,"NaN"]}]}}`:                 "QUERY or vector(0)",
		`{"status":"success","data":{"resultType":"vector","result":[{"value":[1,"much"]}]}}`:                `parsing "much"`,
		`{"status":"success","data":{"resultType":"matrix","result":[]}}`:                                    "the query gives a matrix: write one that gives a value now",
		`{"status":"success","warnings":["PromQL info: x"],"data":{"resultType":"scalar","result":[1,"4"]}}`: "4",
		`{"status":"success","warnings":["partial"],"data":{"resultType":"scalar","result":[1,"0"]}}`:        "part of it may be missing: partial",
		`{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"histogram":[1,{}]}]}}`:    "the query gives histograms",
		`{"status":"error","error":"parse\u001b error"}`:                                                     `parse\x1b error`,
		`<html>`:   "is no answer to a query; give the URL without /api/v1",
		`redirect`: "307 Temporary Redirect",
	} {
		answer = given
		v, err := largest(t.Context(), server.URL+"/", "q", morning)
		if got := fmt.Sprint(err); err == nil && fmt.Sprint(*v) != want || err != nil && !strings.Contains(got, want) {
			t.Errorf("%s: %v, %v", given, v, err)
		}
	}
	if redirected {
		t.Error("it asks another address than the one that is allowed")
	}
}
