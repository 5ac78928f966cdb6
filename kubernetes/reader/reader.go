package reader

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/unthrottle/unthrottle/internal/agent/answers"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/listing"
)

const (
	// DefaultListen is where the reader listens in the agent's pod. It is loopback: a port-forward ends there, and the token
	// never crosses a network in the clear.
	DefaultListen = "127.0.0.1:9470"
	// DefaultAgent is the socket of the agent's --answers, as the chart has it.
	DefaultAgent = "unix:/run/unthrottle-answers/agent.sock"

	mostBytes   = 64 << 20         // of an answer of the agent, recordings aside
	answerIn    = 30 * time.Second // an answer of the agent, recordings aside
	recordingIn = 10 * time.Minute
)

// Options of a reader.
type Options struct {
	// Agent is unix:PATH, the socket of the agent's --answers; tests give a base URL.
	Agent string
	// Access is what the API server says.
	Access Access
	Log    *slog.Logger
}

type reader struct {
	Options
	client http.Client
	// quick and long are the turns of requests: recordings, which take as long as their reader's line, have their own. The
	// agent answers as many.
	quick, long chan struct{}
}

// New answers requests of users.
func New(o Options) http.Handler {
	way := &http.Transport{Proxy: nil, MaxConnsPerHost: 2 * answers.MostAtOnce}
	if socket, ok := strings.CutPrefix(o.Agent, "unix:"); ok {
		way.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}
		o.Agent = "http://agent"
	}
	r := &reader{Options: o, quick: make(chan struct{}, answers.MostAtOnce),
		long: make(chan struct{}, answers.MostAtOnce), client: http.Client{
			Transport:     way,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}}
	mux := http.NewServeMux()
	for path, answer := range map[string]func(*asked) error{
		"/containers": containers, "/policy": policies, "/status": status, "/recordings": recordings,
	} {
		mux.Handle("GET "+path, r.page(r.quick, answer))
	}
	mux.Handle("GET /recordings/{file}", r.page(r.long, file))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	return mux
}

// Serve answers on a loopback address until ctx ends. ready, if not nil, is told where.
func Serve(ctx context.Context, listen string, o Options, ready func(net.Addr)) error {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("reader: %s: %w", listen, err)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("reader: %s is no loopback address: users' tokens would cross the network in the clear; "+
			"give 127.0.0.1:PORT, which a port-forward reaches", listen)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return fmt.Errorf("reader: %w", err)
	}
	if ready != nil {
		ready(l.Addr())
	}
	server := &http.Server{Handler: New(o), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second, WriteTimeout: recordingIn,
		IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if server.Shutdown(grace) != nil {
			server.Close()
		}
	}()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("reader: %w", err)
	}
	<-stopped
	return nil
}

// asked is one request of a known user.
type asked struct {
	*reader
	ctx  context.Context
	user User
	w    http.ResponseWriter
	r    *http.Request
}

// refusal is an answer that is not the one asked for.
type refusal struct {
	code int
	text string
}

func (r refusal) Error() string { return r.text }

func (r *reader) page(turns chan struct{}, answer func(*asked) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		select {
		case turns <- struct{}{}:
			defer func() { <-turns }()
		default:
			askAgain(w, busy)
			return
		}
		token, ok := strings.CutPrefix(request.Header.Get("Authorization"), "Bearer ")
		if token = strings.TrimSpace(token); !ok || token == "" {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "no bearer token: it says who you are", http.StatusUnauthorized)
			return
		}
		user, err := r.Access.User(request.Context(), token)
		if errors.Is(err, ErrNoUser) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		if err == nil {
			err = answer(&asked{r, request.Context(), user, w, request})
		}
		refused, later := refusal{}, soon("")
		switch {
		case errors.As(err, &later):
			askAgain(w, later)
		case errors.As(err, &refused):
			http.Error(w, refused.text, refused.code)
		case err != nil:
			r.Log.Warn("a user's request failed", "path", request.URL.Path, "user", user.Username, "error", err)
			http.Error(w, err.Error(), http.StatusBadGateway)
		}
	})
}

// soon is why the agent has no answer now, and will have one: it is asked again.
type soon string

func (s soon) Error() string { return string(s) }

const (
	busy soon = "too many requests are under way: ask again"
	// starting is also an agent that reads new rules for longer than an answer may take.
	starting soon = "the agent of this node starts, or reads new rules: ask again"
)

func askAgain(w http.ResponseWriter, why soon) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, why.Error(), http.StatusServiceUnavailable)
}

// seesPods reports whether the user may see the pods of a namespace; "" is what belongs to no pod.
func (a *asked) seesPods(namespace string) (bool, error) {
	if namespace == "" {
		return a.Access.May(a.ctx, a.user, Right{Verb: "get", Resource: "nodes"})
	}
	return a.Access.May(a.ctx, a.user, Right{Verb: "get", Resource: "pods", Namespace: namespace})
}

// keepSeen removes entries of namespaces that the user may not see. pod is nil where an entry belongs to none.
func keepSeen[T any](a *asked, all []T, of func(*T) (namespace, pod *string)) ([]T, error) {
	kept := []T{}
	verdicts := map[string]bool{}
	for i := range all {
		namespace, pod := of(&all[i])
		if namespace == nil && pod != nil {
			continue // whose it is cannot be told
		}
		key := ""
		if namespace != nil {
			key = *namespace
		}
		may, known := verdicts[key]
		if !known {
			var err error
			if may, err = a.seesPods(key); err != nil {
				return nil, err
			}
			verdicts[key] = may
		}
		if may {
			kept = append(kept, all[i])
		}
	}
	return kept, nil
}

