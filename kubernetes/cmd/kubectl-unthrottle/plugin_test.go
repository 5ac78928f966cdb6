package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	authn "k8s.io/api/authentication/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/unthrottle/unthrottle/kubernetes/reader"
)

// agentPages are what an agent answered at five moments (TestPagesOfANode of internal/agent).
var agentPages = filepath.Join("..", "..", "..", "internal", "agent", "testdata", "pages")

const cartPod = "cart-7d9c5b8f6-x2x4x"

// world is a cluster of the node n1 with the pods of shop-a, an agent, and the reader beside it.
type world struct {
	t      *testing.T
	client *fake.Clientset
	// policies is the API server's part that knows ThrottlePolicies.
	policies *dynamicfake.FakeDynamicClient
	agent    *core.Pod
	reader   http.Handler
	// moments are the agent's, one for each answer to /policy; the last one stays.
	mu      sync.Mutex
	moments []string
	// says is the condition Accepted of each policy, as STATUS REASON MESSAGE; "": no agent looks at it.
	says string
	user string
}

// rights is an API server that knows users by their tokens.
type rights struct{}

func (rights) User(_ context.Context, token string) (u reader.User, err error) {
	if token == "nobody" {
		return u, reader.ErrNoUser
	}
	u.Username = token
	return u, nil
}

func (rights) May(_ context.Context, u reader.User, r reader.Right) (bool, error) {
	return r.Namespace == "shop-a" && (u.Username == "developer" || u.Username == "viewer" && r.Verb == "get"), nil
}

// podOf is a pod on the node n1 that a controller made.
func podOf(name, kind, owner string, labels map[string]string) *core.Pod {
	p := &core.Pod{ObjectMeta: meta.ObjectMeta{Namespace: "shop-a", Name: name, Labels: labels},
		Spec:   core.PodSpec{NodeName: "n1", Containers: []core.Container{{Name: "app"}}},
		Status: core.PodStatus{Phase: core.PodRunning}}
	if kind != "" {
		p.OwnerReferences = []meta.OwnerReference{{Kind: kind, Name: owner, Controller: new(true)}}
	}
	return p
}

func replica(deployment, hash, end string) *core.Pod {
	return podOf(deployment+"-"+hash+"-"+end, "ReplicaSet", deployment+"-"+hash, map[string]string{"pod-template-hash": hash})
}

func newWorld(t *testing.T, more ...runtime.Object) *world {
	t.Helper()
	agent := &core.Pod{ObjectMeta: meta.ObjectMeta{Namespace: "unthrottle", Name: "unthrottle-kj2wz",
		Labels: map[string]string{"app.kubernetes.io/name": "unthrottle"}},
		Spec: core.PodSpec{NodeName: "n1",
			Containers: []core.Container{{Name: "agent"}, {Name: "reader", Args: []string{"read", "--listen", "127.0.0.1:9470"}}}},
		Status: core.PodStatus{Phase: core.PodRunning}}
	w := &world{t: t, agent: agent, user: "developer", moments: []string{"before"}, says: "True Accepted its rules are in force"}
	objects := append([]runtime.Object{agent, replica("cart", "7d9c5b8f6", "x2x4x"), replica("cart", "7d9c5b8f6", "p7rmn")}, more...)
	w.client = fake.NewClientset(objects...)
	w.policies = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{resource: "ThrottlePolicyList"})
	w.policies.PrependReactor("get", "throttlepolicies", func(action clienttesting.Action) (bool, runtime.Object, error) {
		get := action.(clienttesting.GetAction)
		got, err := w.policies.Tracker().Get(resource, get.GetNamespace(), get.GetName())
		if u, ok := got.(*unstructured.Unstructured); ok && w.says != "" {
			said := strings.SplitN(w.says, " ", 3)
			u = u.DeepCopy()
			u.Object["status"] = map[string]any{
				"conditions": []any{map[string]any{"type": "Accepted", "status": said[0], "reason": said[1],
					"message": said[2], "lastTransitionTime": nil}}}
			return true, u, err
		}
		return true, got, err
	})
	pages := httptest.NewServer(http.HandlerFunc(w.page))
	t.Cleanup(pages.Close)
	w.reader = reader.New(reader.Options{Agent: pages.URL, Access: rights{}, Log: slog.New(slog.DiscardHandler)})
	return w
}

