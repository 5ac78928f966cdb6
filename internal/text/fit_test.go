package text

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestFit(t *testing.T) {
	for of, want := range map[string]string{
		"short\n": "short\n",
		"the quota was spent early\n\nand more\n": "the quota was spent\n  early\n\nand more\n",
		"note     the quota was early\n":          "note     the quota\n         was early\n",
		"  3. the quota was spent":                "  3. the quota was\n     spent",
		"  one two three four five":               "  one two three four\n    five",
		"\x1b[1mone two three four five\x1b[0m":   "\x1b[1mone two three four\n  five\x1b[0m",
		"/a/very/long/path/of/a/cgroup is gone":   "/a/very/long/path/of/a/cgroup\n  is gone",
	} {
		if got := Fit(of, 20); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

// No line is wider than the columns, unless a single word is; and no word is lost.
func TestFitAlwaysFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`( {0,6}[a-z…]{1,9}(  ?[a-z0-9.]{1,9}){0,20}\n){1,4}`).Draw(t, "text")
		columns := rapid.IntRange(24, 60).Draw(t, "columns")
		got := Fit(s, columns)
		for line := range strings.Lines(got) {
			if Width(strings.TrimRight(line, " \n")) > columns {
				t.Fatalf("%q is wider than %d", line, columns)
			}
		}
		if strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(s), " ") {
			t.Fatalf("%q became %q", s, got)
		}
	})
}
