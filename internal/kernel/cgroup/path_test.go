package cgroup

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCheckPath(t *testing.T) {
	for _, path := range []string{"/", "/a", "/a/b", "/a b/\n\x1b", "/\xff\xfe", "/..a/a..", "/...", "/" + strings.Repeat("x", 255)} {
		if err := CheckPath(path); err != nil {
			t.Errorf("%q: %v", path, err)
		}
	}
	for _, path := range []string{"", "a", "a/b", "/a/", "//", "/a//b", "/.", "/..", "/a/../b", "/a/.", "/a\x00"} {
		if err := CheckPath(path); !errors.Is(err, ErrBadPath) {
			t.Errorf("%q: %v, want ErrBadPath", path, err)
		}
	}
}

func TestPathParts(t *testing.T) {
	for _, c := range []struct{ path, parent, base string }{{"/", "/", ""}, {"/a", "/", "a"}, {"/a/b", "/a", "b"}} {
		if Parent(c.path) != c.parent || Base(c.path) != c.base || c.base != "" && Join(c.parent, c.base) != c.path {
			t.Errorf("%q: %q %q", c.path, Parent(c.path), Base(c.path))
		}
	}
	for _, c := range []struct {
		path, scope string
		below       bool
	}{
		{"/a/b", "/a", true}, {"/a", "/a", true}, {"/ab", "/a", false}, {"/a", "/a/b", false}, {"/a", "/", true}, {"/a", "", true},
	} {
		if Below(c.path, c.scope) != c.below {
			t.Errorf("Below(%q, %q) is not %v", c.path, c.scope, c.below)
		}
	}
}

func TestEscapePath(t *testing.T) {
	for path, want := range map[string]string{
		"/plain/ä b\n":              "/plain/ä b\n",
		`/dev-disk\x2d1.device`:     `/dev-disk\x2d1.device`,
		"/a\xffb":                   `/a\xffb`,
		`/a\xff`:                    `/a\x5cxff`,
		`/a\x5c`:                    `/a\x5cx5c`,
		"/\\\xff":                   `/\\xff`,
		`/tail\`:                    `/tail\`,
		"/\xe2\x82":                 `/\xe2\x82`,
		"/real \ufffd is no escape": "/real \ufffd is no escape",
	} {
		if got := EscapePath(path); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
}

func FuzzEscapePath(f *testing.F) {
	for _, path := range []string{"", "/a", "/a\xff", `/a\xff\x5c\x2d`, "/\\\\x5\xc3", `\x5cx5c`, "/\xf0\x9f\x92"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		text := EscapePath(path)
		if !utf8.ValidString(text) {
			t.Fatalf("%q: %q is not UTF-8", path, text)
		}
		if back := UnescapePath(text); back != path {
			t.Fatalf("%q: %q comes back as %q", path, text, back)
		}
		encoded, err := json.Marshal(text)
		var decoded string
		if err != nil || json.Unmarshal(encoded, &decoded) != nil || UnescapePath(decoded) != path {
			t.Fatalf("%q does not survive JSON: %s", path, encoded)
		}
	})
}
