package observe

import (
	"context"
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// MinWindow and MaxWindow bound the window of Once and of a Watcher. A window of less than a few periods says little,
// and one of more than an hour has no use.
const (
	MinWindow = 10 * time.Millisecond
	MaxWindow = time.Hour
)

// Once observes the containers over one window: it takes two samples and returns the difference. It leaves out
// containers that do not exist at the end. It fails only for a window out of bounds or with the error of ctx.
func Once(ctx context.Context, h *cgroup.Host, containers []container.Container, window time.Duration) ([]Observation, error) {
	if window < MinWindow || window > MaxWindow {
		return nil, fmt.Errorf("window %v is not within %v to %v", window, MinWindow, MaxWindow)
	}
	s := NewSampler(h, Options{})
	defer s.Close()
	first, err := s.Sample(ctx, containers, nil)
	if err != nil {
		return nil, err
	}
	timer := time.NewTimer(window)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timer.C:
	}
	second, err := s.Sample(ctx, containers, nil)
	if err != nil {
		return nil, err
	}
	var observations []Observation
	for i := range second {
		if !second[i].Gone {
			observations = append(observations, Delta(&first[i], &second[i]))
		}
	}
	return observations, nil
}
