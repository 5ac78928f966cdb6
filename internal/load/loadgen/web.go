package loadgen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/unthrottle/unthrottle/internal/clock"
	"github.com/unthrottle/unthrottle/internal/load/workload"
)

// webTimeout is the timeout of a try where the plan has none.
const webTimeout = 30 * time.Second

// maxBody is how much of an answer is read; the rest is cut off, and the
// connection with it.
const maxBody = 16 << 20

// runWeb runs a plan against a URL.
func runWeb(p Plan) (Result, error) {
	get := Web(p.Connections, p.Timeout)
	return drive(context.Background(), p, func(ctx context.Context, _ int) error { return get(ctx, p.URL, "") }), nil
}

// Web returns a client that gets URLs, or posts JSON to them where there is a body, over
// at most so many connections to a host. timeout of 0 is 30 s. An answer other than 2xx is an error.
func Web(connections int, timeout time.Duration) func(ctx context.Context, url, body string) error {
	if timeout == 0 {
		timeout = webTimeout
	}
	w := &web{&http.Client{
		Timeout: timeout,
		Transport: &http.Transport{
			MaxConnsPerHost: connections, MaxIdleConnsPerHost: connections, IdleConnTimeout: time.Minute,
			MaxResponseHeaderBytes: 1 << 20,
			DisableCompression:     true, // the client asks for gzip itself and need not spend CPU on undoing it
		},
		// A redirect is an answer of this service; where it leads is another load.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	return w.ask
}

// Exchange sends one request of the plan's stream with that index, and waits for the
// answer. An error is a try that failed.
type Exchange func(ctx context.Context, stream int) error

// Drive runs a plan in this process: each request is an exchange, in a goroutine of
// its own. The plan has no target; its Connections and Timeout are for the exchange
// to keep. When ctx ends, requests on their way end, and no more are sent.
func Drive(ctx context.Context, p Plan, exchange Exchange) (Result, error) {
	p = p.filled()
	if err := p.CheckLoad(); err != nil {
		return Result{}, fmt.Errorf("load: %w", err)
	}
	return drive(ctx, p, exchange), ctx.Err()
}

// driver sends requests by an exchange.
type driver struct {
	mu sync.Mutex // of the tracker and flying
	*tracker
	exchange Exchange
	start    time.Duration
	flying   map[uint64]arrival
}

func drive(ctx context.Context, p Plan, exchange Exchange) Result {
	g := &driver{tracker: newTracker(p), flying: map[uint64]arrival{}, exchange: exchange}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g.start = p.Start
	if g.start == 0 {
		g.start = workload.Now()
	}
	cpu := ownTime()
	var under sync.WaitGroup
	coming := newSchedule(p)
	for a, ok := coming.next(); ok; a, ok = coming.next() {
		if clock.Sleep(ctx, a.at-g.now()) != nil {
			break
		}
		if g.admit(a) {
			under.Go(func() { g.request(ctx, a) })
		}
	}
	_ = clock.Sleep(ctx, p.Duration()-g.now())
	done := make(chan struct{})
	go func() { under.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(p.Drain):
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for number, a := range g.flying {
		g.unfinished(a, g.now())
		delete(g.flying, number) // a later caller finds it closed
	}
	return g.finish(g.now(), ownTime()-cpu, false)
}

func (g *driver) now() time.Duration { return workload.Now() - g.start }

func (g *driver) admit(a arrival) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.begin(a, g.now()-a.at)
	if len(g.flying) >= maxWebInFlight {
		g.of(a).Unsent++
		return false
	}
	g.flying[a.number] = a
	return true
}

// maxWebInFlight bounds the goroutines and what they hold.
const maxWebInFlight = 10_000

// request tries until there is a good answer or no hope.
func (g *driver) request(ctx context.Context, a arrival) {
	for tried := 1; ; tried++ {
		if !g.still(a, func() { g.try(a, g.now()) }) {
			return
		}
		err := g.exchange(ctx, a.stream)
		wait, again := time.Duration(0), false
		if !g.still(a, func() {
			if wait, again = g.judge(a, tried, err); !again {
				delete(g.flying, a.number)
			}
		}) || !again {
			return
		}
		time.Sleep(wait)
	}
}

// still does something under the lock if the request is not closed yet.
func (g *driver) still(a arrival, do func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, ok := g.flying[a.number]
	if ok {
		do()
	}
	return ok
}

// judge notes what a try came to, and whether there is another.
func (g *driver) judge(a arrival, tried int, err error) (wait time.Duration, again bool) {
	if err == nil {
		g.answered(a, g.now())
		return 0, false
	}
	g.failure(err.Error())
	status := new(badStatus)
	timeout := interface{ Timeout() bool }(nil)
	switch {
	case errors.As(err, &status) && (status.code == http.StatusServiceUnavailable || status.code == http.StatusTooManyRequests):
		g.of(a).Refused++
	case errors.As(err, &timeout) && timeout.Timeout():
		g.of(a).TimedOut++
	}
	if wait, again = g.again(tried); !again {
		g.failed(a, g.now())
	}
	return wait, again
}

// badStatus is an answer that is none of success.
type badStatus struct{ code int }

func (e *badStatus) Error() string {
	return fmt.Sprintf("HTTP status %d %s", e.code, http.StatusText(e.code))
}

// web is an HTTP client.
type web struct{ client *http.Client }

func (w *web) ask(ctx context.Context, url, body string) error {
	method, sent := http.MethodGet, io.Reader(nil)
	if body != "" {
		method, sent = http.MethodPost, strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, sent)
	if err != nil {
		return err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("User-Agent", "unthrottle-bench")
	req.Header.Set("Accept-Encoding", "gzip")
	answer, err := w.client.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(answer.Body, maxBody)); err != nil {
		return err
	}
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return &badStatus{answer.StatusCode}
	}
	return nil
}
