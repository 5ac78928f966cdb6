package objectstore

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// keep writes files below a folder.
func keep(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// pushed pushes, and wants so many files sent.
func pushed(t *testing.T, p *Push, files, sent int) {
	t.Helper()
	done, err := p.Do(t.Context())
	if err != nil || done.Files != files || done.Sent != sent || len(done.Failed) != 0 {
		t.Fatalf("%+v, %v; want %d of %d files sent", done, err, sent, files)
	}
}

// held are the objects below f/, by key.
func held(t *testing.T, env map[string]string) map[string]string {
	t.Helper()
	f, _, err := fetched(t, opened(t, "s3://rows/f", env), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, file := range f.Files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimPrefix(f.Names[file], "s3://rows/")] = string(content)
	}
	return all
}

// Files go once, and again where they changed; another process finds what is there. What is removed here stays there.
func TestPush(t *testing.T) {
	var puts atomic.Int64
	env := served(t, map[string]string{"f/other.parquet": "theirs"}, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut {
			puts.Add(1)
		}
		return true
	})
	dir := t.TempDir()
	keep(t, dir, map[string]string{"cluster=eu 1/date=2026-11-25/hour=12/n1.parquet": "one",
		"cluster=eu 1/date=2026-11-25/hour=13/n1.parquet": "two", "n1.parquet.damaged": "no",
		".renameio-TempFile1": "no", "later.parquet": "three"})
	p := &Push{Store: opened(t, "s3://rows/f", env), Dir: dir}
	pushed(t, p, 3, 3)
	pushed(t, p, 3, 0)
	keep(t, dir, map[string]string{"cluster=eu 1/date=2026-11-25/hour=13/n1.parquet": "two, and more"})
	pushed(t, p, 3, 1)
	pushed(t, &Push{Store: opened(t, "s3://rows/f", env), Dir: dir}, 3, 0)
	if err := os.Remove(filepath.Join(dir, "later.parquet")); err != nil {
		t.Fatal(err)
	}
	pushed(t, p, 2, 0)
	want := map[string]string{"f/other.parquet": "theirs", "f/cluster=eu 1/date=2026-11-25/hour=12/n1.parquet": "one",
		"f/cluster=eu 1/date=2026-11-25/hour=13/n1.parquet": "two, and more", "f/later.parquet": "three"}
	got := held(t, env)
	for key, content := range want {
		if got[key] != content {
			t.Errorf("%s: %q, want %q", key, got[key], content)
		}
	}
	if len(got) != len(want) || puts.Load() != 4 {
		t.Errorf("%d objects, %d transfers: %v", len(got), puts.Load(), got)
	}
}

// Who may only write pushes all the same. A transfer that is cut off begins anew. What is refused ends the call with
// the store's reason.
func TestPushIsRefused(t *testing.T) {
	var cut atomic.Bool
	var deny atomic.Value
	deny.Store("")
	env := served(t, nil, func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.Method == http.MethodHead:
			w.WriteHeader(http.StatusForbidden)
		case r.Method == http.MethodPut && cut.CompareAndSwap(true, false):
			panic(http.ErrAbortHandler)
		case r.Method == http.MethodPut && deny.Load() != "":
			refuse(w, http.StatusForbidden, deny.Load().(string))
		default:
			return true
		}
		return false
	})
	dir := t.TempDir()
	keep(t, dir, map[string]string{"n1.parquet": "one"})
	cut.Store(true)
	p := &Push{Store: opened(t, "s3://rows/f", env), Dir: dir}
	pushed(t, p, 1, 1)
	if cut.Load() || held(t, env)["f/n1.parquet"] != "one" {
		t.Error("nothing was cut off, or it did not come")
	}
	keep(t, dir, map[string]string{"n1.parquet": "one more"})
	deny.Store("AccessDenied")
	if done, err := p.Do(t.Context()); err == nil || !strings.Contains(err.Error(), "s3:PutObject") || done.Sent != 0 {
		t.Errorf("%+v, %v", done, err)
	}
	deny.Store("")
	pushed(t, p, 1, 1) // and then it goes
	if _, err := (&Push{Store: opened(t, "s3://nowhere/f", env), Dir: dir}).Do(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "no such bucket") {
		t.Error(err)
	}
	if _, err := (&Push{Store: p.Store, Dir: filepath.Join(dir, "none")}).Do(t.Context()); err == nil {
		t.Error("a folder that is not there")
	}
}

// A file that is gone or unsound alone is told, and the others go.
func TestPushOfOneFails(t *testing.T) {
	env := served(t, nil, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "long") {
			refuse(w, http.StatusBadRequest, "KeyTooLongError")
			return false
		}
		return true
	})
	dir := t.TempDir()
	keep(t, dir, map[string]string{"a.parquet": "a", "empty.parquet": "", "long.parquet": "b", "z.parquet": "z"})
	if err := os.Symlink("a.parquet", filepath.Join(dir, "link.parquet")); err != nil {
		t.Fatal(err)
	}
	done, err := (&Push{Store: opened(t, "s3://rows/f", env), Dir: dir}).Do(t.Context())
	if err != nil || done.Files != 4 || done.Sent != 2 ||
		!slices.Equal(done.Failed, []Left{{"empty.parquet", "it is empty"},
			{"long.parquet", "the store refuses it: KeyTooLongError: it says\x20no"}}) {
		t.Errorf("%+v, %v", done, err)
	}
}

// Where a store's entity tag is no sum, as with keys of its own, what is there is known by its metadata, and by no clock: an older
// file of the same size is not taken for it.
func TestPushWithoutSums(t *testing.T) {
	var puts atomic.Int64
	var sum atomic.Value
	sum.Store("")
	env := served(t, nil, func(w http.ResponseWriter, r *http.Request) bool {
		switch r.Method {
		case http.MethodPut:
			puts.Add(1)
			sum.Store(r.Header.Get("X-Amz-Meta-" + sumKey))
		case http.MethodHead:
			w.Header().Set("Content-Length", "3")
			w.Header().Set("ETag", `"of a key"`)
			w.Header().Set("Last-Modified", "Wed, 25 Nov 2199 12:00:00 GMT") // its clock is ahead
			w.Header().Set("X-Amz-Meta-"+sumKey, sum.Load().(string))
			return false
		}
		return true
	})
	dir := t.TempDir()
	p := &Push{Store: opened(t, "s3://rows/f", env), Dir: dir}
	for i, content := range []string{"one", "two"} {
		keep(t, dir, map[string]string{"n1.parquet": content})
		pushed(t, p, 1, 1)
		pushed(t, &Push{Store: p.Store, Dir: dir}, 1, 0) // another process
		if held(t, env)["f/n1.parquet"] != content || puts.Load() != int64(i+1) {
			t.Errorf("%d transfers: %q", puts.Load(), held(t, env))
		}
	}
}
