package objectstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// served is a store with a bucket "rows" that holds objects. before sees each request; false: it has answered. It
// returns the environment that leads there.
func served(t *testing.T, objects map[string]string, before func(w http.ResponseWriter, r *http.Request) bool) map[string]string {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("rows"); err != nil {
		t.Fatal(err)
	}
	for key, content := range objects {
		if _, err := backend.PutObject("rows", key, map[string]string{"Last-Modified": "Wed, 25 Nov 2026 12:00:00 GMT"},
			bytes.NewReader([]byte(content)), int64(len(content)), nil); err != nil {
			t.Fatal(err)
		}
	}
	handler := gofakes3.New(backend).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before == nil || before(w, r) {
			handler.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return map[string]string{"AWS_ENDPOINT_URL": server.URL, "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
}

// opened is a place in that store.
func opened(t *testing.T, name string, env map[string]string) *Store {
	t.Helper()
	place, err := Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(place, func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fetched lists and fetches all.
func fetched(t *testing.T, s *Store, room int64) (Fetched, string, error) {
	t.Helper()
	l, err := s.List(t.Context(), nil)
	if err != nil {
		return Fetched{}, "", err
	}
	dir := t.TempDir()
	f, err := s.Fetch(t.Context(), l.Objects, Into{Dir: dir, Room: room})
	return f, dir, err
}

// refuse answers with an error of S3.
func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>it says\x20no</Message></Error>", code)
}

// hostile are keys that are no names for a disk. A prefix is a folder.
var hostile = []string{"f/../../../etc/x.parquet", "f//a.parquet", "f/a b+c%2Fd&e=?.parquet", "f/new\nline.parquet",
	"f/\u202eltr.parquet", "f/.parquet", "f/*[x]'\"<>.parquet", "f/-rf.parquet"}

// Each object comes once, whole, below a name of ours, in the order of the keys; listings have pages of 1,000.
func TestFetch(t *testing.T) {
	objects := map[string]string{"f/x.txt": "no", "f/b.parquet.damaged": "no", "f-old/a.parquet": "no",
		"a.parquet": "no", "f/folder.parquet/": ""}
	want := slices.Clone(hostile)
	for i := range 1200 {
		want = append(want, fmt.Sprintf("f/cluster=eu1/n%04d.parquet", i))
	}
	for _, key := range want {
		objects[key] = "content of " + key
	}
	slices.Sort(want)
	var lists, told atomic.Int64
	env := served(t, objects, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Has("list-type") {
			lists.Add(1)
		}
		return true
	})
	s := opened(t, "s3://rows/f", env)
	s.line = 500
	var seen []int
	l, err := s.List(t.Context(), func(keys int) { seen = append(seen, keys) })
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(seen, []int{500, 1000}) {
		t.Errorf("told of %d keys", seen)
	}
	if lists.Load() < 2 || len(l.Objects) != len(want) || !slices.Equal(l.Damaged, []string{"s3://rows/f/b.parquet.damaged"}) {
		t.Fatalf("%d requests, %d objects of %d, %q", lists.Load(), len(l.Objects), len(want), l.Damaged)
	}
	dir := t.TempDir()
	f, err := s.Fetch(t.Context(), l.Objects, Into{Dir: dir, Room: 1 << 20, Progress: func(done, total int) {
		if told.Add(1) != int64(done) || total != len(want) {
			t.Errorf("told of %d of %d", done, total)
		}
	}})
	if err != nil || len(f.Left) != 0 || len(f.Files) != len(want) || told.Load() != int64(len(want)) {
		t.Fatalf("%d files, %+v, told %d times, %v", len(f.Files), f.Left, told.Load(), err)
	}
	for i, file := range f.Files {
		content, err := os.ReadFile(file)
		if err != nil || string(content) != "content of "+want[i] || f.Names[file] != "s3://rows/"+want[i] || filepath.Dir(file) != dir {
			t.Errorf("%s has %q, not of %q: %v", file, content, want[i], err)
		}
	}
	if there, err := os.ReadDir(dir); err != nil || len(there) != len(want) {
		t.Errorf("%d files in the folder, %v", len(there), err)
	}
}

// An object that is gone, or that is refused alone, is left out and told.
func TestLeftOut(t *testing.T) {
	env := served(t, map[string]string{"a.parquet": "a", "b.parquet": "b", "c.parquet": "c"},
		func(w http.ResponseWriter, r *http.Request) bool {
			switch r.URL.Path {
			case "/rows/a.parquet":
				refuse(w, http.StatusNotFound, "NoSuchKey")
			case "/rows/c.parquet":
				refuse(w, http.StatusForbidden, "InvalidObjectState")
			default:
				return true
			}
			return false
		})
	f, dir, err := fetched(t, opened(t, "s3://rows", env), 1<<20)
	if err != nil || len(f.Files) != 1 || f.Names[f.Files[0]] != "s3://rows/b.parquet" {
		t.Fatalf("%+v, %v", f, err)
	}
	if len(f.Left) != 2 || f.Left[0] != (Left{"s3://rows/a.parquet", "it is gone since it was listed"}) ||
		f.Left[1].Why != "the store refuses it: InvalidObjectState: it says no" {
		t.Errorf("%+v", f.Left)
	}
	if there, err := os.ReadDir(dir); err != nil || len(there) != 1 {
		t.Errorf("%v, %v", there, err)
	}
}

// cutOff answers with less than it announces.
func cutOff(w http.ResponseWriter, content string) {
	w.Header().Set("Content-Length", fmt.Sprint(len(content)))
	w.Header().Set("ETag", `"x"`)
	w.Header().Set("Last-Modified", "Wed, 25 Nov 2026 12:00:00 GMT")
	_, _ = io.WriteString(w, content[:len(content)/2])
	panic(http.ErrAbortHandler)
}

// A transfer that is cut off begins anew. Where it always is, the fetch ends with the cause and leaves no half of a
// file.
func TestCutOff(t *testing.T) {
	content := strings.Repeat("row", 10_000)
	for _, c := range []struct{ times, most int64 }{{2, 3}, {1 << 30, 3}} {
		var gets atomic.Int64
		env := served(t, map[string]string{"a.parquet": content}, func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/rows/a.parquet" && gets.Add(1) <= c.times {
				cutOff(w, content)
			}
			return true
		})
		f, dir, err := fetched(t, opened(t, "s3://rows", env), int64(len(content)))
		there, _ := os.ReadDir(dir)
		if gets.Load() != c.most {
			t.Errorf("%d transfers", gets.Load())
		}
		if c.times < c.most {
			if err != nil || len(f.Files) != 1 {
				t.Fatalf("%+v, %v", f, err)
			}
			if got, err := os.ReadFile(f.Files[0]); err != nil || string(got) != content {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			continue
		}
		if !errors.Is(err, io.ErrUnexpectedEOF) ||
			!strings.Contains(err.Error(), "s3://rows/a.parquet: no answer from http://127.0.0.1") || len(there) != 0 {
			t.Errorf("%v; left %v", err, there)
		}
	}
}

// A transfer that stands still ends.
func TestStalled(t *testing.T) {
	env := served(t, map[string]string{"a.parquet": "content"}, func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/rows/a.parquet" {
			<-r.Context().Done()
			return false
		}
		return true
	})
	s := opened(t, "s3://rows", env)
	l, err := s.List(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s.patience = 10 * time.Millisecond
	if _, err = s.Fetch(t.Context(), l.Objects, Into{Dir: t.TempDir(), Room: 100}); err == nil ||
		!strings.Contains(err.Error(), "nothing came for") {
		t.Errorf("%v", err)
	}
}

