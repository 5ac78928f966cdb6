package services

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestPrepare(t *testing.T) {
	s := &Stage{Dir: t.TempDir()}
	shell := func(ctx context.Context, line string) error {
		return s.prepare(ctx, line)
	}
	if err := shell(t.Context(), "echo well > said"); err != nil {
		t.Error(err)
	}
	if err := shell(t.Context(), "echo no such zone; exit 3"); err == nil || !strings.Contains(err.Error(), "exit status 3: no such zone") {
		t.Error(err)
	}
	// The end may come at any time, also before the start.
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 {
		if err := shell(ended, "exec sleep 600"); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(filepath.Join(s.Dir, "begun")); err == nil {
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	if err := shell(ctx, "touch begun; exec sleep 600"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
