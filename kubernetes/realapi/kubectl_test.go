package realapi

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/cri-streaming/pkg/streaming/portforward"

	"github.com/unthrottle/unthrottle/test/apiserver"
	"github.com/unthrottle/unthrottle/test/wait"
)

const cartPod = "cart-7d9c5b8f6-x2x4x"

// kubeletOf stands for the kubelet of a node: it forwards ports of pods, as the kubelet's runtime does, to this host's loopback
// address.
func kubeletOf(t *testing.T) int {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
		if path[0] != "portForward" || len(path) < 3 {
			http.NotFound(w, r)
			return
		}
		portforward.ServePortForward(w, r, loopback{}, path[2], "", &portforward.V4Options{}, time.Minute, time.Minute,
			portforward.SupportedProtocols)
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().(*net.TCPAddr).Port
}

type loopback struct{}

// PortForward implements portforward.PortForwarder.
func (loopback) PortForward(ctx context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	defer conn.Close()
	go func() {
		_, _ = io.Copy(conn, stream)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	_, err = io.Copy(stream, conn)
	return err
}

// node is a cluster's node n1 with the pods of two namespaces, and the chart's pod with its reader.
func (s *server) node(readerAt string) {
	s.t.Helper()
	fail := func(err error) {
		s.t.Helper()
		if err != nil {
			s.t.Fatal(err)
		}
	}
	for _, namespace := range []string{"shop-a", "batch"} { // the controller manager makes it
		_, err := s.client.CoreV1().ServiceAccounts(namespace).Create(s.t.Context(),
			&core.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
		fail(err)
	}
	n := &core.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	n, err := s.client.CoreV1().Nodes().Create(s.t.Context(), n, metav1.CreateOptions{})
	fail(err)
	n.Status = core.NodeStatus{Addresses: []core.NodeAddress{{Type: core.NodeInternalIP, Address: "127.0.0.1"}},
		DaemonEndpoints: core.NodeDaemonEndpoints{KubeletEndpoint: core.DaemonEndpoint{Port: int32(kubeletOf(s.t))}}}
	_, err = s.client.CoreV1().Nodes().UpdateStatus(s.t.Context(), n, metav1.UpdateOptions{})
	fail(err)
	s.pod("shop-a", cartPod, "ReplicaSet", "cart-7d9c5b8f6", map[string]string{"pod-template-hash": "7d9c5b8f6"},
		core.PodSpec{Containers: []core.Container{{Name: "app", Image: "cart"}}})
	s.pod("batch", "etl-0", "StatefulSet", "etl", nil, core.PodSpec{Containers: []core.Container{{Name: "app", Image: "etl"}}})
	for _, u := range golden(s.t, "reader") {
		if u.GetKind() != "DaemonSet" {
			continue
		}
		given, _, err := unstructured.NestedMap(u.Object, "spec", "template", "spec")
		fail(err)
		labels, _, err := unstructured.NestedStringMap(u.Object, "spec", "template", "metadata", "labels")
		fail(err)
		var spec core.PodSpec
		fail(runtime.DefaultUnstructuredConverter.FromUnstructured(given, &spec))
		for i := range spec.Containers {
			if c := &spec.Containers[i]; c.Name == "reader" {
				c.Args[len(c.Args)-1] = readerAt
			}
		}
		s.pod("unthrottle", "unthrottle-kj2wz", "DaemonSet", "unthrottle", labels, spec)
	}
}

// pod makes one that runs on n1.
func (s *server) pod(namespace, name, kind, owner string, labels map[string]string, spec core.PodSpec) {
	s.t.Helper()
	spec.NodeName = "n1"
	p := &core.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: kind, Name: owner, UID: "1", Controller: new(true)}}}, Spec: spec}
	made, err := s.client.CoreV1().Pods(namespace).Create(s.t.Context(), p, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	made.Status.Phase = core.PodRunning
	if _, err := s.client.CoreV1().Pods(namespace).UpdateStatus(s.t.Context(), made, metav1.UpdateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// user is someone with kubectl and the plugin.
type user struct {
	s                *server
	kubeconfig, path string
}

// good runs a command of the plugin that ends well.
func (u user) good(t *testing.T, args ...string) (out, said string) {
	t.Helper()
	out, said, err := u.kubectl(append([]string{"unthrottle"}, args...)...)
	if err != nil {
		t.Fatalf("%q: %v\n%s%s", args, err, out, said)
	}
	t.Logf("%q\n%s%s", args, out, said)
	return out, said
}

// bad runs one that fails, and says this.
func (u user) bad(t *testing.T, want string, args ...string) {
	t.Helper()
	out, said, err := u.kubectl(append([]string{"unthrottle"}, args...)...)
	t.Logf("%q\n%s%s", args, out, said)
	if err == nil || !strings.Contains(said, want) {
		t.Errorf("%q: %v, want %q", args, err, want)
	}
}

func has(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, part := range want {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in\n%s", part, text)
		}
	}
}

// user makes one who has the token of a service account.
func (s *server) user(namespace, token, plugin string) user {
	s.t.Helper()
	c := clientcmdapi.NewConfig()
	c.Clusters["c"] = &clientcmdapi.Cluster{Server: s.config.Host, CertificateAuthority: s.config.CAFile}
	c.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: token}
	c.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u", Namespace: namespace}
	c.CurrentContext = "x"
	file := filepath.Join(s.t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*c, file); err != nil {
		s.t.Fatal(err)
	}
	return user{s, file, plugin}
}

