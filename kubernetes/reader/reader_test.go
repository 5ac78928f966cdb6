package reader

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/agent/answers"
	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// rights is an API server that knows users by their tokens, and their rights.
type rights map[string][]Right

func (r rights) User(_ context.Context, token string) (User, error) {
	if _, ok := r[token]; !ok {
		return User{}, ErrNoUser
	}
	var u User
	u.Username = token
	return u, nil
}

func (r rights) May(_ context.Context, u User, right Right) (bool, error) {
	for _, has := range r[u.Username] {
		if has == right {
			return true, nil
		}
	}
	return false, nil
}

// twoNamespaces is an agent that sees shop/cart, batch/etl, a pod without a name and a unit, and has a recording of each of the first two.
func twoNamespaces(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	text := func(path, answer string) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) })
	}
	text("/containers", `{"schema":"ls","version":1,"containers":[
		{"path":"/p/cart","name":"shop/cart/app","namespace":"shop","pod":"cart","container":"app","pod_uid":"u1"},
		{"path":"/p/etl","name":"batch/etl/app","namespace":"batch","pod":"etl","container":"app","pod_uid":"u2"},
		{"path":"/p/hidden","name":"hidden","pod_uid":"u3"},{"path":"/sshd","name":"sshd"}]}`)
	text("/policy", `{"schema":"policy","version":1,"config":"f","containers":[{"cgroup":"/p/cart","name":"shop/cart/app"},{"cgroup":"/p/etl","name":"batch/etl/app"},{"cgroup":"/p/hidden","name":"hidden"}]}`)
	text("/status", `{"schema":"agent_status","version":1,"in_force":[{"cgroup":"/p/cart","name":"shop/cart/app"},{"cgroup":"/p/etl","name":"batch/etl/app"}]}`)
	text("/recordings", `{"schema":"agent_recordings","version":1,"recordings":[{"file":"cart.recording","namespace":"shop","pod":"cart","name":"shop/cart/app"},{"file":"etl.recording","namespace":"batch","pod":"etl","name":"batch/etl/app"}]}`)
	var b bytes.Buffer
	all := recording.Recording{Header: recording.Header{Version: 1, Target: recording.Target{Path: "/p/cart", Name: "shop/cart/app"}},
		Events: []recording.Event{{Kind: recording.Define, Owner: recording.FirstOwner,
			OwnerKind: recording.OwnerContainer, Text: "batch/etl/app", Cgroup: 9}},
		Footer: recording.Footer{EndNS: 5,
			Neighbours: []recording.Neighbour{{Owner: recording.FirstOwner, Name: "batch/etl/app", Path: "/p/etl"}}}}
	if err := all.Write(&b); err != nil {
		t.Fatal(err)
	}
	text("/recordings/cart.recording", b.String())
	text("/recordings/etl.recording", b.String())
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

