package study

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Whoever else holds the file keeps a study from measuring, and a study keeps others from theirs.
func TestAlone(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	a, err := OpenAlone(name)
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	lock := func() error { return unix.Flock(int(other.Fd()), unix.LOCK_EX|unix.LOCK_NB) }
	failed := errors.New("it failed")
	err = a.Do(t.Context(), func() error {
		if err := lock(); err != unix.EWOULDBLOCK {
			t.Errorf("another took the lock of a measurement: %v", err)
		}
		return failed
	})
	if err != failed {
		t.Errorf("error: %v", err)
	}
	if err := lock(); err != nil {
		t.Fatalf("after it: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	measured := make(chan error)
	go func() { measured <- a.Do(ctx, func() error { t.Error("it measured beside another"); return nil }) }()
	cancel()
	if err := <-measured; !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	// Who waits gets the lock when the other gives it back, also after a wait that was interrupted.
	go func() { measured <- a.Do(t.Context(), func() error { return nil }) }()
	select {
	case err := <-measured:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	if err := unix.Flock(int(other.Fd()), unix.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	if err := <-measured; err != nil {
		t.Errorf("after the other: %v", err)
	}
	if none, err := OpenAlone(""); err != nil || none.Do(ctx, func() error { return nil }) != nil {
		t.Errorf("without a file: %v", err)
	}
	if _, err := OpenAlone(filepath.Join(name, "below")); err == nil {
		t.Error("a file below a file")
	}
}
