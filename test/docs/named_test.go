package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// read is a file of the tree.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// sources are the Go files that match a pattern, without tests, in one text.
func sources(t *testing.T, pattern string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, pattern))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(names), err)
	}
	var builder strings.Builder
	for _, name := range names {
		if !strings.HasSuffix(name, "_test.go") {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			builder.Write(text)
		}
	}
	return builder.String()
}

// What the code names is in the reference page of it.
func TestNamedInItsPage(t *testing.T) {
	for _, c := range []struct {
		what, source, pattern, page string
		quote                       string // around the name in the page
	}{
		{"cause", "internal/explain/diagnose/*.go", `Cause = "([a-z-]+)"`, "docs/reference/explain.md", "`"},
		{"cause", "internal/explain/diagnose/*.go", `Cause = "([a-z-]+)"`, "docs/howto/explain-an-incident.md", "| `"},
		{"reason", "internal/cure/policy/reason.go", `Reason = "([a-z-]+)"`, "docs/reference/policy.md", "| `"},
		{"workload kind", "internal/scenario/*.go", `\bKind = "([a-z-]+)"`, "docs/reference/scenarios.md", "`"},
		{"remedy of a scenario", "internal/scenario/*.go", `RemedyKind = "([a-z-]+)"`, "docs/reference/scenarios.md", "`"},
		{"key of ls", "internal/ui/report/shared/listing/listing.go", `json:"([a-z_]+)"`, "docs/reference/ls.md", "`"},
		{"column of ls", "internal/ui/report/ls/ls.go", `\bName: "([A-Z]+)"`, "docs/reference/ls.md", ""},
		{"metric of a fleet's report", "internal/ui/report/fleet/metrics.go", `"(unthrottle_fleet_[a-z_]+)"`,
			"docs/reference/fleet.md", "`"},
		{"variable of sized", "internal/explain/threadpool/pools.yaml", `\benv: ([A-Z_]+)`, "docs/reference/runtimes.md", "`"},
	} {
		found := regexp.MustCompile(c.pattern).FindAllStringSubmatch(sources(t, c.source), -1)
		if len(found) == 0 {
			t.Errorf("%s: no %s found in %s: mend the pattern of this test", c.pattern, c.what, c.source)
		}
		for _, f := range found {
			if !strings.Contains(read(t, c.page), c.quote+f[1]) {
				t.Errorf("%s %q of %s is not in %s: say there what it means", c.what, f[1], c.source, c.page)
			}
		}
	}
}

// The page of metrics has each metric of the agent, and no other.
func TestMetricsAreInTheirPage(t *testing.T) {
	const page = "docs/reference/metrics.md"
	code := sources(t, "internal/agent/*.go") + sources(t, "internal/agent/*/*.go")
	names := map[string]bool{}
	for _, f := range regexp.MustCompile(`"(unthrottle_[a-z_0-9]+[a-z0-9])"`).FindAllStringSubmatch(code, -1) {
		names[f[1]] = true
	}
	for _, f := range regexp.MustCompile(`containerDesc\("([a-z_]+)"`).FindAllStringSubmatch(code, -1) {
		names["unthrottle_container_"+f[1]] = true
	}
	if len(names) < 30 {
		t.Fatalf("%d metrics found: mend the patterns of this test", len(names))
	}
	rows := map[string]bool{}
	for _, f := range regexp.MustCompile("(?m)^\\| `(unthrottle_[a-z_0-9]+)` \\|").FindAllStringSubmatch(read(t, page), -1) {
		rows[f[1]] = true
	}
	for name := range names {
		if !rows[name] {
			t.Errorf("metric %s has no row in %s", name, page)
		}
	}
	for name := range rows {
		if !names[name] {
			t.Errorf("%s has a row for %s, which the agent does not have", page, name)
		}
	}
	// Alerts and examples elsewhere name metrics too.
	suffix := regexp.MustCompile(`_(bucket|sum|count)$`)
	for _, page := range pages(t) {
		switch page {
		case "docs/reference/scenarios.md": // names constants of the simulator, unthrottle_ipi for one
			continue
		case "docs/reference/fleet.md": // figures of a report: internal/ui/report/fleet has its test
			continue
		}
		for _, f := range regexp.MustCompile(`(?:^|[^\w:])(unthrottle_[a-z_0-9]+[a-z0-9])`).FindAllStringSubmatch(read(t, page), -1) {
			name := f[1] // after a colon it is a series that a rule records: packaging/mixin has the test of these
			if !names[name] && !names[suffix.ReplaceAllString(name, "")] {
				t.Errorf("%s names %s, which is no metric of the agent", page, name)
			}
		}
	}
}

