package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
)

// Where a recording finds no room, the page that was begun for it goes too.
func TestAPageIsNotLeftUnfinished(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", filepath.Join(dir, "none"))
	err := runExplain(t.Context(), "no-such-container", explainFlags{html: filepath.Join(dir, "page.html")}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "no room for the recording") {
		t.Errorf("%v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

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
