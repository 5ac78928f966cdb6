package realapi

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	authz "k8s.io/api/authorization/v1"
	core "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unthrottle/unthrottle/internal/agent/answers"
	"github.com/unthrottle/unthrottle/kubernetes/reader"
	"github.com/unthrottle/unthrottle/test/apiserver"
	"github.com/unthrottle/unthrottle/test/wait"
)

// agentOf is an agent that sees a container of each pod, given as NAMESPACE/POD.
func agentOf(t *testing.T, pods ...string) (socket string) {
	t.Helper()
	var containers, policies []string
	for _, pod := range pods {
		namespace, name, _ := strings.Cut(pod, "/")
		containers = append(containers, fmt.Sprintf(
			`{"path":"/kubepods/%s","name":"%s/app","namespace":%q,"pod":%q,"container":"app","pod_uid":%q}`, pod, pod,
			namespace, name, pod))
		policies = append(policies, fmt.Sprintf(
			`{"cgroup":"/kubepods/%s","name":"%s/app","namespace":%q,"pod":%q,"container":"app"}`, pod, pod, namespace, name))
	}
	mux := http.NewServeMux()
	for path, body := range map[string]string{
		"/containers": `{"schema":"ls","version":1,"containers":[` + strings.Join(containers, ",") + `]}`,
		"/policy":     `{"schema":"policy","version":1,"config":"f","containers":[` + strings.Join(policies, ",") + `]}`,
		"/status":     `{"schema":"agent_status","version":1,"in_force":[]}`,
		"/recordings": `{"schema":"agent_recordings","version":1,"recordings":[]}`,
	} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) })
	}
	return onSocket(t, mux)
}

// onSocket answers on a socket, as the agent's --answers do, until the test ends. It returns the reader's --agent.
func onSocket(t *testing.T, handler http.Handler) (socket string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "answers")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler)
	if err := server.Listener.Close(); err != nil {
		t.Fatal(err)
	}
	server.Listener = l
	server.Start()
	t.Cleanup(server.Close)
	return "unix:" + path
}

// reader starts the container reader of one node with the chart's arguments and rights; the addresses are the test's. It
// returns the base URL.
func (s *server) reader(agent string) (*apiserver.Process, string) {
	s.t.Helper()
	at := fmt.Sprintf("127.0.0.1:%d", apiserver.FreePorts(s.t, 1)[0])
	args := append(arguments(s.t, "reader", "reader"), "--agent", agent, "--listen", at, "--kubeconfig",
		s.kubeconfig(s.token("unthrottle", "unthrottle")))
	p := apiserver.Start(s.t, s.Dir, "reader-"+at, exec.Command(s.program(), args...))
	wait.Until(s.t, "the reader answers", func() bool {
		answer, err := http.Get("http://" + at + "/healthz")
		if err == nil {
			answer.Body.Close()
		}
		return p.Ended() || err == nil && answer.StatusCode == http.StatusOK
	}, p.Printed)
	if p.Ended() {
		s.t.Fatal("the reader ended: ", p.Printed())
	}
	return p, "http://" + at
}

// account makes a service account that may do this in its namespace; no rules: nothing.
func (s *server) account(namespace, name string, rules ...rbac.PolicyRule) {
	s.t.Helper()
	fail := func(err error) {
		if err != nil {
			s.t.Fatal(err)
		}
	}
	at := metav1.ObjectMeta{Name: name, Namespace: namespace}
	_, err := s.client.CoreV1().ServiceAccounts(namespace).Create(s.t.Context(), &core.ServiceAccount{ObjectMeta: at},
		metav1.CreateOptions{})
	fail(err)
	if len(rules) == 0 {
		return
	}
	_, err = s.client.RbacV1().Roles(namespace).Create(s.t.Context(), &rbac.Role{ObjectMeta: at, Rules: rules}, metav1.CreateOptions{})
	fail(err)
	_, err = s.client.RbacV1().RoleBindings(namespace).Create(s.t.Context(),
		&rbac.RoleBinding{ObjectMeta: at, RoleRef: rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "Role", Name: name},
			Subjects: []rbac.Subject{{Kind: rbac.ServiceAccountKind, Name: name, Namespace: namespace}}}, metav1.CreateOptions{})
	fail(err)
}

