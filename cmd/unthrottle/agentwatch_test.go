package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/infile"
)

// A file that is replaced, or written, is noticed; one that is gone changes nothing.
func TestWatchFile(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "rules.yaml")
	write := func(to, content string) {
		t.Helper()
		if err := os.WriteFile(to, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(name, "version: 1\n")
	hangups := make(chan os.Signal, 1)
	defer watchFile(t.Context(), name, hangups)()
	noticed := func(what string) {
		t.Helper()
		select {
		case <-hangups:
		case <-time.After(time.Minute):
			t.Fatalf("%s is not noticed", what)
		}
	}
	write(name+".new", "version: 1\nmode: apply\n")
	if err := os.Rename(name+".new", name); err != nil {
		t.Fatal(err)
	}
	noticed("another file")
	write(name, "version: 1\nmode: observe\nbound: 5%\n")
	noticed("a written file")
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	write(name, "version: 1\n")
	noticed("a file that came back")
}

func TestSameFile(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	was, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if !infile.Unchanged(was, was) || infile.Unchanged(nil, was) {
		t.Error("the same file differs from itself, or from none it does not")
	}
	later := was.ModTime().Add(time.Second)
	if err := os.Chtimes(name, later, later); err != nil {
		t.Fatal(err)
	}
	if now, err := os.Stat(name); err != nil || infile.Unchanged(was, now) {
		t.Error("another time is no other file", err)
	}
}
