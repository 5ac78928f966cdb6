package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rt "github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
)

// stoppedRecording is a recording with stops, in a file.
func stoppedRecording(t *testing.T) string {
	t.Helper()
	s := rt.New(2)
	s.Limit(50*time.Millisecond, 100*time.Millisecond)
	threads := s.Threads("worker", 2)
	s.Repeat(4, 100*time.Millisecond, func(at time.Duration) { s.Work(at, 40*time.Millisecond, threads...) })
	r := s.Run(400 * time.Millisecond)
	name := filepath.Join(t.TempDir(), "cart.rec")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Write(file); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return name
}

// The stops of a recording, added to themselves: each says that it was stopped as a whole.
func TestSpans(t *testing.T) {
	kept := stoppedRecording(t)
	stops := unraced(t, "spans", kept)
	if stops.code != 0 || !json.Valid([]byte(stops.out)) || !strings.Contains(stops.out, "stopped by its own quota") {
		t.Fatalf("exit code %d, %s%s", stops.code, stops.errors, stops.out)
	}
	file := filepath.Join(t.TempDir(), "stops.json")
	if err := os.WriteFile(file, []byte(stops.out+"\n"+stops.out), 0o600); err != nil {
		t.Fatal(err)
	}
	told := unraced(t, "spans", kept, "--add-to", file, "--service", "shop/cart")
	if told.code != 0 || strings.Count(told.out, "\n") != 2 || !strings.Contains(told.out, "ms by its own quota") ||
		!strings.Contains(told.errors, "were stopped") {
		t.Errorf("exit code %d, %s%s", told.code, told.errors, told.out)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"spans", kept, "--add-to", file}, 3, "name its service.name by --service"},
		{[]string{"spans", kept, "--add-to", kept}, 2, "value 1 is no JSON"},
		{[]string{"spans", file}, 2, "not a recording"},
		{[]string{"spans", kept, "--add-to", file + "x"}, 2, "no such file"},
		{[]string{"spans"}, 2, "give one recording"},
		{[]string{"spans", kept, "--add-to", ""}, 2, "--add-to"},
	} {
		if got := unraced(t, c.args...); got.code != c.code || !strings.Contains(got.errors, c.says) {
			t.Errorf("%q: exit code %d, %q; want %d and %q", c.args, got.code, got.errors, c.code, c.says)
		}
	}
}