// kubectl runs `kubectl ARGS`, with the plugin in PATH.
func (u user) kubectl(args ...string) (out, said string, err error) {
	u.s.t.Helper()
	ctx, cancel := context.WithTimeout(u.s.t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(u.s.Bin, "kubectl"), args...)
	cmd.Env = []string{"PATH=" + u.path + ":" + u.s.Bin + ":" + os.Getenv("PATH"), "HOME=" + u.s.Dir, "KUBECONFIG=" +
		u.kubeconfig, "TZ=UTC"}
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	return stdout.String(), stderr.String(), err
}

// kubectlStory has an agent of which the pages show one moment after the other, and users of several rights.
type kubectlStory struct {
	*server
	moment                      atomic.Value // a folder of internal/agent/testdata/pages
	plugin                      string       // its folder
	developer, viewer, stranger user
}

// newKubectlStory starts a cluster with an agent's node, the reader before it, and the plugin.
func newKubectlStory(t *testing.T) *kubectlStory {
	t.Helper()
	s := &kubectlStory{server: newServer(t), plugin: t.TempDir()}
	s.install("policies")
	s.install("reader")
	s.moment.Store("before")
	pages := filepath.Join("..", "..", "internal", "agent", "testdata", "pages")
	_, base := s.reader(onSocket(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		file := filepath.Join(pages, s.moment.Load().(string), r.URL.Path+".json")
		if name, ok := strings.CutPrefix(r.URL.Path, "/recordings/"); ok {
			file = filepath.Join(pages, name)
		}
		http.ServeFile(w, r, file)
	})))
	s.node(strings.TrimPrefix(base, "http://"))
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(s.plugin, "kubectl-unthrottle"),
		"../cmd/kubectl-unthrottle").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	s.accounts()
	s.developer, s.viewer, s.stranger = s.userOf("developer"), s.userOf("viewer"), s.userOf("stranger")
	return s
}

// accounts makes the service accounts of shop-a: developer and viewer reach the agent's pods, onlooker sees them and cannot reach them,
// outsider sees only the pods of shop-a, stranger nothing.
func (s *kubectlStory) accounts() {
	s.t.Helper()
	pods := rbac.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list"}}
	policies := rbac.PolicyRule{APIGroups: []string{"unthrottle.dev"}, Resources: []string{"throttlepolicies"},
		Verbs: []string{"get", "create", "update", "delete"}}
	runs := rbac.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/exec"}, Verbs: []string{"create"}}
	s.account("shop-a", "developer", pods, runs, policies)
	s.account("shop-a", "viewer", pods)
	s.account("shop-a", "stranger")
	s.account("shop-a", "outsider", pods)
	s.account("shop-a", "onlooker", pods)
	s.atAgent("reach", []string{"developer", "viewer"}, pods, rbac.PolicyRule{APIGroups: []string{""},
		Resources: []string{"pods/portforward"}, Verbs: []string{"get", "create"}})
	s.atAgent("see", []string{"onlooker"}, pods)
}

