package slo

import (
	"context"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
)

// Latencies makes a source of a command: each call runs it once and reads what
// it printed as latencies in ms.
func Latencies(command string) func(context.Context) ([]float64, error) {
	return func(ctx context.Context) ([]float64, error) {
		out, err := Run(ctx, command)
		if err != nil {
			return nil, err
		}
		ms, _, err := policy.Samples(out)
		return ms, err
	}
}
