package text

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestWidth(t *testing.T) {
	for s, want := range map[string]int{"": 0, "abc": 3, "\x1b[31mred\x1b[0m": 3, "▁█…": 3} {
		if got := Width(s); got != want {
			t.Errorf("%q: %d, want %d", s, got, want)
		}
	}
}

func TestFill(t *testing.T) {
	for _, c := range []struct {
		in      string
		columns int
		want    []string
	}{
		{"", 10, []string{""}},
		{"  one   two\nthree ", 7, []string{"one two", "three"}},
		{"a-word-that-is-too-long b", 5, []string{"a-word-that-is-too-long", "b"}},
		{"\x1b[1mbold\x1b[0m face", 9, []string{"\x1b[1mbold\x1b[0m face"}},
	} {
		if d := cmp.Diff(c.want, Fill(c.in, c.columns)); d != "" {
			t.Errorf("%q at %d: %s", c.in, c.columns, d)
		}
	}
}

// Fill loses no word, and only a word that is wider than a line makes one too wide.
func TestFillKeepsWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, columns := rapid.String().Draw(t, "text"), rapid.IntRange(1, 40).Draw(t, "columns")
		lines := Fill(s, columns)
		if strings.Join(strings.Fields(s), " ") != strings.Join(lines, " ") {
			t.Fatalf("%q became %q", s, lines)
		}
		for _, line := range lines {
			if Width(line) > columns && len(strings.Fields(line)) > 1 {
				t.Fatalf("%q is wider than %d", line, columns)
			}
		}
	})
}

func TestCut(t *testing.T) {
	for got, want := range map[string]string{
		Cut("0-3,8", 5, ".."): "0-3,8", Cut("0-3,8,10", 5, ".."): "0-3..", Cut("äöüß", 3, "…"): "äö…", Cut("ab", 0, "…"): "…",
		CutFront("/a/b/c", 6, "…"): "/a/b/c", CutFront("/a/b/c", 4, "…"): "…b/c", CutFront("ab", 0, "…"): "…",
		Pad("ab", 4): "ab  ", Pad("abc", 2): "abc", Either(true, "a", "b"): "a", Either(false, "a", "b"): "b",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestShown(t *testing.T) {
	if got := Shown("a\x1b[2J\n"); got != `a\x1b[2J\n` {
		t.Errorf("%q", got)
	}
	if got := Width(Shown(strings.Repeat("x", 2*maxShown))); got != maxShown {
		t.Errorf("%d columns", got)
	}
	if got := Quoted(""); got != `""` {
		t.Errorf("%q", got)
	}
}
