// Package parallel runs independent simulations on all cores.
package parallel

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"
)

// OnAllCores gives a function that calls do for 0 to n-1, on all cores. It returns
// the errors joined. The first error, or the end of ctx, lets no further call begin;
// calls under way end first.
func OnAllCores(ctx context.Context) func(n int, do func(i int) error) error {
	return onCores(ctx.Err, 0)
}

// Within is OnAllCores for a limited time from now, at least 0, and on that many cores at most; 0: all. When the time is up, no further
// call begins, and the error is context.DeadlineExceeded.
func Within(ctx context.Context, limit time.Duration, cores int) func(n int, do func(i int) error) error {
	end := time.Now().Add(limit)
	return onCores(func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !time.Now().Before(end) {
			return context.DeadlineExceeded
		}
		return nil
	}, cores)
}

// onCores lets a call begin while over returns nil, on that many cores at most; 0: all.
func onCores(over func() error, cores int) func(n int, do func(i int) error) error {
	return func(n int, do func(i int) error) error {
		var running sync.WaitGroup
		var mu sync.Mutex
		var failed error
		at := 0
		take := func() (int, bool) {
			mu.Lock()
			defer mu.Unlock()
			if failed != nil || at == n {
				return 0, false
			}
			if failed = over(); failed != nil {
				return 0, false
			}
			at++
			return at - 1, true
		}
		workers := min(n, runtime.GOMAXPROCS(0))
		if cores > 0 {
			workers = min(workers, cores)
		}
		for range workers {
			running.Go(func() {
				for {
					i, ok := take()
					if !ok {
						return
					}
					if err := do(i); err != nil {
						mu.Lock()
						failed = errors.Join(failed, err)
						mu.Unlock()
					}
				}
			})
		}
		running.Wait()
		return failed
	}
}

// Collect calls do for 0 to n-1, on all cores, and returns the results in order. The
// first error, or the end of ctx, is returned at once; a call under way then goes on
// without a reader.
func Collect[T any](ctx context.Context, n int, do func(i int) (T, error)) ([]T, error) {
	type numbered struct {
		i   int
		one T
		err error
	}
	todo, done := make(chan int), make(chan numbered, n)
	for range min(n, runtime.GOMAXPROCS(0)) {
		go func() {
			for i := range todo {
				one, err := do(i)
				done <- numbered{i, one, err}
			}
		}()
	}
	defer close(todo)
	all := make([]T, n)
	for next, left := 0, n; left > 0; {
		feed := todo
		if next == n {
			feed = nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case feed <- next:
			next++
		case r := <-done:
			if r.err != nil {
				return nil, r.err
			}
			left--
			all[r.i] = r.one
		}
	}
	return all, nil
}