// The flags of the commands that change something are in their pages.
func TestFlagsAreInTheirPage(t *testing.T) {
	flag := regexp.MustCompile(`(?m)^ +(?:(-\w), )?--([a-z-]+)`)
	for command, page := range map[string]string{
		"apply": "docs/reference/apply.md", "fix": "docs/reference/fix.md docs/reference/apply.md",
		"defrag": "docs/reference/defrag.md docs/reference/apply.md", "ls": "docs/reference/ls.md", "explain": "docs/reference/explain.md",
	} {
		text := read(t, "docs/reference/flags.md") // what all commands share
		for _, p := range strings.Fields(page) {
			text += read(t, p)
		}
		help := strings.Join(call{args: []string{command, "--help"}}.output(t), "\n")
		for _, f := range flag.FindAllStringSubmatch(help, -1) {
			short := f[1] != "" && strings.Contains(text, "`"+f[1])
			if f[2] != "help" && !short && !strings.Contains(text, "--"+f[2]) {
				t.Errorf("%s --%s is not in %s", command, f[2], page)
			}
		}
	}
}

// pathInText is a file or folder of the tree, in code quotes.
var pathInText = regexp.MustCompile("`((?:bandwidth|bench|cmd|docs|examples|fleet|internal|kubernetes|libs|packaging|placement|test|tools|topology)" +
	"/[\\w./*{},-]+)`")

// The files that CONTRIBUTING.md names are there.
func TestContributingNamesFiles(t *testing.T) {
	found := pathInText.FindAllStringSubmatch(read(t, "docs/CONTRIBUTING.md"), -1)
	if len(found) < 20 {
		t.Fatalf("%d paths found", len(found))
	}
	for _, f := range found {
		for _, path := range braces(f[1]) {
			if strings.Contains(path, "NEW") {
				continue
			}
			if names, err := filepath.Glob(filepath.Join(root, path)); err != nil || len(names) == 0 {
				t.Errorf("docs/CONTRIBUTING.md: there is no %s: it has moved, or has another name", path)
			}
		}
	}
}

// braces are the paths that a/{b,c}.go stands for.
func braces(path string) []string {
	before, rest, ok := strings.Cut(path, "{")
	if !ok {
		return []string{path}
	}
	middle, after, _ := strings.Cut(rest, "}")
	var all []string
	for _, m := range strings.Split(middle, ",") {
		all = append(all, before+m+after)
	}
	return all
}

// The tests that CONTRIBUTING.md names are there.
func TestContributingNamesTests(t *testing.T) {
	var code strings.Builder
	for _, dir := range []string{"bandwidth", "bench", "cmd", "fleet", "internal", "kubernetes", "libs", "placement", "test", "topology"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			code.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range regexp.MustCompile("`(Test[A-Z]\\w+)`").FindAllStringSubmatch(read(t, "docs/CONTRIBUTING.md"), -1) {
		if !strings.Contains(code.String(), "func "+f[1]+"(") {
			t.Errorf("docs/CONTRIBUTING.md: there is no %s", f[1])
		}
	}
}

// message is a cell of a page that quotes a message in full.
var message = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")

// foreign are messages of the kernel or of Go's library.
var foreign = []string{"address already in use"}

// Each message of the page of troubleshooting is one that the program has.
func TestMessagesOfTroubleshooting(t *testing.T) {
	const page = "docs/howto/troubleshooting.md"
	var code strings.Builder
	for _, dir := range []string{"cmd", "internal"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			code.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	// A message that the source breaks into two strings is one text.
	text := regexp.MustCompile(`"\s*\+\s*"`).ReplaceAllString(code.String(), "")
	text = strings.ReplaceAll(text, `\"`, `"`)
	rows := message.FindAllStringSubmatch(read(t, page), -1)
	if len(rows) < 30 {
		t.Fatalf("%d messages found: mend the pattern of this test", len(rows))
	}
	for _, row := range rows {
		for _, fixed := range strings.Split(row[1], "…") {
			if fixed = strings.TrimSpace(fixed); !strings.Contains(text, fixed) && !slices.Contains(foreign, fixed) {
				t.Errorf("%s quotes %q, and the program does not say %q: write what it says now", page, row[1], fixed)
			}
		}
	}
}