// Moments of an agent that reads new rules: it asks to be asked again, and then has not seen a container yet.
const (
	away   = "away"
	unseen = "unseen"
)

// page answers as the agent at its moment.
func (w *world) page(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	moment := w.moments[0]
	if (moment == away || r.URL.Path == "/policy") && len(w.moments) > 1 {
		w.moments = w.moments[1:]
	}
	w.mu.Unlock()
	if moment == away {
		out.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if moment == unseen {
		_, _ = io.WriteString(out, "{}")
		return
	}
	name := filepath.Join(agentPages, moment, r.URL.Path+".json")
	if file, ok := strings.CutPrefix(r.URL.Path, "/recordings/"); ok {
		name = filepath.Join(agentPages, file)
	}
	http.ServeFile(out, r, name)
}

// run runs `kubectl unthrottle ARGS`.
func (w *world) run(args ...string) (out, said string, err error) {
	w.t.Helper()
	var stdout, stderr bytes.Buffer
	err = w.into(&stdout, &stderr, args...)
	return stdout.String(), stderr.String(), err
}

// terminal runs it, and has both of its streams in one.
func (w *world) terminal(args ...string) (string, error) {
	w.t.Helper()
	var buffer bytes.Buffer
	err := w.into(&buffer, &buffer, args...)
	return buffer.String(), err
}

func (w *world) into(stdout, stderr io.Writer, args ...string) error {
	w.t.Helper()
	p := &plugin{IOStreams: genericiooptions.IOStreams{Out: stdout, ErrOut: stderr},
		flags: genericclioptions.NewConfigFlags(true), poll: time.Millisecond}
	p.dial = func(p *plugin) (*connected, error) {
		namespace := "shop-a"
		if n := *p.flags.Namespace; n != "" {
			namespace = n
		}
		return &connected{plugin: p, config: &rest.Config{Host: "https://127.0.0.1:1", BearerToken: w.user},
			client: w.client, dynamic: w.policies, namespace: namespace}, nil
	}
	p.reach = func(_ context.Context, pod *core.Pod, port int) (string, func(), error) {
		if pod.Name != w.agent.Name || port != 9470 {
			w.t.Errorf("it reaches port %d of %s", port, pod.Name)
		}
		server := httptest.NewServer(w.reader)
		return server.URL, server.Close, nil
	}
	root := newRoot(p)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return root.ExecuteContext(w.t.Context())
}

// good runs it, and fails the test if it fails.
func (w *world) good(args ...string) (out, said string) {
	w.t.Helper()
	out, said, err := w.run(args...)
	if err != nil {
		w.t.Fatalf("%q: %v\n%s%s", args, err, out, said)
	}
	return out, said
}

// has fails the test if a text lacks one of these.
func has(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, part := range want {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in\n%s", part, text)
		}
	}
}

