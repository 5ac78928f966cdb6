package clock

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestSleep(t *testing.T) {
	if err := Sleep(context.Background(), time.Microsecond); err != nil {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for _, d := range []time.Duration{-1, 0, time.Hour} {
		if err := Sleep(ended, d); !errors.Is(err, context.Canceled) {
			t.Errorf("%v after the end of the context: %v", d, err)
		}
	}
	soon, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if err := Sleep(soon, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want the deadline's error", err)
	}
}