// read asks a reader with a token.
func read(t *testing.T, url, token string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

// TestReader: with the chart's rights the program shows each user the pods that the API server says the user may get, and no others.
func TestReader(t *testing.T) {
	s := newServer(t)
	s.install("reader")
	s.account("shop-a", "developer", rbac.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}})
	s.account("shop-a", "stranger")
	p, base := s.reader(agentOf(t, "shop-a/cart-0", "batch/etl-0"))

	t.Run("who sees what", func(t *testing.T) {
		for user, want := range map[string][]string{"developer": {"shop-a/cart-0/app"}, "stranger": nil} {
			// A token for the reader alone, and one for the API server.
			for _, audiences := range [][]string{{reader.Audience}, nil} {
				token := s.token("shop-a", user, audiences...)
				code, body := read(t, base+"/containers", token)
				var seen answers.Containers
				if err := json.Unmarshal([]byte(body), &seen); code != http.StatusOK || err != nil {
					t.Fatalf("%s: %d %s, %v\n%s", user, code, body, err, p.Printed())
				}
				var names []string
				for i := range seen.Containers {
					names = append(names, seen.Containers[i].Name)
				}
				if !slices.Equal(names, want) {
					t.Errorf("%s with a token for %q sees %q, want %q", user, audiences, names, want)
				}
				for _, path := range []string{"/policy", "/status", "/recordings"} {
					code, body := read(t, base+path, token)
					if shows := strings.Contains(body, "shop-a/cart-0"); code != http.StatusOK ||
						strings.Contains(body, "etl") || shows != (want != nil && path == "/policy") {
						t.Errorf("%s, %s: %d %s", user, path, code, body)
					}
				}
			}
		}
		for what, token := range map[string]string{"none": "", "nobody's": "nobody",
			"for another program": s.token("shop-a", "developer", "vault")} {
			if code, body := read(t, base+"/containers", token); code != http.StatusUnauthorized || strings.Contains(body, "cart") {
				t.Errorf("a token %s: %d %s", what, code, body)
			}
		}
	})

	t.Run("its rights", func(t *testing.T) {
		// All that it may beside what each service account may.
		may := func(verb, group, resource string) bool {
			got, err := s.client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(),
				&authz.SubjectAccessReview{Spec: authz.SubjectAccessReviewSpec{
					User:   "system:serviceaccount:unthrottle:unthrottle",
					Groups: []string{"system:serviceaccounts", "system:serviceaccounts:unthrottle", "system:authenticated"},
					ResourceAttributes: &authz.ResourceAttributes{Verb: verb, Group: group, Resource: resource,
						Namespace: "unthrottle"}}}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return got.Status.Allowed
		}
		for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete"} {
			for _, of := range [][2]string{{"", "pods"}, {"", "secrets"}, {"", "nodes"}, {"", "serviceaccounts"},
				{"unthrottle.dev", "throttlepolicies"},
				{"coordination.k8s.io", "leases"}, {"rbac.authorization.k8s.io", "clusterroles"},
				{"authentication.k8s.io", "tokenreviews"}, {"authorization.k8s.io", "subjectaccessreviews"}} {
				want := verb == "create" && (of[1] == "tokenreviews" || of[1] == "subjectaccessreviews")
				if got := may(verb, of[0], of[1]); got != want {
					t.Errorf("it may %s %s: %v", verb, of[1], got)
				}
			}
		}
	})

	t.Run("without the API server nothing is shown", func(t *testing.T) {
		unused := s.token("shop-a", "developer", reader.Audience)
		_ = s.API.End(syscall.SIGKILL) // it says that it was killed
		code, body := read(t, base+"/containers", unused)
		if code != http.StatusBadGateway || strings.Contains(body, "cart") ||
			!strings.Contains(body, "the API server cannot be asked whose token it is") {
			t.Errorf("%d %s", code, body)
		}
	})
	if err := p.End(syscall.SIGTERM); err != nil {
		t.Errorf("it ends with %v: %s", err, p.Printed())
	}
}
