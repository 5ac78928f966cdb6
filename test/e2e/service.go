package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// The service computes for work in each request. Its client sends a burst of requests at once, then waits. A burst needs
// one and a half times the quota of a period of 0.2 CPUs, all bursts together less than half of it: most of what a request
// waits for is the quota, also where others use the CPUs.
const (
	work     = 8 * time.Millisecond
	requests = 4
	pause    = 400 * time.Millisecond
)

// serveRequests is the service: this program again, in a pod. Each connection has a thread of its own; a request is a byte,
// and so is its answer.
func serveRequests(address string) error {
	// The kernel alone chooses which thread runs.
	runtime.GOMAXPROCS(4 * requests)
	debug.SetGCPercent(-1)
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	for {
		connection, err := listener.Accept()
		if err != nil {
			return err
		}
		file, err := connection.(*net.TCPConn).File() // blocks, as a thread of its own may
		_ = connection.Close()
		if err != nil {
			return err
		}
		go func() {
			runtime.LockOSThread()
			defer file.Close()
			_ = os.WriteFile("/proc/thread-self/comm", []byte("worker"), 0o600) // without it the pool is called as the program
			answer(int(file.Fd()))
		}()
	}
}

// answer answers requests until the connection ends.
func answer(fd int) {
	request := make([]byte, 1)
	for {
		if n, err := unix.Read(fd, request); errors.Is(err, unix.EINTR) {
			continue
		} else if err != nil || n == 0 {
			return
		}
		if compute(work) != nil {
			return
		}
		if _, err := unix.Write(fd, request); err != nil {
			return
		}
	}
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
func (s *suite) startClient(address string) (*client, error) {
	ctx, cancel := context.WithCancel(s.ctx)
	c := &client{stop: cancel}
	var bursts []chan time.Time
	for range requests {
		var connection net.Conn
		err := eventually(func() (err error) {
			connection, err = net.Dial("tcp", address) // its process may not listen yet
			return err
		})
		if err != nil {
			c.end()
			return nil, err
		}
		sent := make(chan time.Time, 1000)
		bursts = append(bursts, sent)
		waiting := make(chan time.Time, 1000)
		context.AfterFunc(ctx, func() { _ = connection.Close() })
		c.done.Go(func() {
			defer close(waiting)
			for at := range sent {
				if _, err := connection.Write([]byte{1}); err != nil {
					c.fail(ctx, err)
					return
				}
				waiting <- at
			}
		})
		c.done.Go(func() {
			for at := range waiting {
				if _, err := io.ReadFull(connection, make([]byte, 1)); err != nil {
					c.fail(ctx, err)
					return
				}
				c.keep(time.Since(at))
			}
		})
	}
	c.done.Go(func() {
		random := rand.New(rand.NewPCG(1, 2))
		for at := time.Now(); ctx.Err() == nil; at = at.Add(pause/2 + time.Duration(random.Int64N(int64(pause)))) {
			time.Sleep(time.Until(at))
			for _, sent := range bursts {
				select {
				case sent <- at:
				default: // the connection failed, or answers nothing for minutes
					c.fail(ctx, errors.New("a connection takes no request"))
				}
			}
		}
		for _, sent := range bursts {
			close(sent)
		}
	})
	return c, nil
}

func (c *client) keep(took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.took = append(c.took, took)
}

// fail keeps an error, unless the client ends.
func (c *client) fail(ctx context.Context, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() == nil {
		c.failed = err
	}
}

// percentile looks for a while, and returns the p99 of the requests that ended meanwhile, also in words.
func (c *client) percentile(ctx context.Context, long time.Duration) (time.Duration, string, error) {
	c.mu.Lock()
	from := len(c.took)
	c.mu.Unlock()
	select {
	case <-ctx.Done():
		return 0, "", ctx.Err()
	case <-time.After(long):
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	took := slices.Clone(c.took[from:])
	if c.failed != nil {
		return 0, "", fmt.Errorf("a request failed: %w", c.failed)
	}
	if len(took) < 100 {
		return 0, "", fmt.Errorf("%d requests ended in %v: too few for a p99", len(took), long)
	}
	slices.Sort(took)
	p99 := took[len(took)*99/100]
	return p99, fmt.Sprintf("%d requests, p50 %.1f ms, p99 %.1f ms", len(took), milliseconds(took[len(took)/2]), milliseconds(p99)), nil
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }

func (c *client) end() {
	c.stop()
	c.done.Wait()
}