// An interrupt ends the listing and the fetch, and is no error of the store's.
func TestInterrupted(t *testing.T) {
	for _, at := range []string{"/rows/", "/rows/a.parquet"} {
		ctx, cancel := context.WithCancel(t.Context())
		var once sync.Once
		env := served(t, map[string]string{"a.parquet": "content"}, func(_ http.ResponseWriter, r *http.Request) bool {
			if strings.TrimSuffix(r.URL.Path, "/") == strings.TrimSuffix(at, "/") {
				once.Do(cancel)
				<-r.Context().Done()
				return false
			}
			return true
		})
		s := opened(t, "s3://rows", env)
		l, err := s.List(ctx, nil)
		if err == nil {
			_, err = s.Fetch(ctx, l.Objects, Into{Dir: t.TempDir(), Room: 100})
		}
		if err != context.Canceled {
			t.Errorf("%s: %v", at, err)
		}
		cancel()
	}
}

// What is too much is told before anything is fetched; what has grown since the listing ends it.
func TestRoom(t *testing.T) {
	var gets atomic.Int64
	objects := map[string]string{"a.parquet": strings.Repeat("a", 3<<20), "b.parquet": strings.Repeat("b", 3<<20)}
	env := served(t, objects, func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, ".parquet") {
			gets.Add(1)
		}
		return true
	})
	s := opened(t, "s3://rows", env)
	_, dir, err := fetched(t, s, 5<<20)
	if full := new(NoRoom); !errors.As(err, &full) || !strings.Contains(err.Error(), "s3://rows/: 2 files of 6 MiB, "+
		"and there is room for 5 MiB: TMPDIR names another place") || gets.Load() != 0 {
		t.Errorf("%v after %d transfers", err, gets.Load())
	}
	if _, err := s.Fetch(t.Context(), []Object{{"a.parquet", 1 << 62}, {"b.parquet", 1 << 62}, {"c.parquet", 1 << 62}},
		Into{Dir: dir, Room: 4 << 20}); !errors.As(err, new(*NoRoom)) {
		t.Errorf("sizes that nobody can add up: %v", err)
	}
	_, err = s.Fetch(t.Context(), []Object{{"a.parquet", 1}, {"b.parquet", 1}}, Into{Dir: dir, Room: 4 << 20})
	if err == nil || !strings.Contains(err.Error(), "have grown since they were listed, beyond the room of 4 MiB") {
		t.Errorf("%v", err)
	}
	var bytes int64
	there, _ := os.ReadDir(dir)
	for _, e := range there {
		if info, err := e.Info(); err == nil {
			bytes += info.Size()
		}
	}
	if bytes > 4<<20 {
		t.Errorf("%d bytes on the disk", bytes)
	}
	s.most = 1
	if _, err := s.List(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "more than 1 files: give a longer prefix") {
		t.Errorf("%v", err)
	}
}