func ask(t *testing.T, h http.Handler, token, path string) (code int, body string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// TestWhoMayNotSeeThePodSeesNothing: no answer to a user names a namespace that the user may not see.
func TestWhoMayNotSeeThePodSeesNothing(t *testing.T) {
	get, exec := Right{Verb: "get", Resource: "pods", Namespace: "shop"},
		Right{Verb: "create", Resource: "pods", Subresource: "exec", Namespace: "shop", Name: "cart"}
	h := New(Options{Agent: twoNamespaces(t).URL, Log: slog.New(slog.DiscardHandler),
		Access: rights{"viewer": {get}, "developer": {get, exec}, "stranger": nil}})
	for user, sees := range map[string]string{"viewer": "cart", "developer": "cart", "stranger": ""} {
		for _, path := range []string{"/containers", "/policy", "/status", "/recordings", "/recordings/cart.recording",
			"/recordings/etl.recording"} {
			code, body := ask(t, h, user, path)
			mayFile := user == "developer" && path == "/recordings/cart.recording"
			isFile := strings.HasSuffix(path, ".recording")
			if want := map[bool]int{true: http.StatusOK, false: http.StatusNotFound}[!isFile || mayFile]; code != want {
				t.Errorf("%s, %s: %d, want %d: %s", user, path, code, want, body)
			}
			if strings.Contains(body, "etl") || strings.Contains(body, "hidden") || strings.Contains(body, "sshd") {
				t.Errorf("%s sees of %s what is not theirs: %s", user, path, body)
			}
			if !isFile {
				if shows := strings.Contains(body, "cart"); shows != (sees != "" && (path != "/recordings" || user == "developer")) {
					t.Errorf("%s, %s: shows cart %v: %s", user, path, shows, body)
				}
			}
			if mayFile {
				got, err := recording.Read(strings.NewReader(body))
				if err != nil || got.Events[0].Text != "another container 3" || got.Footer.Neighbours[0].Path != "" {
					t.Errorf("the recording shows its neighbour: %+v, %v", got, err)
				}
			}
		}
	}
	if _, missing := ask(t, h, "viewer", "/recordings/none.recording"); func() bool {
		_, b := ask(t, h, "viewer", "/recordings/cart.recording")
		return b != missing
	}() {
		t.Error("a recording that a user may not see has another answer than one that is not there")
	}
	for _, token := range []string{"", "nobody"} {
		if code, body := ask(t, h, token, "/containers"); code != http.StatusUnauthorized || strings.Contains(body, "cart") {
			t.Errorf("token %q: %d %s", token, code, body)
		}
	}
	if code, _ := ask(t, h, "viewer", "/metrics"); code != http.StatusNotFound {
		t.Errorf("/metrics: %d", code)
	}
}

// TestOfTheNode: who may get nodes sees what is in no pod, and no pod for that.
func TestOfTheNode(t *testing.T) {
	h := New(Options{Agent: twoNamespaces(t).URL, Log: slog.New(slog.DiscardHandler),
		Access: rights{"operator": {{Verb: "get", Resource: "nodes"}}}})
	var all answers.Containers
	_, body := ask(t, h, "operator", "/containers")
	if err := json.Unmarshal([]byte(body), &all); err != nil || len(all.Containers) != 1 || all.Containers[0].Path != "/sshd" {
		t.Errorf("%s, %v", body, err)
	}
}

// TestSocket: the agent may be at a socket.
func TestSocket(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "agent.sock")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	agent := httptest.NewUnstartedServer(twoNamespaces(t).Config.Handler)
	agent.Listener.Close()
	agent.Listener = l
	agent.Start()
	t.Cleanup(agent.Close)
	h := New(Options{Agent: "unix:" + socket, Log: slog.New(slog.DiscardHandler),
		Access: rights{"viewer": {{Verb: "get", Resource: "pods", Namespace: "shop"}}}})
	if code, body := ask(t, h, "viewer", "/containers"); code != http.StatusOK || !strings.Contains(body, "cart") ||
		strings.Contains(body, "etl") {
		t.Errorf("%d %s", code, body)
	}
}

// TestLoopbackOnly: tokens never cross a network in the clear.
func TestLoopbackOnly(t *testing.T) {
	for _, listen := range []string{":0", "0.0.0.0:0", "10.0.0.1:9470", "nonsense"} {
		if err := Serve(t.Context(), listen, Options{}, nil); err == nil {
			t.Errorf("listens on %q", listen)
		}
	}
}

// TestABusyAgentIsAskedAgain: what the agent says of being busy is no failure of it, nor is a socket that goes while it reads rules.
func TestABusyAgentIsAskedAgain(t *testing.T) {
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "too many answers are under way: ask again", http.StatusServiceUnavailable)
	}))
	defer agent.Close()
	for _, at := range []string{agent.URL, "unix:" + filepath.Join(t.TempDir(), "agent.sock")} {
		h := New(Options{Agent: at, Access: rights{"ann": nil}, Log: slog.New(slog.DiscardHandler)})
		r := httptest.NewRequest(http.MethodGet, "/containers", nil)
		r.Header.Set("Authorization", "Bearer ann")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: %d %v %s", at, w.Code, w.Header(), w.Body)
		}
	}
}
