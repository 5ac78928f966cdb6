package parallel

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

func TestOnAllCores(t *testing.T) {
	var sum atomic.Int64
	if err := OnAllCores(t.Context())(100, func(i int) error { sum.Add(int64(i)); return nil }); err != nil || sum.Load() != 4950 {
		t.Errorf("%v, %d", err, sum.Load())
	}
	if err := OnAllCores(t.Context())(0, func(int) error { t.Error("called"); return nil }); err != nil {
		t.Error(err)
	}
}

func TestErrorsEndIt(t *testing.T) {
	broken := errors.New("broken")
	var calls atomic.Int64
	err := OnAllCores(t.Context())(1_000_000, func(int) error { calls.Add(1); return broken })
	if !errors.Is(err, broken) || calls.Load() > 10_000 {
		t.Errorf("%v after %d calls", err, calls.Load())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := OnAllCores(ctx)(3, func(int) error { t.Error("called"); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// When the time is up no call begins; until then all do.
func TestWithin(t *testing.T) {
	err := Within(t.Context(), 0, 0)(3, func(int) error { t.Error("called"); return nil })
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	var sum atomic.Int64
	err = Within(t.Context(), time.Hour, 0)(100, func(i int) error { sum.Add(int64(i)); return nil })
	if err != nil || sum.Load() != 4950 {
		t.Errorf("%v, %d", err, sum.Load())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Within(ctx, time.Hour, 0)(3, func(int) error { t.Error("called"); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestCollect(t *testing.T) {
	got, err := Collect(t.Context(), 50, func(i int) (int, error) { return i * i, nil })
	if err != nil || len(got) != 50 || got[7] != 49 {
		t.Errorf("%v, %v", got, err)
	}
	broken := errors.New("broken")
	if _, err := Collect(t.Context(), 50, func(int) (int, error) { return 0, broken }); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

// A call that never ends does not keep Collect from its end.
func TestCollectIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	never := make(chan struct{})
	defer close(never)
	if _, err := Collect(ctx, 2, func(int) (int, error) { cancel(); <-never; return 0, nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// No more calls run at once than there may be cores for.
func TestWithinOnFewCores(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	var now, most atomic.Int64
	err := Within(t.Context(), time.Hour, 2)(100, func(int) error {
		n := now.Add(1)
		for was := most.Load(); n > was && !most.CompareAndSwap(was, n); was = most.Load() {
		}
		runtime.Gosched()
		now.Add(-1)
		return nil
	})
	if err != nil || most.Load() > 2 || most.Load() == 0 {
		t.Errorf("%v, %d at once", err, most.Load())
	}
}
