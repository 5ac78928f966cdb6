package cpio

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

type item struct {
	name         string
	mode         uint32
	major, minor uint32
	data         string
}

// unpack reads an archive strictly, as the kernel's init/initramfs.c does.
func unpack(t interface{ Fatalf(string, ...any) }, archive []byte) []item {
	var items []item
	at := 0
	take := func(n int) []byte {
		if at+n > len(archive) {
			t.Fatalf("archive ends at %d, wanted %d more bytes from %d", len(archive), n, at)
		}
		at += n
		return archive[at-n : at]
	}
	align := func() {
		for at%4 != 0 {
			if b := take(1); b[0] != 0 {
				t.Fatalf("padding before %d is %#x", at, b[0])
			}
		}
	}
	for {
		h := string(take(110))
		if h[:6] != "070701" {
			t.Fatalf("magic %q", h[:6])
		}
		field := func(i int) uint32 {
			v, err := strconv.ParseUint(h[6+8*i:14+8*i], 16, 32)
			if err != nil {
				t.Fatalf("header field %d: %v", i, err)
			}
			return uint32(v)
		}
		name := string(take(int(field(11))))
		align()
		it := item{name: strings.TrimSuffix(name, "\x00"), mode: field(1), major: field(9), minor: field(10)}
		it.data = string(take(int(field(6))))
		align()
		if it.name == "TRAILER!!!" {
			if at != len(archive) {
				t.Fatalf("%d bytes after the trailer", len(archive)-at)
			}
			return items
		}
		items = append(items, it)
	}
}

func TestWriter(t *testing.T) {
	host := t.TempDir()
	if err := os.MkdirAll(filepath.Join(host, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(host, "sub/tool"), []byte("#!"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("sub/tool", filepath.Join(host, "alias")); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := NewWriter(&out)
	for _, err := range []error{
		w.CharDevice("/dev/console", 0o600, 5, 1),
		w.File("a/b/c.txt", 0o644, []byte("hello")),
		w.Dir("a/b"),
		w.HostTree("/src", host),
		w.HostFile("tool", filepath.Join(host, "alias")),
		w.Close(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := []item{
		{name: "dev", mode: 0o040755}, {name: "dev/console", mode: 0o020600, major: 5, minor: 1},
		{name: "a", mode: 0o040755}, {name: "a/b", mode: 0o040755}, {name: "a/b/c.txt", mode: 0o100644, data: "hello"},
		{name: "src", mode: 0o040755}, {name: "src/alias", mode: 0o120777, data: "sub/tool"},
		{name: "src/sub", mode: 0o040755}, {name: "src/sub/tool", mode: 0o100755, data: "#!"},
		{name: "tool", mode: 0o100755, data: "#!"},
	}
	if got := unpack(t, out.Bytes()); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestWriterRefuses(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out)
	if err := w.File("x", 0o644, nil); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"twice":  w.File("/x", 0o644, nil),
		"NUL":    w.File("a\x00b", 0o644, nil),
		"a name": w.File("/", 0o644, nil),
		"4 GiB":  w.raw("big", typeRegular, 0, 0, 1<<32, nil),
		"0 of 3": w.entry("short", typeRegular, 0, 0, 3, strings.NewReader("")),
		"not a":  w.HostFile("dir", t.TempDir()),
	} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("want an error with %q, got %v", name, err)
		}
	}
	if err := w.HostFile("none", filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestWriterProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		files := rapid.MapOf(rapid.StringMatching(`[a-z]{1,9}(\.[a-z]{1,4})?`), rapid.String()).Draw(t, "files")
		var out bytes.Buffer
		w := NewWriter(&out)
		for name, data := range files {
			if err := w.File(name, 0o640, []byte(data)); err != nil {
				t.Fatalf("%v", err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatalf("%v", err)
		}
		got := map[string]string{}
		for _, it := range unpack(t, out.Bytes()) {
			got[it.name] = it.data
		}
		if len(got) != len(files) {
			t.Fatalf("%d entries, want %d", len(got), len(files))
		}
		for name, data := range files {
			if got[name] != data {
				t.Fatalf("%s: got %q, want %q", name, got[name], data)
			}
		}
	})
}
