package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// metaphors are words for parts of this tree that no reader has heard of: a package is a package, and a rule stands on a page that
// is linked. Room as space is none of them.
var metaphors = regexp.MustCompile(`(?i)\b(rooms|(pure|other|only|each|every|this) room (opens|that|reach|takes?|made)|of the house)\b`)

// TestNoMetaphors: STYLE.md forbids metaphors of our own in pages, comments and messages.
func TestNoMetaphors(t *testing.T) {
	for _, folder := range []string{"docs", "internal", "cmd", "bandwidth", "topology", "placement", "test", "bench", "fleet",
		"kubernetes"} {
		err := filepath.WalkDir(filepath.Join("../..", folder), func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, ".md") ||
				strings.HasSuffix(path, "metaphors_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for n, line := range strings.Split(string(text), "\n") {
				if found := metaphors.FindString(line); found != "" {
					t.Errorf("%s:%d: %q: say package, or which rule is meant", strings.TrimPrefix(path, "../../"), n+1, found)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
