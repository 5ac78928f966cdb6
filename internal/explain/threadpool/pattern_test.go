package threadpool

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// drawPattern is a pattern, its meaning as a regular expression, and a name of it.
func drawPattern(t *rapid.T) (pattern, *regexp.Regexp, string) {
	var text, re, name strings.Builder
	re.WriteString(`(?s-i)\A`)
	for range rapid.IntRange(1, 5).Draw(t, "parts") {
		word := rapid.StringMatching(`[ab\-#.\[ ]{1,8}`).Draw(t, "word")
		text.WriteString(word)
		re.WriteString(regexp.QuoteMeta(word))
		name.WriteString(word)
		switch rapid.SampledFrom([]string{"n", "s", ""}).Draw(t, "gap") {
		case "n":
			text.WriteString("{n}")
			re.WriteString(`[0-9]+`)
			name.WriteString(strconv.Itoa(rapid.IntRange(0, 9999).Draw(t, "number")))
		case "s":
			text.WriteString("{s}")
			re.WriteString(`.+`)
			name.WriteString(rapid.StringMatching(`[ab0-9\-]{1,6}`).Draw(t, "text"))
		}
	}
	re.WriteString(`\z`)
	p, err := parsePattern(text.String())
	if err != nil {
		t.Fatalf("%q: %v", text.String(), err)
	}
	return p, regexp.MustCompile(re.String()), name.String()
}

// TestPatternIsARegularExpression: whole names match as the expression does; names of a pattern match however they are
// cut, unless too little of them is left.
func TestPatternIsARegularExpression(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, re, name := drawPattern(t)
		other := rapid.StringMatching(`[ab0-9\-#. ]{0,14}`).Draw(t, "other") // shorter than a cut name
		if _, got := p.match(other); got != re.MatchString(other) {
			t.Fatalf("%q and %q: %v", p.text, other, got)
		}
		if n, ok := p.match(name); !ok || n < 1 {
			t.Fatalf("%q and its %q: %d, %v", p.text, name, n, ok)
		}
		first, middle := Shorten(name)
		if len(first) > CommBytes || len(middle) > CommBytes {
			t.Fatalf("%q: %q, %q", name, first, middle)
		}
		if p.open {
			return
		}
		if _, ok := p.match(first); !ok {
			t.Fatalf("%q and %q, cut from %q", p.text, first, name)
		}
		if _, ok := p.match(middle); !ok {
			t.Fatalf("%q and %q, shortened from %q", p.text, middle, name)
		}
	})
}

// TestRowsByNamesOfTheirPatterns makes names of the table's own patterns, and looks up what a thread of that name has for
// a comm.
func TestRowsByNamesOfTheirPatterns(t *testing.T) {
	rows := knownOnce().allRows()
	rapid.Check(t, func(t *rapid.T) {
		r := rows[rapid.IntRange(0, len(rows)-1).Draw(t, "row")]
		p := r.forms[rapid.IntRange(0, len(r.forms)-1).Draw(t, "name")]
		if p.program {
			return
		}
		most := 2000
		if p.open {
			most = 999 // of longer ones too little of the name is left
		}
		number := strconv.Itoa(rapid.IntRange(0, most).Draw(t, "number"))
		name := strings.NewReplacer("{n}", number, "{s}", rapid.StringMatching(`[a-z]{1,4}`).Draw(t, "text")).Replace(p.text)
		first, middle := Shorten(name)
		comms := []string{name, first}
		if r.Runtime == "jvm" {
			comms = append(comms, middle)
		}
		for _, comm := range comms {
			if _, ok := p.match(comm); !ok {
				t.Fatalf("%s: %q of %q", r.Key, comm, name)
			}
		}
		// Threads of one pool get one pool name. (Jetty's first number is a hash, which has more digits than these.)
		if strings.HasPrefix(p.text, "qtp") {
			return
		}
		again := strings.NewReplacer("{n}", "7", "{s}", "x").Replace(p.text)
		if !strings.Contains(p.text, "{s}") && len(name) < CommBytes && len(again) < CommBytes && Fold(name) != Fold(again) {
			t.Fatalf("%q is in %q, %q in %q", name, Fold(name), again, Fold(again))
		}
	})
}

func TestShortenedNeedsLongNames(t *testing.T) {
	p, err := parsePattern("G1 Main Marker")
	if err != nil {
		t.Fatal(err)
	}
	for _, comm := range []string{"G1 Main..Marker", "G1 Main Marker ", "G1 Main Marke", ""} {
		if _, ok := p.match(comm); ok {
			t.Errorf("%q", comm)
		}
	}
}

func FuzzMatch(f *testing.F) {
	for _, comm := range []string{"elastic..][T#3]", "nioEventLoopGro", "aaaaaaa..aaaaaa", "\xff\xfe", "sys-pekko.actor"} {
		f.Add(comm)
	}
	f.Fuzz(func(t *testing.T, comm string) {
		for _, r := range knownOnce().Match(comm, &Process{Comm: comm, Exe: "/x/" + comm, Libraries: []string{comm}}) {
			if r.Key == "" || r.Because == "" {
				t.Fatalf("%q: %+v", comm, r)
			}
		}
	})
}