// Errors name the place, the cause and the way out.
func TestErrors(t *testing.T) {
	denied := func(code string, status int) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool { refuse(w, status, code); return false }
	}
	objects := map[string]string{"a.parquet": "a"}
	nobody := served(t, objects, denied("AccessDenied", http.StatusForbidden))
	delete(nobody, "AWS_ACCESS_KEY_ID")
	delete(nobody, "AWS_SECRET_ACCESS_KEY")
	t.Setenv("HOME", t.TempDir())
	for name, value := range map[string]string{"AWS_SHARED_CREDENTIALS_FILE": "/no/such", "AWS_CONFIG_FILE": "/no/such"} {
		t.Setenv(name, value)
	}
	closed := httptest.NewServer(nil)
	closed.Close()
	unheard := map[string]string{"AWS_ENDPOINT_URL": closed.URL, "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
	noObject := served(t, objects, func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, ".parquet") {
			refuse(w, http.StatusForbidden, "AccessDenied")
			return false
		}
		return true
	})
	for _, c := range []struct {
		from string
		env  map[string]string
		says []string
	}{
		{"s3://other-rows/f", served(t, objects, nil),
			[]string{"s3://other-rows/f/: http://127", `has no such bucket "other-rows": check its name, AWS_REGION and AWS_ENDPOINT_URL`}},
		{"s3://rows", served(t, objects, denied("AccessDenied", 403)),
			[]string{"s3://rows/: ", "denies access (AccessDenied: it says no) to the credentials of AWS_ACCESS_KEY_ID", "s3:ListBucket"}},
		{"s3://rows", served(t, objects, denied("SignatureDoesNotMatch", 403)), []string{"denies access (SignatureDoesNotMatch"}},
		{"s3://rows", nobody, []string{"denies access without credentials", "set AWS_ACCESS_KEY_ID"}},
		{"s3://rows", noObject, []string{"s3://rows/a.parquet: ", "s3:GetObject"}},
		{"s3://rows", served(t, objects, denied("PermanentRedirect", 301)), []string{"name its region in AWS_REGION"}},
		{"s3://rows", unheard, []string{"s3://rows/: no answer from http://127.0.0.1", "connection refused",
			"AWS_ENDPOINT_URL names another"}},
	} {
		_, _, err := fetched(t, opened(t, c.from, c.env), 1<<20)
		for _, want := range c.says {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", c.from, err, want)
			}
		}
	}
}

