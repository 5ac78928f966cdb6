package cgroup

import (
	"errors"
	"strings"
	"testing"
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