// ask reads an answer of the agent.
func (a *asked) ask(path string, into any) error {
	ctx, cancel := context.WithTimeout(a.ctx, answerIn)
	defer cancel()
	answer, err := a.open(ctx, path)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(io.LimitReader(answer.Body, mostBytes)).Decode(into); err != nil {
		return fmt.Errorf("the agent's answer to %s cannot be read: %w", path, err)
	}
	return nil
}

func (a *asked) open(ctx context.Context, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(a.Agent, "/")+path, nil)
	if err != nil {
		return nil, err
	}
	answer, err := a.client.Do(request)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, context.DeadlineExceeded) {
		return nil, starting
	}
	if err != nil {
		return nil, fmt.Errorf("the agent of this node does not answer: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		answer.Body.Close()
		if answer.StatusCode == http.StatusServiceUnavailable {
			return nil, busy
		}
		return nil, fmt.Errorf("the agent of this node answers %s to %s", answer.Status, path)
	}
	return answer, nil
}

func (a *asked) send(document any) error {
	a.w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(a.w).Encode(document) // a user who went away is no error
	return nil
}

// seenContainers are the agent's containers that the user may see.
func (a *asked) seenContainers() (answers.Containers, error) {
	var all answers.Containers
	err := a.ask("/containers", &all)
	if err == nil {
		all.Containers, err = keepSeen(a, all.Containers, func(c *listing.Item) (namespace, pod *string) {
			if c.PodUID != "" {
				return c.Namespace, &c.PodUID // a pod, whether or not its name is known
			}
			return c.Namespace, c.Pod
		})
	}
	return all, err
}

func containers(a *asked) error {
	all, err := a.seenContainers()
	if err != nil {
		return err
	}
	return a.send(all)
}

func policies(a *asked) error {
	seen, err := a.seenContainers()
	if err != nil {
		return err
	}
	var document policy.Document
	if err := a.ask("/policy", &document); err != nil {
		return err
	}
	paths := pathsOf(seen)
	document.Containers = slices.DeleteFunc(document.Containers, func(c policy.ReportContainer) bool { return !paths[c.Cgroup] })
	return a.send(document)
}

func pathsOf(seen answers.Containers) map[string]bool {
	paths := make(map[string]bool, len(seen.Containers))
	for i := range seen.Containers {
		paths[seen.Containers[i].Path] = true
	}
	return paths
}

// status has of what is in force only what belongs to containers that the user sees; the agent's own health is for all users.
func status(a *asked) error {
	seen, err := a.seenContainers()
	if err != nil {
		return err
	}
	var all answers.Status
	if err := a.ask("/status", &all); err != nil {
		return err
	}
	paths := pathsOf(seen)
	all.InForce = slices.DeleteFunc(all.InForce, func(f answers.InForce) bool { return !paths[f.Cgroup] })
	return a.send(all)
}

// recordingsOf are those of pods that the user may see and exec into.
func (a *asked) recordingsOf() (answers.Recordings, error) {
	var all answers.Recordings
	if err := a.ask("/recordings", &all); err != nil {
		return all, err
	}
	seen, err := keepSeen(a, all.Recordings, func(r *answers.Recording) (_, _ *string) { return r.Namespace, r.Pod })
	if err != nil {
		return all, err
	}
	all.Recordings = []answers.Recording{}
	verdicts := map[Right]bool{}
	for _, r := range seen {
		// of what belongs to no pod: who has this may exec anywhere on the node
		right := Right{Verb: "get", Resource: "nodes", Subresource: "proxy"}
		if r.Namespace != nil && r.Pod != nil {
			right = Right{Verb: "create", Resource: "pods", Subresource: "exec", Namespace: *r.Namespace, Name: *r.Pod}
		}
		may, known := verdicts[right]
		if !known {
			if may, err = a.Access.May(a.ctx, a.user, right); err != nil {
				return all, err
			}
			verdicts[right] = may
		}
		if may {
			all.Recordings = append(all.Recordings, r)
		}
	}
	return all, nil
}

func recordings(a *asked) error {
	all, err := a.recordingsOf()
	if err != nil {
		return err
	}
	return a.send(all)
}

func file(a *asked) error {
	all, err := a.recordingsOf()
	if err != nil {
		return err
	}
	name := a.r.PathValue("file")
	if !slices.ContainsFunc(all.Recordings, func(r answers.Recording) bool { return r.File == name }) {
		return refusal{http.StatusNotFound, "no such recording, or you may not see it: that needs 'get pods' and " +
			"'create pods/exec' in its namespace"}
	}
	ctx, cancel := context.WithTimeout(a.ctx, recordingIn)
	defer cancel()
	answer, err := a.open(ctx, "/recordings/"+url.PathEscape(name))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	a.w.Header().Set("Content-Type", "application/octet-stream")
	if err := recording.Withhold(answer.Body, a.w); err != nil {
		// Some of it is sent: it is cut off, as its reader sees.
		a.Log.Warn("a recording could not be sent whole", "file", name, "error", err)
		panic(http.ErrAbortHandler)
	}
	return nil
}