// What the environment says is checked, and no password is shown.
func TestOpen(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	for _, c := range []struct {
		env  map[string]string
		says string
	}{
		{map[string]string{"AWS_ENDPOINT_URL": "minio:9000"}, "give https://HOST"},
		{map[string]string{"AWS_ENDPOINT_URL_S3": "https://h/path", "AWS_ENDPOINT_URL": "https://h"}, "give https://HOST"},
		{map[string]string{"AWS_ENDPOINT_URL": "https://me:hidden@h"}, "...@h"},
		{map[string]string{"AWS_ACCESS_KEY_ID": "key"}, "set both"},
		{map[string]string{"AWS_EC2_METADATA_DISABLED": "true", "AWS_PROFILE": "none"},
			"AWS_PROFILE is \"none\": there are no credentials"},
	} {
		_, err := Open(Place{"rows", ""}, func(name string) string { return c.env[name] })
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%v: %v", c.env, err)
		}
	}
}

// AWS's shared file of credentials is read.
func TestSharedFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(name, []byte("[default]\naws_access_key_id = filekey\naws_secret_access_key = s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", name)
	t.Setenv("AWS_CONFIG_FILE", "/no/such")
	t.Setenv("AWS_PROFILE", "")
	var signed atomic.Bool
	env := served(t, map[string]string{"a.parquet": "a"}, func(_ http.ResponseWriter, r *http.Request) bool {
		signed.Store(strings.Contains(r.Header.Get("Authorization"), "Credential=filekey/") &&
			strings.Contains(r.Header.Get("Authorization"), "/eu-north-1/s3/"))
		return true
	})
	f, _, err := fetched(t, opened(t, "s3://rows/", map[string]string{"AWS_ENDPOINT_URL": env["AWS_ENDPOINT_URL"],
		"AWS_REGION": "eu-north-1"}), 10)
	if err != nil || len(f.Files) != 1 || !signed.Load() {
		t.Errorf("%+v, %v, signed %v", f, err, signed.Load())
	}
}

// Names of places.
func TestParse(t *testing.T) {
	for name, want := range map[string]Place{"s3://rows": {"rows", ""}, "s3://rows/": {"rows", ""},
		"s3://rows/a/b": {"rows", "a/b/"}, "s3://rows/a/": {"rows", "a/"}, "s3://rows/../x": {"rows", "../x/"}} {
		if got, err := Parse(name); err != nil || got != want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for _, name := range []string{"s3://", "s3:///x", "s3://Rows\x1b/x", "s3://a/\xff", "s3://abc/" +
		strings.Repeat("x", maxPrefix), "gs://rows", "s3a://rows/x", "/srv/fleet"} {
		if got, err := Parse(name); err == nil || strings.ContainsRune(err.Error(), 0x1b) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// Whatever is given, a place is one that its own name leads to again.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"s3://rows/f", "s3://rows", "s3://rows//", "gs://x", "s3://a.b-c/../%2F\n"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		place, err := Parse(name)
		if err != nil {
			return
		}
		if again, err := Parse(place.String()); err != nil || again != place || place.Below != "" && !strings.HasSuffix(place.Below, "/") {
			t.Errorf("%q is %+v, and %+v: %v", name, place, again, err)
		}
	})
}
