package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The page's list of everything that may be changed has what the code has, and nothing else.
func TestEverythingThatMayChange(t *testing.T) {
	const page = "docs/howto/kubernetes.md"
	_, list, ok := strings.Cut(read(t, page), "## Everything that this may change")
	if list, _, _ = strings.Cut(list, "\n## "); !ok || list == "" {
		t.Fatalf("%s has no such list", page)
	}
	// found are the groups of a pattern, each once, sorted.
	found := func(text, pattern string) []string {
		var all []string
		for _, f := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			all = append(all, f[1])
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	row := func(kind string) string {
		_, rest, _ := strings.Cut(list, "| `"+kind+"` |")
		line, _, _ := strings.Cut(rest, "\n")
		return strings.Split(line+"|", "|")[0]
	}
	for _, c := range []struct {
		what            string
		source, pattern string
		text, named     string
	}{
		{"kinds of changes", "internal/txn/change/*.go", `Kind\w+ +Kind = "(\w+)"`, list, "(?m)^\\| `(\\w+)` \\|"},
		{"properties of units", "internal/kernel/systemd/unitprop/*.go", `\b((?:Allowed|CPU)\w+) += "`,
			row("systemd_property"), "`(\\w+)`"},
		{"updates of NRI", "internal/cure/nri/*.go", `u\.((?:Set|Add)Linux\w+)\(`, list, "`((?:Set|Add)Linux\\w+)`"},
	} {
		code, shown := found(sources(t, c.source), c.pattern), found(c.text, c.named)
		if len(code) == 0 || !slices.Equal(code, shown) {
			t.Errorf("%s: the code has %v, %s has %v", c.what, code, page, shown)
		}
	}
	// Which of the kernel's files are settings: the limit, the weight and the sets, by the constants of their names.
	files := found(sources(t, "internal/kernel/cgroup/files.go"),
		`(?:fileMax|fileMaxBurst|fileQuota|filePeriod|fileBurst|fileShares|fileWeight|FileIdle|FileCPUs|FileMems) += "([a-z_.]+)"`)
	if shown := found(row("file"), "`([a-z_.]+)`"); !slices.Equal(files, shown) {
		t.Errorf("the code has the files %v, %s has %v", files, page, shown)
	}
}
