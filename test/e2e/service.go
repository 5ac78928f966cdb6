package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// The service computes for work in each request. Its client sends a burst of requests at once, then waits. A burst needs
// more than half a CPU's quota of a period, all bursts together half of the quota.
const (
	work     = 15 * time.Millisecond
	requests = 6
	pause    = 400 * time.Millisecond
)

// serveRequests is the service: this program again, in a pod.
func serveRequests(address string) error {
	handler := func(w http.ResponseWriter, _ *http.Request) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := compute(work); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}
	server := http.Server{Addr: address, Handler: http.HandlerFunc(handler), ReadHeaderTimeout: 10 * time.Second}
	return server.ListenAndServe()
}

// compute computes until the calling thread has had that much CPU time.
func compute(want time.Duration) error {
	var first, now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &first); err != nil {
		return err
	}
	for {
		if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
			return err
		}
		if time.Duration(now.Nano()-first.Nano()) >= want {
			return nil
		}
	}
}

// client sends bursts to the service and keeps what each request took, from the moment at which it had to be sent.
type client struct {
	mu     sync.Mutex
	took   []time.Duration
	failed error
	stop   context.CancelFunc
	done   sync.WaitGroup
}

// startClient starts one. It ends by end.
func (s *suite) startClient(address string) *client {
	ctx, cancel := context.WithCancel(s.ctx)
	c := &client{stop: cancel}
	transport := &http.Transport{MaxIdleConnsPerHost: 4 * requests}
	sender := http.Client{Transport: transport, Timeout: 20 * time.Second}
	c.done.Go(func() {
		defer transport.CloseIdleConnections()
		random := rand.New(rand.NewPCG(1, 2))
		for at := time.Now(); ctx.Err() == nil; at = at.Add(pause/2 + time.Duration(random.Int64N(int64(pause)))) {
			time.Sleep(time.Until(at))
			for range requests {
				c.done.Go(func() { c.keep(at, ask(ctx, &sender, address)) })
			}
		}
	})
	return c
}

func ask(ctx context.Context, sender *http.Client, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/", nil)
	if err != nil {
		return err
	}
	response, err := sender.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return nil
}

func (c *client) keep(at time.Time, err error) {
	took := time.Since(at)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			c.failed = err
		}
		return
	}
	c.took = append(c.took, took)
}

// percentile looks for a while, and returns the p99 of the requests that ended meanwhile.
func (c *client) percentile(ctx context.Context, long time.Duration) (time.Duration, error) {
	c.mu.Lock()
	from := len(c.took)
	c.failed = nil
	c.mu.Unlock()
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(long):
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	took := slices.Clone(c.took[from:])
	if c.failed != nil {
		return 0, fmt.Errorf("a request failed: %w", c.failed)
	}
	if len(took) < 100 {
		return 0, fmt.Errorf("%d requests ended in %v: too few for a p99", len(took), long)
	}
	slices.Sort(took)
	return took[len(took)*99/100], nil
}

func (c *client) end() {
	c.stop()
	c.done.Wait()
}
