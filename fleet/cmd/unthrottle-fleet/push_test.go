package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/fleet/objectstore"
)

// command runs a command to its end, and returns what it printed.
func command(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(&out)
	err := root.ExecuteContext(ctx)
	return out.String(), err
}

// inBucket reports whether the store of stored has a file.
func inBucket(t *testing.T, name string) bool {
	t.Helper()
	place, err := objectstore.Parse("s3://bucket/fleet")
	if err != nil {
		t.Fatal(err)
	}
	store, err := objectstore.Open(place, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	l, err := store.List(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(l.Objects, func(o objectstore.Object) bool { return o.Key == "fleet/"+name })
}

// What is pushed is what the report reads from there.
func TestPushAndReport(t *testing.T) {
	dir := rows(t, 6)
	stored(t, t.TempDir(), nil)
	for range 2 {
		if _, err := command(t.Context(), "push", dir, "s3://bucket/fleet"); err != nil {
			t.Fatal(err)
		}
	}
	want, err := command(t.Context(), "report", dir, "--json")
	if err != nil {
		t.Fatal(err)
	}
	got, err := command(t.Context(), "report", "s3://bucket/fleet", "--json")
	if err != nil || got != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
}

// With --every what comes later goes too, and what came last goes at the end.
func TestPushOn(t *testing.T) {
	dir := t.TempDir()
	stored(t, t.TempDir(), nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := command(ctx, "push", dir, "s3://bucket/fleet", "--every", "1s")
		ended <- err
	}()
	for i, name := range []string{"first.parquet", "later.parquet"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("rows"), 0o644); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			for !inBucket(t, name) {
				time.Sleep(10 * time.Millisecond)
			}
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if !inBucket(t, "later.parquet") {
		t.Error("what came last did not go")
	}
}

// What the push after an interrupt could not bring is a failure that is told, and not the interrupt.
func TestLastPushFails(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := objectstore.Push{Dir: filepath.Join(t.TempDir(), "gone")}
	err := pushOn(ctx, &p, time.Second, objectstore.Place{Bucket: "bucket"})
	if err == nil || !strings.Contains(err.Error(), "gone") || exitCode(err, true) != exitFailure {
		t.Errorf("%v", err)
	}
	if code := exitCode(ctx.Err(), true); code != exitInterrupted {
		t.Errorf("an interrupt: exit code %d", code)
	}
}

func TestPushIsUsedWrongly(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"push", dir}, "give a folder and a place in a store"},
		{[]string{"push", dir, "/srv/fleet"}, "reads folders and s3://BUCKET/PREFIX"},
		{[]string{"push", filepath.Join(dir, "none"), "s3://bucket/fleet"}, "no such folder"},
		{[]string{"push", dir, "s3://bucket/fleet", "--every", "1ms"}, "--every"},
	} {
		if _, err := command(t.Context(), c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.args, err)
		}
	}
}

// Joined files give the same report, whether the generator or join made them, and also where what copies files brings
// them again.
func TestJoinAndReport(t *testing.T) {
	plain, joined := filepath.Join(t.TempDir(), "plain"), filepath.Join(t.TempDir(), "joined")
	for _, args := range [][]string{{"--out", plain}, {"--out", joined, "--joined"}} {
		if _, err := command(t.Context(),
			append([]string{"generate", "--hosts", "4", "--containers", "40", "--for", "2h"}, args...)...); err != nil {
			t.Fatal(err)
		}
	}
	report := func(dir string) string {
		out, err := command(t.Context(), "report", dir, "--json")
		if err != nil {
			t.Fatal(err)
		}
		head, _, _ := strings.Cut(out, `"input"`) // how many files there are differs
		return head
	}
	kept := filepath.Join(t.TempDir(), "kept")
	if err := os.CopyFS(kept, os.DirFS(filepath.Join(plain, "cluster=generated"))); err != nil {
		t.Fatal(err)
	}
	want := report(plain)
	if got := report(joined); got != want {
		t.Errorf("generated:\n%s\nwant\n%s", got, want)
	}
	out, err := command(t.Context(), "join", plain, "--after", "0s")
	if err != nil || out != "2 hours: 8 files, now 2\n" {
		t.Errorf("%q, %v", out, err)
	}
	if got := report(plain); got != want {
		t.Errorf("joined:\n%s\nwant\n%s", got, want)
	}
	for range 2 {
		if err := os.CopyFS(filepath.Join(plain, "cluster=generated"), os.DirFS(kept)); err != nil {
			t.Fatal(err)
		}
		if got := report(plain); got != want {
			t.Errorf("copied again:\n%s\nwant\n%s", got, want)
		}
		out, err := command(t.Context(), "join", plain, "--after", "0s")
		if err != nil || out != "0 hours: 0 files, now 0; 8 files had been joined before and came again: removed\n" {
			t.Errorf("%q, %v", out, err)
		}
		if got := report(plain); got != want {
			t.Errorf("joined again:\n%s\nwant\n%s", got, want)
		}
	}
	for _, args := range [][]string{{"join"}, {"join", "s3://bucket/fleet"}, {"join", plain, "--after", "-1s"},
		{"join", filepath.Join(plain, "none")}} {
		if _, err := command(t.Context(), args...); err == nil {
			t.Errorf("%q succeeds", args)
		}
	}
}
