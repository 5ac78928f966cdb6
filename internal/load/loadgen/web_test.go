package loadgen

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/test/lab/require"
)

func web1(url string, n int) Plan {
	return Plan{URL: url, Streams: []Stream{{Name: "get", At: make([]time.Duration, n)}},
		Phases: []Phase{{For: 100 * ms, Factor: 1, Measured: true}}, Drain: 20 * time.Second}
}

func TestHTTP(t *testing.T) {
	require.Kernel(t)
	var open, most atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		most.Store(max(most.Load(), open.Add(1)))
		time.Sleep(20 * ms)
		open.Add(-1)
	}))
	defer server.Close()
	plan := web1(server.URL, 8)
	plan.Connections = 2
	s := run(t, plan).Phases[0].Streams[0]
	if s.Answered != 8 || most.Load() > 2 {
		t.Errorf("%+v with %d at once, 2 connections are allowed", s, most.Load())
	}
	// The last two wait for three pairs before them: that counts.
	if longest, _ := s.Latency.Max(); longest < 80*ms {
		t.Errorf("the longest took %v", longest)
	}
}

func TestHTTPErrors(t *testing.T) {
	require.Kernel(t)
	for name, c := range map[string]struct {
		answer  http.HandlerFunc
		says    string
		refused uint64
	}{
		"errors only":  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, "HTTP status 500", 0},
		"overloaded":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, "HTTP status 503", 3},
		"redirects":    {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusFound) }, "HTTP status 302", 0},
		"never answer": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "", 0},
	} {
		server := httptest.NewServer(c.answer)
		plan := web1(server.URL, 3)
		if plan.Timeout = 20 * time.Second; c.says == "" {
			plan.Timeout = 200 * ms
		}
		r := run(t, plan)
		server.Close()
		s := r.Phases[0].Streams[0]
		if s.Failed != 3 || s.Refused != c.refused || !strings.Contains(r.FirstFailure, c.says) || r.FirstFailure == "" {
			t.Errorf("%s: %+v, %q", name, s, r.FirstFailure)
		}
		if (s.TimedOut == 3) != (c.says == "") {
			t.Errorf("%s: timeouts: %+v", name, s)
		}
	}
}

func TestUnreachableURL(t *testing.T) {
	require.Kernel(t)
	plan := web1("http://127.0.0.1:1/", 3)
	plan.Retries.Max = 1
	r := run(t, plan)
	if s := r.Phases[0].Streams[0]; s.Failed != 3 || s.Tries != 6 || !strings.Contains(r.FirstFailure, "refused") {
		t.Errorf("%+v, %q", s, r.FirstFailure)
	}
}
