package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/unthrottle/unthrottle/internal/text"
)

// part is a stretch of an output that a page shows. What lies between two parts is
// cut out.
type part struct {
	// from matches its first line, to its last; "" is the beginning and the end.
	from, to string
	// most bounds its lines; 0: no bound.
	most int
}

// cutMark stands in a page for what was cut out.
const cutMark = "..."

// cut takes the parts out of an output.
func cut(t *testing.T, lines []paragraph, parts []part) []paragraph {
	t.Helper()
	if len(parts) == 0 {
		return lines
	}
	var shown []paragraph
	next := 0
	for _, p := range parts {
		begin := next + index(lines[next:], p.from, 0)
		if begin < next {
			t.Errorf("no line matches %q in what was printed:\n%s", p.from, strings.Join(texts(lines[next:]), "\n"))
			return nil
		}
		end := begin + index(lines[begin:], p.to, len(lines)-begin-1) + 1
		if end <= begin {
			t.Errorf("no line matches %q in what was printed:\n%s", p.to, strings.Join(texts(lines[begin:]), "\n"))
			return nil
		}
		if p.most > 0 {
			end = min(end, begin+p.most)
		}
		if begin > next {
			shown = append(shown, paragraph{text: cutMark})
		}
		shown, next = append(shown, lines[begin:end]...), end
	}
	if next < len(lines) {
		shown = append(shown, paragraph{text: cutMark})
	}
	return shown
}

// index is that of the first line that matches; without a pattern it is otherwise.
func index(lines []paragraph, pattern string, otherwise int) int {
	if pattern == "" {
		return otherwise
	}
	return slices.IndexFunc(texts(lines), regexp.MustCompile(pattern).MatchString)
}

var (
	tableGap = regexp.MustCompile(`\S\s{2,}\S`)
	listMark = regexp.MustCompile(`^\s*(\d+\. |note |left )|: held CPUs for`)
)

// paragraph is a line of an output, or several into which one was filled.
type paragraph struct {
	text string
	hang string // blanks before each line but the first
}

func texts(paragraphs []paragraph) []string {
	lines := make([]string, 0, len(paragraphs))
	for _, p := range paragraphs {
		lines = append(lines, p.text)
	}
	return lines
}

// unfold joins the lines into which a paragraph was filled at that width: a line goes
// on in the next one if the first word of that did not fit. Width 0: none was filled.
func unfold(lines []string, width int) []paragraph {
	var joined []paragraph
	last := 0 // width of the last line of the paragraph
	for _, line := range lines {
		words := strings.Fields(line)
		goesOn := len(joined) > 0 && len(words) > 0 && width > 0 && last >= width/2 && last <= width && last+1+
			text.Width(words[0]) > width &&
			!tableGap.MatchString(strings.TrimSpace(line)) && !tableGap.MatchString(strings.TrimSpace(joined[len(joined)-1].text)) &&
			!listMark.MatchString(line)
		blanks := line[:len(line)-len(strings.TrimLeft(line, " "))]
		if goesOn {
			joined[len(joined)-1].text += " " + strings.TrimSpace(line)
			joined[len(joined)-1].hang = blanks
		} else {
			joined = append(joined, paragraph{line, blanks + "    "})
		}
		last = text.Width(line)
	}
	return joined
}

// fold fills paragraphs that are wider than the width; 0: none.
func fold(paragraphs []paragraph, width int) []string {
	var folded []string
	for _, p := range paragraphs {
		if width == 0 || text.Width(p.text) <= width || tableGap.MatchString(strings.TrimSpace(p.text)) {
			folded = append(folded, p.text)
			continue
		}
		words := strings.Fields(p.text)
		now := p.text[:strings.Index(p.text, words[0])] + words[0]
		for _, word := range words[1:] {
			if text.Width(now)+1+text.Width(word) > width {
				folded, now = append(folded, now), p.hang+word
			} else {
				now += " " + word
			}
		}
		folded = append(folded, now)
	}
	return folded
}

// drawing matches bars, timelines and their axes.
var drawing = regexp.MustCompile(`[▁-▏░]{2,}|[▁-▏] <?\d|\.{5,}|ms [▁-▏░.]`)

// reductions leave the words of a line.
var reductions = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`\b\d{8}-\d{6}-[0-9a-f]{6}\b`), "X"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC`), "X"},
	{regexp.MustCompile(`"[^"]*"`), "Q"},
	{regexp.MustCompile(`<?\b\d+([-.,:/]\d+)*`), "0"},
	{regexp.MustCompile(`\b0 ?([num]?s|min|h)\b`), "T"},
	{regexp.MustCompile(`\b0 ([A-Za-z]+)s\b`), "0 $1"},
	// A bound and its interval, a median and its spread, a mark of noise, a figure that
	// was not measured: which of them a figure has is the run's.
	{regexp.MustCompile(`\b[0T] to ([0T])\b`), "$1"},
	{regexp.MustCompile(`\b([0T]) \([0T]\)`), "$1"},
	{regexp.MustCompile(` ~ `), " "},
	// Whether the next worst stretch follows the worst one at once.
	{regexp.MustCompile(`, after a gap the next\b`), ""},
	{regexp.MustCompile(`( -)+( |$)`), " 0$2"},
	{regexp.MustCompile(`\s+`), " "},
}

// cellGap parts the cells of a table.
var cellGap = regexp.MustCompile(`\s{2,}`)

