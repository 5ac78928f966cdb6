package agent

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/unthrottle/unthrottle/internal/agent/answers"
	"github.com/unthrottle/unthrottle/internal/agent/spent"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/listing"
)

const (
	// sendFor is how long a recording may take to send: a client may be at the other end of a slow line.
	sendFor = 10 * time.Minute
)

// handle adds the pages of what is seen: GET /containers, /status, /recordings and /recordings/FILE. An address does not tell who
// asks, and recordings hold command lines, which are for root: they answer on the socket of --answers alone. The others answer on a
// loopback address, wherever else the agent listens; and where there is a socket, on that alone: a port-forward into the agent's pod
// reaches its loopback address too.
func (a *agent) handle(mux *http.ServeMux, cost *spent.CPU) {
	// A recording takes as long as its reader's line, so that those have turns of their own.
	quick, long := make(chan struct{}, answers.MostAtOnce), make(chan struct{}, answers.MostAtOnce)
	page := func(path string, turns chan struct{}, refuses func(*http.Request) string, answer http.HandlerFunc) {
		h := cost.Handler(answer)
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			if why := refuses(r); why != "" {
				http.Error(w, path+why, http.StatusForbidden)
				return
			}
			select {
			case turns <- struct{}{}:
				defer func() { <-turns }()
				h.ServeHTTP(w, r)
			default:
				w.Header().Set("Retry-After", "1")
				http.Error(w, "too many answers are under way: ask again", http.StatusServiceUnavailable)
			}
		})
	}
	page("/containers", quick, a.refuses, func(w http.ResponseWriter, _ *http.Request) { answerJSON(w, a.containers()) })
	page("/status", quick, a.refuses, func(w http.ResponseWriter, _ *http.Request) { answerJSON(w, a.status()) })
	page("/recordings", quick, a.refusesRecordings, func(w http.ResponseWriter, _ *http.Request) {
		recordings, err := a.keptRecordings()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		answerJSON(w, answers.Recordings{Schema: answers.RecordingsSchema, Version: answers.Version, Recordings: recordings})
	})
	page("/recordings/{file}", long, a.refusesRecordings, a.sendRecording)
}

// refuses says why a request came to the wrong address; "": it did not. An address that is not known is wrong.
func (a *agent) refuses(r *http.Request) string {
	if a.Answers != "" {
		return a.refusesRecordings(r)
	}
	if at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok && at.IP.IsLoopback() {
		return ""
	}
	return " answers on a loopback address only: ask 127.0.0.1 on the node, or in the agent's pod"
}

// refusesRecordings is refuses for what answers on the socket alone.
func (a *agent) refusesRecordings(r *http.Request) string {
	if _, ok := r.Context().Value(http.LocalAddrContextKey).(*net.UnixAddr); ok && a.Answers != "" {
		return ""
	}
	if a.Answers == "" {
		return " answers on the socket of --answers only, and this agent has none: as root, use 'unthrottle explain --at'"
	}
	return " answers on the socket of --answers only"
}

func answerJSON(w http.ResponseWriter, document any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(document)
}

// containers are those of the newest round, as many as are exported.
func (a *agent) containers() answers.Containers {
	a.mu.Lock()
	shown := a.shown
	a.mu.Unlock()
	shown = shown[:min(len(shown), maxContainers)]
	out := answers.Containers{Schema: listing.Schema, Version: listing.Version,
		Document: listing.Document{Containers: make([]listing.Item, 0, len(shown))}}
	for _, o := range shown {
		out.Containers = append(out.Containers, listing.Of(o))
	}
	return out
}

func (a *agent) status() answers.Status {
	a.mu.Lock()
	at, held := a.lastRound, a.heldShown
	a.mu.Unlock()
	out := answers.Status{Schema: answers.StatusSchema, Version: answers.Version, Mode: a.Rules.Mode, InForce: []answers.InForce{},
		Agent:      policy.ReportAgent{Version: a.Version, At: at.UTC().Truncate(time.Millisecond)},
		NotHealthy: complaint(a.healthy()), NotReady: complaint(a.NRI.Ready())}
	if a.recorder == nil {
		out.NotRecorded = new("its file wants no probe")
		if a.Flight.Missing != "" {
			out.NotRecorded = &a.Flight.Missing
		}
	}
	for _, f := range held {
		out.InForce = append(out.InForce, answers.InForce{ID: f.ID, Cgroup: text.EscapePath(f.Target),
			Name: text.Sanitize(f.Name, maxLabel), Remedy: f.Remedy,
			Since: f.Since, By: f.By, Verdict: f.Verdict, OnTrial: f.Trial != nil})
	}
	return out
}

func complaint(err error) *string {
	if err == nil {
		return nil
	}
	return new(err.Error())
}

// keptRecordings are those that can be read; their headers are read once.
func (a *agent) keptRecordings() ([]answers.Recording, error) {
	out := []answers.Recording{}
	if a.recorder == nil {
		return out, nil
	}
	entries, err := a.recorder.store.List()
	if err != nil {
		return nil, err
	}
	r := a.recorder
	r.headersMu.Lock()
	defer r.headersMu.Unlock()
	headers := make(map[string]recording.Target, len(entries))
	for _, k := range entries {
		name := filepath.Base(k.File)
		target, known := r.headers[name]
		if !known {
			if target, err = k.Target(); err != nil {
				continue // removed meanwhile, or damaged: it cannot be explained
			}
		}
		headers[name] = target
		out = append(out, answers.Recording{File: name, At: k.At, Bytes: k.Size, Cgroup: text.EscapePath(target.Path),
			Name:      text.Sanitize(target.Name, maxLabel),
			Namespace: orNull(target.Namespace), Pod: orNull(target.Pod), Container: orNull(target.Container)})
	}
	r.headers = headers
	return out, nil
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// sendRecording answers GET /recordings/FILE. Only a name that the store lists is opened.
func (a *agent) sendRecording(w http.ResponseWriter, r *http.Request) {
	none := func() { http.Error(w, "no such recording: GET /recordings lists them", http.StatusNotFound) }
	if a.recorder == nil {
		none()
		return
	}
	entries, err := a.recorder.store.List()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	for _, k := range entries {
		if filepath.Base(k.File) != r.PathValue("file") {
			continue
		}
		file, err := os.Open(k.File)
		if errors.Is(err, os.ErrNotExist) {
			break // it made room for a newer one
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		defer file.Close()
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(sendFor)) // where there is none, there is no limit
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Length", strconv.FormatInt(k.Size, 10))
		_, _ = io.Copy(w, file) // a client that went away is no error
		return
	}
	none()
}