// policy is the ThrottlePolicy of a name; nil: there is none.
func (w *world) policy(name string) *unstructured.Unstructured {
	w.t.Helper()
	got, err := w.policies.Tracker().Get(resource, "shop-a", name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return got.(*unstructured.Unstructured)
}

func TestTop(t *testing.T) {
	w := newWorld(t)
	out, _ := w.good("top")
	has(t, out, "shop-a/"+cartPod+"/app", "340 ms")
	if strings.Contains(out, "etl") || strings.Contains(out, "ssh") {
		t.Errorf("it shows what is not the user's:\n%s", out)
	}
	out, _ = w.good("top", "-A", "-o", "json")
	has(t, out, `"namespace": "shop-a"`)
	if strings.Contains(out, "etl") {
		t.Errorf("-A shows what the user may not see:\n%s", out)
	}
	w.user = "stranger"
	out, said := w.good("top")
	if out != "" || said != "No containers found in namespace shop-a that you may see.\n" {
		t.Errorf("a stranger sees %q, %q", out, said)
	}
	w.user = "nobody"
	_, _, err := w.run("top")
	if err == nil || !strings.Contains(err.Error(), "node n1: the API server does not know this token") ||
		!strings.Contains(err.Error(), "--service-account") {
		t.Errorf("%v", err)
	}
}

func TestExplainAndForecast(t *testing.T) {
	w := newWorld(t)
	out, said := w.good("explain", cartPod)
	has(t, out, "quota", "http-worker", "burst 200ms")
	has(t, said, "the recording of 2026-11-24", "on node n1")
	out, _ = w.good("forecast", "pod/"+cartPod)
	has(t, out, "Recommended: burst 200ms")
	for _, command := range []string{"explain", "forecast"} {
		out, _ = w.good(command, cartPod, "-o", "json")
		has(t, out, `"version"`)
	}
	w.user = "viewer" // who may not exec
	if _, _, err := w.run("explain", cartPod); err == nil ||
		!strings.Contains(err.Error(), "recordings need 'create pods/exec' in namespace shop-a") {
		t.Errorf("%v", err)
	}
}

func TestStatusAndPolicy(t *testing.T) {
	w := newWorld(t)
	w.moments = []string{"cured"}
	out, _ := w.good("status")
	has(t, out, "n1", "v0.1.0", "burst", "better")
	out, _ = w.good("policy", cartPod)
	has(t, out, "ThrottlePolicy shop-a/cart", "burst")
	out, _ = w.good("policy", cartPod, "-o", "json")
	has(t, out, `"remedy_in_force": "burst"`)
	w.user = "stranger"
	out, _ = w.good("status")
	has(t, out, "No remedy is in force on a container that you may see.")
	if _, _, err := w.run("policy", cartPod); err == nil ||
		!strings.Contains(err.Error(), "the user of your token may not get pods in namespace shop-a") {
		t.Errorf("%v", err)
	}
}

// TestFix: the policy is written for the Deployment's pods, and the agent's words are shown until there is a verdict.
func TestFix(t *testing.T) {
	w := newWorld(t)
	out, said := w.good("fix", cartPod, "--dry-run")
	has(t, out, "Recommended: burst 200ms", "name: cart-*-?????", "app.kubernetes.io/managed-by: kubectl-unthrottle", "verify: probe")
	has(t, said, "2 pods of deployment/cart", "would be created (dry run)")

	// The stand-in of the API server makes what a dry run makes: the real one is asked in kubernetes/realapi.
	if err := w.policies.Tracker().Delete(resource, "shop-a", "cart"); err != nil {
		t.Fatal(err)
	}
	w.moments = []string{"before", "before", away, away, unseen, "confirming", "trying", "cured"}
	out, said = w.good("fix", cartPod)
	if out != "shop-a/"+cartPod+"/app: burst is in force\n" {
		t.Errorf("it says %q", out)
	}
	has(t, said, "throttlepolicy/cart created", "throttlepolicy/cart accepted", "does not have the policy yet",
		"is not stopped above the bound for long enough yet", "is looking for a remedy, or judging one")
	u := w.policy("cart")
	if u == nil || matchOf(u) != "cart-*-?????" || u.GetLabels()[managedBy] != program {
		t.Fatalf("it wrote %v", u)
	}
	if _, said = w.good("fix", cartPod); !strings.Contains(said, "throttlepolicy/cart is there already") {
		t.Errorf("the second time it says %q", said)
	}
	if _, said = w.good("fix", cartPod, "--remedy", "none", "--wait", "0"); !strings.Contains(said, "throttlepolicy/cart changed") {
		t.Errorf("another remedy: %q", said)
	}

	w.moments = []string{"cured", "cured", "before"}
	out, said = w.good("restore", cartPod)
	has(t, said, "throttlepolicy/cart deleted", "waiting until the agent on node n1 has let the rule go")
	has(t, out, "nothing is in force: no rule matches it")
	if w.policy("cart") != nil {
		t.Error("it is still there")
	}
	if _, said = w.good("restore", cartPod); !strings.Contains(said, "there is no throttlepolicy/cart in namespace shop-a") {
		t.Errorf("%q", said)
	}
	w.moments = []string{"cured"}
	_, said = w.good("restore", cartPod, "--wait", "0")
	has(t, said, "burst stays in force until the container ends, or until:\n  kubectl -n unthrottle exec "+
		"unthrottle-kj2wz -c agent -- unthrottle restore shop-a/"+cartPod+"/app")
}

// TestFixRefused: what the agents do not accept leaves nothing behind, and what is not the plugin's stays as it is.
func TestFixRefused(t *testing.T) {
	fails := func(w *world, want string, args ...string) {
		t.Helper()
		_, said, err := w.run(append([]string{"fix", cartPod}, args...)...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q\n%s", args, err, want, said)
		}
	}
	w := newWorld(t)
	w.says = "False NotAllowed spec.mode: apply is not allowed; none of it is in force"
	fails(w, "A ClusterThrottlePolicy for namespace shop-a allows it: 'allow: {mode: apply, remedies: [auto]}'. "+
		"throttlepolicy/cart is deleted again")
	if w.policy("cart") != nil {
		t.Error("a policy that is not accepted is still there")
	}
	w.says = ""
	fails(w, "the agents did not look at throttlepolicy/cart in time, which stays: the container policies", "--wait", "20ms")
	w.says = "True Accepted its rules are in force"
	w.moments = []string{"confirming"}
	fails(w, "no verdict within 50ms: the agent last said: it is not stopped above the bound for long enough yet", "--wait", "50ms")

	theirs := w.policy("cart")
	theirs.SetLabels(nil)
	if err := w.policies.Tracker().Update(resource, theirs, "shop-a"); err != nil {
		t.Fatal(err)
	}
	fails(w, "throttlepolicy/cart in namespace shop-a was not written by this plugin")
	if _, _, err := w.run("restore", cartPod); err == nil || w.policy("cart") == nil {
		t.Errorf("it deletes what is not its own: %v", err)
	}

	w = newWorld(t, replica("cart-api", "5c7d9f6b4", "abcde"), replica("cart-api", "5c7d9f6b4", "fghij"))
	fails(w, "the name cart-*-????? also matches deployment/cart-api (pod cart-api-5c7d9f6b4-abcde and 1 more): "+
		"nothing is written; --others")
	if w.policy("cart") != nil {
		t.Error("it is written")
	}
	w.moments = []string{"cured"}
	w.good("fix", cartPod, "--others")
}

// TestMistakes: each message says what is wrong and what to do.
func TestMistakes(t *testing.T) {
	pending := podOf("pending", "", "", nil)
	pending.Spec.NodeName = ""
	elsewhere := podOf("elsewhere", "", "", nil)
	elsewhere.Spec.NodeName = "n2"
	w := newWorld(t, pending, elsewhere)
	w.client.PrependReactor("list", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		// The stand-in knows no field selectors.
		fields := action.(clienttesting.ListAction).GetListRestrictions().Fields
		if node, ok := fields.RequiresExactMatch("spec.nodeName"); ok && node != "n1" {
			return true, &core.PodList{}, nil
		}
		return false, nil, nil
	})
	for want, args := range map[string][]string{
		"give one POD, as POD or pod/POD":                              {"explain"},
		`pods "none" not found`:                                        {"policy", "none"},
		"deployment/cart: only pods can be looked at":                  {"fix", "deployment/cart"},
		"pod shop-a/pending is on no node yet":                         {"fix", "pending"},
		"no agent of unthrottle runs on node n2":                       {"policy", "elsewhere"},
		"--container web: pod shop-a/" + cartPod + " has app":          {"fix", cartPod, "-c", "web"},
		"--remedy pin: a ThrottlePolicy applies auto, secondary, none": {"fix", cartPod, "--remedy", "pin"},
		"--mode canary: give apply or observe":                         {"fix", cartPod, "--mode", "canary"},
		"--wait -1s":                                                   {"restore", cartPod, "--wait", "-1s"},
		"allowed formats are: json,wide":                               {"top", "-o", "yaml"},
		"--at ":                                                        {"explain", cartPod, "--at", "soon"},
		`unknown command "topp"`:                                       {"topp"},
		"no pod with labels app=none in namespace unthrottle":          {"top", "--agent-labels", "app=none"},
	} {
		_, _, err := w.run(args...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
	w.agent.Spec.Containers = w.agent.Spec.Containers[:1]
	if err := w.client.Tracker().Update(core.SchemeGroupVersion.WithResource("pods"), w.agent, "unthrottle"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.run("top"); err == nil || !strings.Contains(err.Error(), "has no container reader, which shows "+
		"users their pods: upgrade the chart with --set reader.enabled=true") {
		t.Errorf("%v", err)
	}
}

// TestAgentsThatWaitAreNoneMissing: a pod of the agent that does not run yet is named, with what it waits for.
func TestAgentsThatWaitAreNoneMissing(t *testing.T) {
	waiting := func(change func(*core.Pod)) *world {
		w := newWorld(t)
		w.agent.Status = core.PodStatus{Phase: core.PodPending}
		change(w.agent)
		if err := w.client.Tracker().Update(core.SchemeGroupVersion.WithResource("pods"), w.agent, "unthrottle"); err != nil {
			t.Fatal(err)
		}
		w.client.PrependReactor("list", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
			node, ok := action.(clienttesting.ListAction).GetListRestrictions().Fields.RequiresExactMatch("spec.nodeName")
			return ok && node != w.agent.Spec.NodeName, &core.PodList{}, nil // the stand-in knows no field selectors
		})
		return w
	}
	onN1 := &core.Affinity{NodeAffinity: &core.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &core.NodeSelector{
		NodeSelectorTerms: []core.NodeSelectorTerm{{MatchFields: []core.NodeSelectorRequirement{
			{Key: "metadata.name", Operator: core.NodeSelectorOpIn, Values: []string{"n1"}}}}}}}}
	for want, w := range map[string]*world{
		"is Pending: container agent: ImagePullBackOff (Back-off pulling image)": waiting(func(p *core.Pod) {
			p.Status.ContainerStatuses = []core.ContainerStatus{{Name: "agent",
				State: core.ContainerState{Waiting: &core.ContainerStateWaiting{Reason: "ImagePullBackOff",
					Message: "Back-off pulling image"}}}}
		}),
		"is Pending: Unschedulable (0/1 nodes are available: 1 Insufficient memory.)": waiting(func(p *core.Pod) {
			p.Spec.NodeName, p.Spec.Affinity = "", onN1
			p.Status.Conditions = []core.PodCondition{{Type: core.PodScheduled, Status: core.ConditionFalse, Reason: "Unschedulable",
				Message: "0/1 nodes are available: 1 Insufficient memory."}}
		}),
		"is Failed: Evicted (The node was low on resource: memory.)": waiting(func(p *core.Pod) {
			p.Status = core.PodStatus{Phase: core.PodFailed, Reason: "Evicted", Message: "The node was low on resource: memory."}
		}),
	} {
		for _, args := range [][]string{{"top"}, {"policy", cartPod}} {
			_, _, err := w.run(args...)
			if err == nil || !strings.Contains(err.Error(), "yet: pod unthrottle/unthrottle-kj2wz "+want) ||
				!strings.Contains(err.Error(), "kubectl -n unthrottle get pods,events") {
				t.Errorf("%q: %v, want %q", args, err, want)
			}
		}
	}
}

// TestHelp: what is written by hand fits a terminal, and each command that the page lists is there.
func TestHelp(t *testing.T) {
	w := newWorld(t)
	out, _ := w.good("--help")
	text, _, _ := strings.Cut(out, "\nFlags:")
	for _, line := range strings.Split(text, "\n") {
		if len(line) > 80 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
	data, err := os.ReadFile(pluginPage)
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"top", "explain", "forecast", "status", "policy", "fix", "restore"} {
		has(t, text, "\n  "+command+" ")
		if !strings.Contains(string(data), "| `"+command) {
			t.Errorf("%s is not in the table of %s", command, pluginPage)
		}
		help, _ := w.good(command, "--help")
		own, _, _ := strings.Cut(help, "Global Flags:")
		_, own, _ = strings.Cut(own, "\nFlags:")
		for _, field := range strings.Fields(own) {
			if strings.HasPrefix(field, "--") && field != "--help" && !strings.Contains(string(data), field) {
				t.Errorf("%s of %s is not in %s", field, command, pluginPage)
			}
		}
	}
}

// TestToken: only what a reader can check is sent.
func TestToken(t *testing.T) {
	for want, config := range map[string]*rest.Config{
		"has a client certificate and no token": {Host: "https://127.0.0.1:1"},
		"--as eve: the agent would see your own token": {Host: "https://127.0.0.1:1", BearerToken: "mine",
			Impersonate: rest.ImpersonationConfig{UserName: "eve"}},
	} {
		c := &connected{plugin: &plugin{}, config: config}
		if got, err := c.token(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("of a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, config := range map[string]*rest.Config{
		"mine": {Host: "10.0.0.1:6443", BearerToken: "mine"}, "of a file": {Host: "https://127.0.0.1:1", BearerTokenFile: file},
	} {
		c := &connected{plugin: &plugin{}, config: config}
		if got, err := c.token(t.Context()); err != nil || got != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
}

// TestRecordingOfAnEarlierPod: a pod of the same name that is gone is not taken for the one that runs.
func TestRecordingOfAnEarlierPod(t *testing.T) {
	w := newWorld(t)
	pod, err := w.client.CoreV1().Pods("shop-a").Get(t.Context(), cartPod, meta.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod.CreationTimestamp = meta.NewTime(time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC))
	if err := w.client.Tracker().Update(core.SchemeGroupVersion.WithResource("pods"), pod, "shop-a"); err != nil {
		t.Fatal(err)
	}
	_, _, err = w.run("explain", cartPod)
	if err == nil || !strings.Contains(err.Error(), "since it was made; --at '2026-11-24") {
		t.Fatal(err)
	}
	at, _, _ := strings.Cut(err.Error()[strings.Index(err.Error(), "--at '")+len("--at '"):], "'")
	w.good("explain", cartPod, "--at", at)
}

// TestRestoreLeavesAnotherWorkloads: a policy of the same name for other pods, such as of a StatefulSet beside a Deployment, stays.
func TestRestoreLeavesAnotherWorkloads(t *testing.T) {
	w := newWorld(t)
	w.good("fix", cartPod, "--wait", "0")
	other := w.policy("cart")
	rules := []any{map[string]any{"match": map[string]any{"name": "cart-?"}, "remedy": "none"}}
	if err := unstructured.SetNestedSlice(other.Object, rules, "spec", "rules"); err != nil {
		t.Fatal(err)
	}
	if err := w.policies.Tracker().Update(resource, other, "shop-a"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.run("restore", cartPod); err == nil || !strings.Contains(err.Error(), "is for pods cart-?, and not for") ||
		w.policy("cart") == nil {
		t.Errorf("%v", err)
	}
}

// TestTokensAreRenewed: a command that goes on for longer than a service account's token lives asks for another one.
func TestTokensAreRenewed(t *testing.T) {
	client := fake.NewClientset()
	asked, lives := 0, 10*time.Minute
	client.PrependReactor("create", "serviceaccounts", func(clienttesting.Action) (bool, runtime.Object, error) {
		asked++
		return true, &authn.TokenRequest{Status: authn.TokenRequestStatus{Token: fmt.Sprint("token ", asked),
			ExpirationTimestamp: meta.NewTime(time.Now().Add(lives))}}, nil
	})
	c := &connected{plugin: &plugin{serviceAccount: "viewer"}, client: client, namespace: "shop"}
	for range 3 {
		if got, err := c.token(t.Context()); err != nil || got != "token 1" {
			t.Errorf("%q, %v", got, err)
		}
	}
	c.until = time.Now().Add(renewBefore / 2)
	if got, err := c.token(t.Context()); err != nil || got != "token 2" {
		t.Errorf("near its end: %q, %v", got, err)
	}
}

// TestCompletion: the shell is offered commands and pods.
func TestCompletion(t *testing.T) {
	w := newWorld(t)
	out, _ := w.good("__complete", "fo")
	has(t, out, "forecast\t")
	out, _ = w.good("__complete", "fix", "")
	has(t, out, cartPod)
	out, _ = w.good("__complete", "fix", cartPod, "--remedy", "")
	has(t, out, "auto\nsecondary\nnone\n")
}

// TestSandboxIsNoContainer: a pod's sandbox has the pod's names, and no rule of users is about it.
func TestSandboxIsNoContainer(t *testing.T) {
	pod, app := replica("cart", "7d9c5b8f6", "x2x4x"), "app"
	a := &agent{connected: &connected{plugin: &plugin{}}}
	if a.isOf(pod, &pod.Namespace, &pod.Name, nil) || !a.isOf(pod, &pod.Namespace, &pod.Name, &app) {
		t.Error("its sandbox counts, or its container does not")
	}
}
