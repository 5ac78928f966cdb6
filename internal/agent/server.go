package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/unthrottle/unthrottle/internal/agent/spent"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
)

// pages are what the server answers.
type pages struct {
	metrics *prometheus.Registry
	policy  func() policy.Report
	// healthy and ready are for /healthz and /readyz: nil is "ok". ready is asked where healthy has no error.
	healthy, ready func() error
	// agent answers the JSON of what is seen.
	agent *agent
}

// serve answers /metrics, /policy, /probes, /trials, /containers, /status, /healthz, /readyz and a page that links them until ctx ends.
// Nothing can be changed over it: every other path and method is refused. ready, if not nil, is told the address that was bound.
func serve(ctx context.Context, l net.Listener, cost *spent.CPU, p pages, ready func(net.Addr)) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintln(w, `<!doctype html><title>unthrottle agent</title><p><a href="/metrics">/metrics</a> <a href="/policy">/policy</a> <a href="/probes">/probes</a> <a href="/trials">/trials</a> <a href="/containers">/containers</a> <a href="/status">/status</a> <a href="/healthz">/healthz</a> <a href="/readyz">/readyz</a>`)
	})
	page := promhttp.HandlerFor(p.metrics, promhttp.HandlerOpts{MaxRequestsInFlight: 4, EnableOpenMetrics: true})
	mux.Handle("GET /metrics", cost.Handler(page))
	mux.Handle("GET /policy", cost.Handler(policyPage(p.policy)))
	mux.Handle("GET /probes", cost.Handler(http.HandlerFunc(p.agent.probesPage)))
	mux.Handle("GET /trials", cost.Handler(http.HandlerFunc(p.agent.trialsPage)))
	p.agent.handle(mux, cost)
	for path, picks := range map[string][]func() error{"GET /healthz": {p.healthy}, "GET /readyz": {p.healthy, p.ready}} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			for _, check := range picks {
				if err := check(); err != nil {
					http.Error(w, err.Error(), http.StatusServiceUnavailable)
					return
				}
			}
			fmt.Fprintln(w, "ok")
		})
	}
	if ready != nil {
		ready(l.Addr())
	}
	return serveOn(ctx, l, mux)
}

// serveOn answers on a listener until ctx ends.
func serveOn(ctx context.Context, l net.Listener, mux http.Handler) error {
	server := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       5 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ConnContext:       withPeer,
	}
	// A goroutine of its own, since Shutdown must run while Serve blocks.
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
	err := server.Serve(l)
	if errors.Is(err, http.ErrServerClosed) {
		<-stopped
		return nil
	}
	return err
}
