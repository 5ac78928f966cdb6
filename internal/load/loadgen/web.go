package loadgen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/unthrottle/unthrottle/internal/load/workload"
)

// webTimeout is the timeout of a try where the plan has none.
const webTimeout = 30 * time.Second

// maxBody is how much of an answer is read; the rest is cut off, and the
// connection with it.
const maxBody = 16 << 20

// web sends to any HTTP service.
type web struct {
	mu sync.Mutex // of the tracker and flying
	*tracker
	client *http.Client
	start  time.Duration
	flying map[uint64]arrival
}

// runWeb runs a plan against a URL.
func runWeb(p Plan) (Result, error) {
	timeout := p.Timeout
	if timeout == 0 {
		timeout = webTimeout
	}
	g := &web{tracker: newTracker(p), flying: map[uint64]arrival{}, client: &http.Client{
		Timeout: timeout,
		Transport: &http.Transport{
			MaxConnsPerHost: p.Connections, MaxIdleConnsPerHost: p.Connections, IdleConnTimeout: time.Minute,
			MaxResponseHeaderBytes: 1 << 20,
		},
		// A redirect is an answer of this service; where it leads is another load.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	g.start = p.Start
	if g.start == 0 {
		g.start = workload.Now()
	}
	cpu := ownTime()
	var under sync.WaitGroup
	coming := newSchedule(p)
	for a, ok := coming.next(); ok; a, ok = coming.next() {
		time.Sleep(a.at - g.now())
		if g.admit(a) {
			under.Go(func() { g.request(ctx, a) })
		}
	}
	time.Sleep(p.Duration() - g.now())
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
	return g.finish(g.now(), ownTime()-cpu, false), nil
}

func (g *web) now() time.Duration { return workload.Now() - g.start }

func (g *web) admit(a arrival) bool {
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
func (g *web) request(ctx context.Context, a arrival) {
	for tried := 1; ; tried++ {
		if !g.still(a, func() { g.try(a, g.now()) }) {
			return
		}
		err := g.get(ctx)
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
func (g *web) still(a arrival, do func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, ok := g.flying[a.number]
	if ok {
		do()
	}
	return ok
}

// judge notes what a try came to, and whether there is another.
func (g *web) judge(a arrival, tried int, err error) (wait time.Duration, again bool) {
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

func (g *web) get(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.plan.URL, nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "unthrottle-bench")
	answer, err := g.client.Do(req)
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