// reduce is the shape of a line; "" is none.
func reduce(line string, firstCell bool) string {
	line = strings.TrimSpace(line)
	if drawing.MatchString(line) {
		return ""
	}
	if firstCell {
		line = cellGap.Split(line, 2)[0]
	}
	for _, r := range reductions {
		line = r.pattern.ReplaceAllString(line, r.by)
	}
	line = strings.TrimSpace(line)
	words := strings.Fields(line)
	words = slices.DeleteFunc(words, func(w string) bool { return w == "X" || w == "T" || w == "Q" })
	if !strings.ContainsFunc(strings.Join(words, " "), unicode.IsLetter) {
		return ""
	}
	return line
}

// sentenceEnd is between two sentences of a line.
var sentenceEnd = regexp.MustCompile(`([a-z0-9)]\.) ([A-Z])`)

// slowHost matches what a command says of a step that takes long because the host is busy.
var slowHost = regexp.MustCompile(` goes on, for .* so far`)

// shape is that of an output: its lines, reduced, each run of equal ones once. What
// matches an optional pattern is left out. Cut marks have no shape: whether lines lie
// between two parts may depend on the run.
func shape(lines []paragraph, r row) []string {
	var all []string
	// Short sentences below one another may have been taken for one paragraph.
	sentences := sentenceEnd.ReplaceAllString(strings.Join(texts(lines), "\n"), "$1\n$2")
	for _, line := range strings.Split(sentences, "\n") {
		reduced := reduce(line, r.firstCell)
		optional := func(pattern string) bool { return regexp.MustCompile(pattern).MatchString(reduced) }
		if reduced != "" && !slowHost.MatchString(reduced) && !slices.ContainsFunc(r.optional, optional) {
			all = append(all, reduced)
		}
	}
	if r.anyOrder {
		slices.Sort(all)
	}
	return slices.Compact(all)
}

// differ says in which lines two shapes differ; "": in none.
func differ(page, run []string) string {
	if slices.Equal(page, run) {
		return ""
	}
	var b strings.Builder
	for _, side := range []struct {
		says     string
		all, not []string
	}{{"only in the page", page, run}, {"only printed now", run, page}} {
		for _, line := range side.all {
			if !slices.Contains(side.not, line) {
				b.WriteString("\n  " + side.says + ": " + line)
			}
		}
	}
	if b.Len() == 0 {
		return "\n  the same lines in another order:\n  page: " + strings.Join(page, "\n        ") + "\n  now:  " +
			strings.Join(run, "\n        ")
	}
	return b.String()
}

func TestReduce(t *testing.T) {
	for line, want := range map[string]string{
		"/shop/checkout        0.5  0.50      30/30   479-957ms/s  0-1   self": "/shop/checkout 0 0 0 T/s 0 self",
		"stopped per second  before 443-886 ms, after 0 ms":                    "stopped per second before T, after T",
		"      pin    32       0          -       1.00  10.8   13.9":           "pin 0 0 0 0 0 0",
		"in force as 20261121-092021-2a262b; 'x'":                              "in force as X; 'x'",
		"   818.7 ms ............██▄▂▂█░░░ throttled":                          "",
		"  1118.7 ms ▆": "",
		" mean 0  ███ 72.6 %  ██▊ 71.5 %":      "",
		"use, full is 2; ░ stopped by a quota": "use, full is 0; ░ stopped by a quota",
		"1 CPU and 2 CPUs":                     "0 CPU and 0 CPU",
		"120-140":                              "",
		`1. /a cpuset.cpus: "0-1" -> "0"`:      "0. /a cpuset.cpus: Q -> Q",
		"waiting 1.02 s (0.60 ms, steal 0 us)": "waiting T (T, steal T)",
		"...":                                  "",
		"/shop/mail: stopped 0 ms of each second, now 0 to 3 ms; CPUs used 0.01": "/shop/mail: stopped T of each second, now T; CPUs used 0",
		"held back for 141ms to 282ms of 2.001s":                                 "held back for T of T",
		"raise ~  1.5  1.50   29 of 30  70  10.1  -  0.87 (0.87-0.91)":           "raise 0 0 0 of 0 0 0 0 0",
		"raise    1.5  1.50   29 of 30  70  10.1  99.2  -":                       "raise 0 0 0 of 0 0 0 0 0",
		"http-worker-*  8  802 ms  2  10 ms  107 ms":                             "http-worker-* 0 T 0 T T",
	} {
		if got := reduce(line, false); got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
	if got := reduce("  pin --irqs           yes  it is writable", true); got != "pin --irqs" {
		t.Errorf("first cell %q", got)
	}
}

func TestFoldAndUnfold(t *testing.T) {
	lines := []string{"one two three four five", "  name  value", "  name  other", "", "six"}
	folded := fold(unfold(lines, 0), 14)
	want := []string{"one two three", "    four five", "  name  value", "  name  other", "", "six"}
	if !slices.Equal(folded, want) {
		t.Errorf("folded %q", folded)
	}
	if got := texts(unfold(folded, 14)); !slices.Equal(got, lines) {
		t.Errorf("unfolded %q", got)
	}
}

func TestCut(t *testing.T) {
	lines := strings.Split("a b c d e f", " ")
	for _, c := range []struct {
		parts []part
		want  string
	}{
		{nil, "a b c d e f"},
		{[]part{{to: "b"}}, "a b ..."},
		{[]part{{to: "b"}, {from: "d", most: 2}, {from: "f"}}, "a b ... d e f"},
		{[]part{{from: "e"}}, "... e f"},
	} {
		if got := strings.Join(texts(cut(t, unfold(lines, 0), c.parts)), " "); got != c.want {
			t.Errorf("%v: got %q, want %q", c.parts, got, c.want)
		}
	}
}
