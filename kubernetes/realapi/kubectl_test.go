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
	cmd := exec.CommandContext(ctx, filepath.Join(u.s.bin, "kubectl"), args...)
	cmd.Env = []string{"PATH=" + u.path + ":" + u.s.bin + ":" + os.Getenv("PATH"), "HOME=" + u.s.dir, "KUBECONFIG=" +
		u.kubeconfig, "TZ=UTC"}
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	return stdout.String(), stderr.String(), err
}

// TestKubectl: the plugin under a real kubectl, through a real API server and its port-forward, to the program that reads.
func TestKubectl(t *testing.T) {
	s := newServer(t)
	s.install("policies")
	s.install("reader")
	var moment atomic.Value
	moment.Store("before")
	pages := filepath.Join("..", "..", "internal", "agent", "testdata", "pages")
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		file := filepath.Join(pages, moment.Load().(string), r.URL.Path+".json")
		if name, ok := strings.CutPrefix(r.URL.Path, "/recordings/"); ok {
			file = filepath.Join(pages, name)
		}
		http.ServeFile(w, r, file)
	}))
	t.Cleanup(agent.Close)
	_, base := s.reader(agent.URL)
	s.node(strings.TrimPrefix(base, "http://"))
	plugin := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(plugin, "kubectl-unthrottle"),
		"../cmd/kubectl-unthrottle").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	pods := rbac.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list"}}
	policies := rbac.PolicyRule{APIGroups: []string{"unthrottle.dev"}, Resources: []string{"throttlepolicies"},
		Verbs: []string{"get", "create", "update", "delete"}}
	exec := rbac.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/exec"}, Verbs: []string{"create"}}
	s.account("shop-a", "developer", pods, exec, policies)
	s.account("shop-a", "viewer", pods)
	s.account("shop-a", "stranger")
	s.account("shop-a", "outsider", pods)
	s.account("shop-a", "onlooker", pods) // who may see the agent's pods, and not reach them
	role, err := s.client.RbacV1().Roles("unthrottle").Create(t.Context(),
		&rbac.Role{ObjectMeta: metav1.ObjectMeta{Name: "reach"}, Rules: []rbac.PolicyRule{pods,
			{APIGroups: []string{""}, Resources: []string{"pods/portforward"}, Verbs: []string{"get", "create"}}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	see, err := s.client.RbacV1().Roles("unthrottle").Create(t.Context(),
		&rbac.Role{ObjectMeta: metav1.ObjectMeta{Name: "see"}, Rules: []rbac.PolicyRule{pods}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.client.RbacV1().RoleBindings("unthrottle").Create(t.Context(),
		&rbac.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "see"},
			RoleRef:  rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "Role", Name: see.Name},
			Subjects: []rbac.Subject{{Kind: rbac.ServiceAccountKind, Name: "onlooker", Namespace: "shop-a"}}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var subjects []rbac.Subject
	for _, name := range []string{"developer", "viewer"} {
		subjects = append(subjects, rbac.Subject{Kind: rbac.ServiceAccountKind, Name: name, Namespace: "shop-a"})
	}
	if _, err := s.client.RbacV1().RoleBindings("unthrottle").Create(t.Context(),
		&rbac.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "reach"},
			RoleRef: rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "Role", Name: role.Name}, Subjects: subjects},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	developer, viewer, stranger := s.user("shop-a", s.token("shop-a", "developer"), plugin),
		s.user("shop-a", s.token("shop-a", "viewer"), plugin), s.user("shop-a", s.token("shop-a", "stranger"), plugin)
	good := func(t *testing.T, u user, args ...string) (string, string) {
		t.Helper()
		out, said, err := u.kubectl(append([]string{"unthrottle"}, args...)...)
		if err != nil {
			t.Fatalf("%q: %v\n%s%s", args, err, out, said)
		}
		t.Logf("%q\n%s%s", args, out, said)
		return out, said
	}
	bad := func(t *testing.T, u user, want string, args ...string) {
		t.Helper()
		out, said, err := u.kubectl(append([]string{"unthrottle"}, args...)...)
		t.Logf("%q\n%s%s", args, out, said)
		if err == nil || !strings.Contains(said, want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
	has := func(t *testing.T, text string, want ...string) {
		t.Helper()
		for _, part := range want {
			if !strings.Contains(text, part) {
				t.Errorf("%q is not in\n%s", part, text)
			}
		}
	}

	t.Run("what each user sees", func(t *testing.T) {
		out, _ := good(t, developer, "top")
		has(t, out, "shop-a/"+cartPod+"/app")
		out, _ = good(t, developer, "top", "-A")
		if strings.Contains(out, "etl") || strings.Contains(out, "ssh") {
			t.Errorf("-A shows what the user may not see:\n%s", out)
		}
		good(t, developer, "status")
		out, _ = good(t, developer, "policy", cartPod)
		has(t, out, "no rule matches it")
		out, _ = good(t, developer, "explain", cartPod)
		has(t, out, "http-worker")
		out, _ = good(t, developer, "forecast", cartPod)
		has(t, out, "Recommended: burst 200ms")
		bad(t, viewer, "recordings need 'create pods/exec' in namespace shop-a", "explain", cartPod)
		bad(t, viewer, "cannot get resource \"throttlepolicies\"", "fix", cartPod)
		bad(t, stranger, "cannot list resource \"pods\"", "top")
		bad(t, s.user("shop-a", s.token("shop-a", "outsider"), plugin),
			"you need 'list' on pods, and 'get' and 'create' on pods/portforward, in namespace unthrottle", "top")
		bad(t, s.user("shop-a", s.token("shop-a", "onlooker"), plugin),
			"you need 'get' and 'create' on pods/portforward in namespace unthrottle", "top")
		bad(t, developer, "cannot get resource \"pods\" in API group \"\" in the namespace \"batch\"", "fix", "-n", "batch", "etl-0")
		bad(t, s.user("shop-a", "wrong", plugin), "Unauthorized", "top")
	})

	t.Run("fix and restore", func(t *testing.T) {
		c := s.sidecar("unthrottle-kj2wz")
		out, said := good(t, developer, "fix", cartPod, "--dry-run")
		has(t, out, "name: cart-*-?????")
		has(t, said, "would be created (dry run)")
		named := aPolicy(t, "shop-a", "cart", "{}")
		if resourceInterface, err := s.of(named); err != nil {
			t.Fatal(err)
		} else if _, err := resourceInterface.Get(t.Context(), "cart", metav1.GetOptions{}); err == nil {
			t.Error("a dry run wrote the policy")
		}
		bad(t, developer, "A ClusterThrottlePolicy for namespace shop-a allows it", "fix", cartPod)
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
					moment.Store("trying")
					time.Sleep(2 * time.Second)
					moment.Store("cured")
					return
				}
			}
		}()
		out, said = good(t, developer, "fix", cartPod)
		<-ended
		has(t, said, "throttlepolicy/cart created", "throttlepolicy/cart accepted")
		has(t, out, "burst is in force")
		s.becomes(c, named, "Accepted=True")
		if got, want := c.ruleFor("shop-a", cartPod), "ThrottlePolicy shop-a/cart, apply auto"; got != want {
			t.Errorf("the rule in force is %q, want %q", got, want)
		}
		out, _ = good(t, developer, "status")
		has(t, out, "burst", "better")
		// kubectl itself shows and changes it.
		got, _, err := developer.kubectl("get", "throttlepolicy", "cart", "-o", "jsonpath={.spec.rules[0].match.name}")
		if err != nil || got != "cart-*-?????" {
			t.Errorf("kubectl says %q, %v", got, err)
		}
		_, said = good(t, developer, "fix", cartPod)
		has(t, said, "throttlepolicy/cart is there already")
		_, said = good(t, developer, "restore", cartPod, "--wait", "0")
		has(t, said, "throttlepolicy/cart deleted", "burst stays in force until the container ends, or until")
		eventually(t, "the rule goes", func() bool { return c.ruleFor("shop-a", cartPod) == "" }, c.look)
		moment.Store("before")
		_, said = good(t, developer, "restore", cartPod)
		has(t, said, "there is no throttlepolicy/cart")
	})

	t.Run("completion", func(t *testing.T) {
		script, err := os.ReadFile("../cmd/kubectl-unthrottle/kubectl_complete-unthrottle")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(plugin, "kubectl_complete-unthrottle"), script, 0o700); err != nil {
			t.Fatal(err)
		}
		out, said, err := developer.kubectl("__complete", "unthrottle", "fore")
		if err != nil || !strings.HasPrefix(out, "forecast\t") {
			t.Errorf("%q, %q, %v", out, said, err)
		}
		out, said, err = developer.kubectl("__complete", "unthrottle", "fix", "")
		if err != nil || !strings.HasPrefix(out, cartPod+"\n") {
			t.Errorf("%q, %q, %v", out, said, err)
		}
	})

	t.Run("a user with a certificate reads as a service account", func(t *testing.T) {
		admin := s.user("shop-a", adminToken, plugin)
		out, _ := good(t, admin, "top", "--service-account", "viewer")
		has(t, out, cartPod)
	})

	t.Run("no agent, no reader, no policies", func(t *testing.T) {
		admin := s.user("shop-a", adminToken, plugin)
		bad(t, admin, "no pod with labels app.kubernetes.io/name=unthrottle in namespace default", "top", "--agent-namespace", "default")
		if _, said, err := admin.kubectl("delete", "crd", "throttlepolicies.unthrottle.dev"); err != nil {
			t.Fatal(said, err)
		}
		bad(t, developer, "this cluster has no ThrottlePolicies: install or upgrade the chart with --set "+
			"policies.enabled=true", "fix", cartPod)
		if _, said, err := admin.kubectl("-n", "unthrottle", "delete", "pod", "unthrottle-kj2wz", "--force",
			"--grace-period=0"); err != nil {
			t.Fatal(said, err)
		}
		bad(t, developer, "no agent of unthrottle runs on node n1", "policy", cartPod)
	})
}