// atAgent gives accounts of shop-a a role in the agent's namespace.
func (s *kubectlStory) atAgent(name string, accounts []string, rules ...rbac.PolicyRule) {
	s.t.Helper()
	if _, err := s.client.RbacV1().Roles("unthrottle").Create(s.t.Context(),
		&rbac.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	var subjects []rbac.Subject
	for _, account := range accounts {
		subjects = append(subjects, rbac.Subject{Kind: rbac.ServiceAccountKind, Name: account, Namespace: "shop-a"})
	}
	if _, err := s.client.RbacV1().RoleBindings("unthrottle").Create(s.t.Context(),
		&rbac.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef: rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "Role", Name: name}, Subjects: subjects},
		metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *kubectlStory) userOf(account string) user { return s.withToken(s.token("shop-a", account)) }

func (s *kubectlStory) withToken(token string) user { return s.user("shop-a", token, s.plugin) }

// TestKubectl: the plugin under a real kubectl, through a real API server and its port-forward, to the program that reads.
func TestKubectl(t *testing.T) {
	s := newKubectlStory(t)
	t.Run("what each user sees", s.whatEachSees)
	t.Run("fix and restore", s.fixAndRestore)
	t.Run("completion", s.completion)
	t.Run("a user with a certificate reads as a service account", s.asServiceAccount)
	t.Run("no agent, no reader, no policies", s.nothingInstalled)
}

func (s *kubectlStory) whatEachSees(t *testing.T) {
	out, _ := s.developer.good(t, "top")
	has(t, out, "shop-a/"+cartPod+"/app")
	out, _ = s.developer.good(t, "top", "-A")
	if strings.Contains(out, "etl") || strings.Contains(out, "ssh") {
		t.Errorf("-A shows what the user may not see:\n%s", out)
	}
	s.developer.good(t, "status")
	out, _ = s.developer.good(t, "policy", cartPod)
	has(t, out, "no rule matches it")
	out, _ = s.developer.good(t, "explain", cartPod)
	has(t, out, "http-worker")
	out, _ = s.developer.good(t, "forecast", cartPod)
	has(t, out, "Recommended: burst 200ms")
	s.viewer.bad(t, "recordings need 'create pods/exec' in namespace shop-a", "explain", cartPod)
	s.viewer.bad(t, "cannot get resource \"throttlepolicies\"", "fix", cartPod)
	s.stranger.bad(t, "cannot list resource \"pods\"", "top")
	s.userOf("outsider").bad(t, "you need 'list' on pods, and 'get' and 'create' on pods/portforward, in namespace unthrottle", "top")
	s.userOf("onlooker").bad(t, "you need 'get' and 'create' on pods/portforward in namespace unthrottle", "top")
	s.developer.bad(t, "cannot get resource \"pods\" in API group \"\" in the namespace \"batch\"", "fix", "-n", "batch", "etl-0")
	s.withToken("wrong").bad(t, "Unauthorized", "top")
}

