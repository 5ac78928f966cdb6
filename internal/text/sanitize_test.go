package text

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestSanitize(t *testing.T) {
	for _, c := range []struct {
		name string
		max  int
		want string
	}{
		{"web-1", 0, "web-1"},
		{"", 0, ""},
		{"a b", 0, "a b"},
		{"a\nb\tc", 0, `a\nb\tc`},
		{"\x1b[2J\x07\x00\x7f", 0, `\x1b[2J\x07\x00\x7f`},
		{"\xff\xfe", 0, `\xff\xfe`},
		{"right\u202eleft", 0, `right\u202eleft`},
		{"zero\u200bwidth\ufeff", 0, `zero\u200bwidth\ufeff`},
		{"nbsp\u00a0x\u0085", 0, `nbsp\xa0x\x85`},
		{"tag\U000e0041", 0, `tag\U000e0041`},
		{"café", 0, "café"},
		{"abcdef", 6, "abcdef"},
		{"abcdefg", 6, "abcde…"},
		{"äöüäöüä", 6, "äöüäö…"},
		{"abcde\n", 6, "abcde…"},
		{"abcd\n", 6, `abcd\n`},
	} {
		if got := Sanitize(c.name, c.max); got != c.want {
			t.Errorf("%q at %d: %q, want %q", c.name, c.max, got, c.want)
		}
	}
	if got := Sanitize(strings.Repeat("x", 10000), 0); utf8.RuneCountInString(got) != MaxName {
		t.Errorf("%d runes", utf8.RuneCountInString(got))
	}
}

func FuzzSanitize(f *testing.F) {
	f.Add("a\n\x1b\xff\u202e", 5)
	f.Add("plain", 0)
	f.Fuzz(func(t *testing.T, name string, max int) {
		if max > 1<<16 {
			return
		}
		got := Sanitize(name, max)
		if max < 1 {
			max = MaxName
		}
		if n := utf8.RuneCountInString(got); n > max {
			t.Fatalf("%q at %d: %d runes", name, max, n)
		}
		for _, r := range got {
			if r == utf8.RuneError && !strings.ContainsRune(name, r) || r != ' ' && (!unicode.IsGraphic(r) || unicode.IsSpace(r)) {
				t.Fatalf("%q: %q has %U", name, got, r)
			}
		}
		if name != "" && got == "" {
			t.Fatalf("%q: nothing left", name)
		}
	})
}
