package docs

import (
	"os"
	"path/filepath"
	"regexp"
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
	var all strings.Builder
	for _, name := range names {
		if !strings.HasSuffix(name, "_test.go") {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(text)
		}
	}
	return all.String()
}

// What the code names is in the reference page of it.
func TestNamedInItsPage(t *testing.T) {
	for _, c := range []struct {
		what, source, pattern, page string
		quote                       string // around the name in the page
	}{
		{"cause", "internal/explain/diagnose/*.go", `Cause = "([a-z-]+)"`, "docs/reference/explain.md", "`"},
		{"workload kind", "internal/sim/scenario/*.go", `\bKind = "([a-z-]+)"`, "docs/reference/scenarios.md", "`"},
		{"remedy of a scenario", "internal/sim/scenario/*.go", `RemedyKind = "([a-z-]+)"`, "docs/reference/scenarios.md", "`"},
		{"remedy", "internal/cure/remedy/*.go", `Kind = "([a-z-]+)"`, "docs/reference/remedies.md", ""},
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

// shortened is a name of which a page shows the end only, beside a whole one.
var shortened = regexp.MustCompile("`\\.\\.\\._([a-z_]+)")

// Every metric of the agent is in its page, whole or after "...".
func TestMetricsAreInTheirPage(t *testing.T) {
	code := sources(t, "internal/cure/agent/*.go")
	page := read(t, "docs/reference/agent.md") + read(t, "docs/reference/flight-recorder.md")
	page = regexp.MustCompile("(`\\.\\.\\._[a-z]+)_\\.\\.\\.`").ReplaceAllString(page, "$1`")
	found := regexp.MustCompile(`"(unthrottle_[a-z_]+[a-z])"`).FindAllStringSubmatch(code, -1)
	if len(found) < 20 {
		t.Fatalf("%d metrics found: mend the pattern of this test", len(found))
	}
	for _, f := range found {
		named := strings.Contains(page, f[1])
		for _, s := range shortened.FindAllStringSubmatch(page, -1) {
			named = named || strings.HasSuffix(f[1], "_"+s[1])
		}
		if !named {
			t.Errorf("metric %s is in neither docs/reference/agent.md nor flight-recorder.md", f[1])
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
var pathInText = regexp.MustCompile("`((?:bandwidth|bench|cmd|docs|examples|internal|placement|test|topology)/[\\w./*{},-]+)`")

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
	for _, pattern := range []string{"*/*_test.go", "*/*/*_test.go", "*/*/*/*_test.go", "*/*/*/*/*_test.go"} {
		names, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			code.Write(text)
		}
	}
	for _, f := range regexp.MustCompile("`(Test[A-Z]\\w+)`").FindAllStringSubmatch(read(t, "docs/CONTRIBUTING.md"), -1) {
		if !strings.Contains(code.String(), "func "+f[1]+"(") {
			t.Errorf("docs/CONTRIBUTING.md: there is no %s", f[1])
		}
	}
}
