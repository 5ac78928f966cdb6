package docs

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/cure/remedy"
)

// Each list of remedies in the pages has all of the table, in its order.
func TestRemediesAreInTheirLists(t *testing.T) {
	var names []string
	for _, kind := range remedy.Kinds() {
		names = append(names, string(kind))
	}
	all := strings.Join(names, ", ")
	for page, list := range map[string]string{
		"README.md":                 "[" + all + "](docs/reference/remedies.md)",
		"docs/architecture.md":      "facts → plan: " + all + ", system;",
		"docs/concepts/glossary.md": "| remedy * | " + all + ":",
		"docs/reference/apply.md":   "| `--remedy " + strings.Join(names, `\|`) + "` |",
	} {
		if !strings.Contains(read(t, page), list) {
			t.Errorf("%s does not have %q", page, list)
		}
	}
	for _, page := range []string{"docs/reference/remedies.md", "docs/concepts/remedies.md"} {
		for _, name := range names {
			if !strings.Contains(read(t, page), "\n| `"+name+"` |") {
				t.Errorf("%s has no row that begins with `%s`: say there what it does", page, name)
			}
		}
	}
	_, row, _ := strings.Cut(read(t, "docs/reference/agent.md"), "\n| `remedy` |")
	row, _, _ = strings.Cut(row, "\n")
	for _, name := range names {
		if !strings.Contains(row, "`"+name+"`") {
			t.Errorf("docs/reference/agent.md: the row of the key `remedy` has no `%s`", name)
		}
	}
}

// README counts the causes that explain distinguishes; none is no cause.
func TestNumberOfCauses(t *testing.T) {
	causes := regexp.MustCompile(`Cause = "\w`).FindAllString(sources(t, "internal/explain/diagnose/*.go"), -1)
	if want := "[" + inWords(len(causes)-1) + " causes]"; !strings.Contains(read(t, "README.md"), want) {
		t.Errorf("README.md does not say %s", want)
	}
}

// Each release that changed the rules of bandwidth control has a row, and their number and the newest are right.
func TestReleasesAreInTheirPages(t *testing.T) {
	releases := regexp.MustCompile(`\{Since\w+, (\d+), (\d+), "(.+)"\}`).FindAllStringSubmatch(read(t, "bandwidth/rules.go"), -1)
	if len(releases) < 10 {
		t.Fatalf("%d releases found: mend the pattern of this test", len(releases))
	}
	_, rows, _ := strings.Cut(read(t, "docs/reference/kernels.md"), "\n## How the quota itself changed\n")
	rows, _, _ = strings.Cut(rows, "\n## ")
	for _, r := range releases {
		if row := "\n| " + r[1] + "." + r[2] + " |"; !strings.Contains(rows, row) {
			t.Errorf("docs/reference/kernels.md has no row that begins with %q", row[1:])
		}
	}
	newest := releases[0]
	for _, want := range []string{
		"[" + inWords(len(releases)) + " releases](../../bandwidth/rules.go) from 3.16 to " + newest[1] + "." + newest[2] + " ",
		"to `" + newest[3] + "`, " + newest[1] + "." + newest[2] + ")",
	} {
		if page := strings.Join(strings.Fields(read(t, "docs/reference/simulate.md")), " "); !strings.Contains(page, want) {
			t.Errorf("docs/reference/simulate.md does not say %q", want)
		}
	}
}

// inWords is a number as pages write it.
func inWords(n int) string {
	words := []string{"eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen"}
	if i := n - 8; i >= 0 && i < len(words) {
		return words[i]
	}
	return strconv.Itoa(n)
}

// Each runtime that a container can be of may begin a target, and stands in the pages.
func TestRuntimesAreInTheirPages(t *testing.T) {
	const file = "internal/container/container.go"
	code := read(t, file)
	_, constants, _ := strings.Cut(code, "// Runtimes of a Container")
	constants, _, _ = strings.Cut(constants, "\n)")
	_, prefixes, _ := strings.Cut(code, "runtimePrefixes = []string{")
	prefixes, _, _ = strings.Cut(prefixes, "}")
	mayBegin := strings.Split(prefixes, ", ")
	names := read(t, "internal/container/names/names.go")
	found := regexp.MustCompile(`(?m)^\t(\w+) += (?:"([a-z-]+)"|names\.(\w+))`).FindAllStringSubmatch(constants, -1)
	if len(found) < 10 || len(found) != len(mayBegin) {
		t.Errorf("%s has %d constants of runtimes, and %d in runtimePrefixes", file, len(found), len(mayBegin))
	}
	for _, f := range found {
		if !slices.Contains(mayBegin, f[1]) {
			t.Errorf("%s: no target may begin with %s: it is not in runtimePrefixes", file, f[1])
		}
		name := f[2]
		if value := regexp.MustCompile(`(?m)^\t` + f[3] + ` += "([a-z-]+)"`).FindStringSubmatch(names); f[3] != "" && value != nil {
			name = value[1]
		}
		for page, shown := range map[string]string{"docs/reference/target.md": "`" + name + ":", "docs/reference/ls.md": "`" + name + "`"} {
			if name == "" || !strings.Contains(read(t, page), shown) {
				t.Errorf("%s: the runtime %s (%q) is not there as %s", page, f[1], name, shown)
			}
		}
	}
}

// number is what a pattern finds in a file.
func number(t *testing.T, file, pattern string) int {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(read(t, file))
	if found == nil {
		t.Fatalf("%s has no %s: mend the pattern of this test", file, pattern)
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// tells fails for each text that a page does not have, wherever its lines break.
func tells(t *testing.T, page string, wants ...string) {
	t.Helper()
	text := strings.Join(strings.Fields(read(t, page)), " ")
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%s does not say %q", page, want)
		}
	}
}

// The pages say how many series a container has, and a host.
func TestNumberOfSeries(t *testing.T) {
	each := number(t, "internal/agent/metrics.go", `const maxSeriesPerContainer = (\d+)`)
	thousands := func(n int) string { return fmt.Sprintf("%d,%03d series", n/1000, n%1000) }
	tells(t, "docs/reference/metrics.md", fmt.Sprintf("at most %d series", each),
		thousands(each*number(t, "internal/agent/totals.go", `const maxContainers = (\d+)`)))
	tells(t, "docs/howto/prometheus.md", "A host with 30 containers has about "+thousands(30*each))
}

// A trial's turn is as long in the drawn trials and in the pages as in fix.
func TestLengthOfATurn(t *testing.T) {
	turn := number(t, "internal/cure/fix/turns.go", `leastTurn, leastPeriods += (\d+) \* time\.Second`)
	longest := number(t, "internal/sim/forecast/judged.go", `const LongestTurn = (\d+) \* time\.Second`)
	const drawn = "internal/cure/trial/drawn/drawn_test.go"
	if n := number(t, drawn, `const turn, settle = (\d+) \* time\.Second`); n != turn {
		t.Errorf("%s draws turns of %d s, and fix has turns of %d s", drawn, n, turn)
	}
	tells(t, "docs/reference/fix.md", fmt.Sprintf("in force for %d s at a time", turn), fmt.Sprintf("turns last up to %d s", longest),
		fmt.Sprintf("A turn of %d s", longest))
	tells(t, "docs/tutorial.md", fmt.Sprintf("in force for %d seconds at a time", turn))
}