func (s *kubectlStory) fixAndRestore(t *testing.T) {
	c := s.sidecar("unthrottle-kj2wz")
	out, said := s.developer.good(t, "fix", cartPod, "--dry-run")
	has(t, out, "name: cart-*-?????")
	has(t, said, "would be created (dry run)")
	named := aPolicy(t, "shop-a", "cart", "{}")
	if resourceInterface, err := s.of(named); err != nil {
		t.Fatal(err)
	} else if _, err := resourceInterface.Get(t.Context(), "cart", metav1.GetOptions{}); err == nil {
		t.Error("a dry run wrote the policy")
	}
	s.developer.bad(t, "A ClusterThrottlePolicy for namespace shop-a allows it", "fix", cartPod)
	if resourceInterface, err := s.of(named); err != nil {
		t.Fatal(err)
	} else if _, err := resourceInterface.Get(t.Context(), "cart", metav1.GetOptions{}); err == nil {
		t.Error("a policy that was not accepted is still there")
	}
	if err := s.create(aPolicy(t, "", "shops", "{namespaces: ['shop-*'], allow: {mode: apply, remedies: [auto]}}")); err != nil {
		t.Fatal(err)
	}
	// The agent has the rule when its file has, and cures then.
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if text, _ := os.ReadFile(c.out); strings.Contains(string(text), "ThrottlePolicy shop-a/cart") { // it may not be there yet
				s.moment.Store("trying")
				time.Sleep(2 * time.Second)
				s.moment.Store("cured")
				return
			}
		}
	}()
	out, said = s.developer.good(t, "fix", cartPod)
	<-ended
	has(t, said, "throttlepolicy/cart created", "throttlepolicy/cart accepted")
	has(t, out, "burst is in force")
	s.becomes(c, named, "Accepted=True")
	if got, want := c.ruleFor("shop-a", cartPod), "ThrottlePolicy shop-a/cart, apply auto"; got != want {
		t.Errorf("the rule in force is %q, want %q", got, want)
	}
	out, _ = s.developer.good(t, "status")
	has(t, out, "burst", "better")
	// kubectl itself shows and changes it.
	got, _, err := s.developer.kubectl("get", "throttlepolicy", "cart", "-o", "jsonpath={.spec.rules[0].match.name}")
	if err != nil || got != "cart-*-?????" {
		t.Errorf("kubectl says %q, %v", got, err)
	}
	_, said = s.developer.good(t, "fix", cartPod)
	has(t, said, "throttlepolicy/cart is there already")
	_, said = s.developer.good(t, "restore", cartPod, "--wait", "0")
	has(t, said, "throttlepolicy/cart deleted", "burst stays in force until the container ends, or until")
	wait.Until(t, "the rule goes", func() bool { return c.ruleFor("shop-a", cartPod) == "" }, c.look)
	s.moment.Store("before")
	_, said = s.developer.good(t, "restore", cartPod)
	has(t, said, "there is no throttlepolicy/cart")
}

func (s *kubectlStory) completion(t *testing.T) {
	script, err := os.ReadFile("../cmd/kubectl-unthrottle/kubectl_complete-unthrottle")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.plugin, "kubectl_complete-unthrottle"), script, 0o700); err != nil {
		t.Fatal(err)
	}
	out, said, err := s.developer.kubectl("__complete", "unthrottle", "fore")
	if err != nil || !strings.HasPrefix(out, "forecast\t") {
		t.Errorf("%q, %q, %v", out, said, err)
	}
	out, said, err = s.developer.kubectl("__complete", "unthrottle", "fix", "")
	if err != nil || !strings.HasPrefix(out, cartPod+"\n") {
		t.Errorf("%q, %q, %v", out, said, err)
	}
}

func (s *kubectlStory) asServiceAccount(t *testing.T) {
	admin := s.withToken(apiserver.AdminToken)
	out, _ := admin.good(t, "top", "--service-account", "viewer")
	has(t, out, cartPod)
}

func (s *kubectlStory) nothingInstalled(t *testing.T) {
	admin := s.withToken(apiserver.AdminToken)
	admin.bad(t, "no pod with labels app.kubernetes.io/name=unthrottle in namespace default", "top", "--agent-namespace", "default")
	if _, said, err := admin.kubectl("delete", "crd", "throttlepolicies.unthrottle.dev"); err != nil {
		t.Fatal(said, err)
	}
	s.developer.bad(t, "this cluster has no ThrottlePolicies: install or upgrade the chart with --set "+
		"policies.enabled=true", "fix", cartPod)
	if _, said, err := admin.kubectl("-n", "unthrottle", "delete", "pod", "unthrottle-kj2wz", "--force",
		"--grace-period=0"); err != nil {
		t.Fatal(said, err)
	}
	s.developer.bad(t, "no agent of unthrottle runs on node n1", "policy", cartPod)
}
