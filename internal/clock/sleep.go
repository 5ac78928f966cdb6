// Package clock has the one sleep that ends early when its context does.
//
// Pure packages do not import it: they take times as values.
package clock

import (
	"context"
	"time"
)

// Sleep waits for d. It returns early with the context's error when ctx ends
// first; a ctx that has ended already makes it return at once, whatever d is.
func Sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
