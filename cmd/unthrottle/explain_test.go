package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
)

// After Ctrl-C, which ends a recording early, the report says in our words why it recommends nothing.
func TestAnInterruptedExplanationSaysWhyItRecommendsNothing(t *testing.T) {
	recorded := filepath.Join(t.TempDir(), "recording")
	if err := os.WriteFile(recorded, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var e diagnose.Explanation
	if o, shown, _ := advised(ctx, &e, "cart", recorded, nil); shown != nil || !strings.Contains(o.NotForecast, "it was interrupted") {
		t.Errorf("%q, %v", o.NotForecast, shown)
	}
	if o, _, _ := advised(t.Context(), &e, "cart", recorded, nil); !strings.Contains(o.NotForecast, "it is empty") {
		t.Errorf("not interrupted: %q", o.NotForecast)
	}
}
