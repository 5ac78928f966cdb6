package docs

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Each folder of internal is in the architecture's drawing.
func TestDrawingIsWhole(t *testing.T) {
	_, drawing, ok := strings.Cut(read(t, "docs/architecture.md"), "```\n")
	drawing, _, closed := strings.Cut(drawing, "```")
	if !ok || !closed {
		t.Fatal("docs/architecture.md has no drawing")
	}
	folders, err := os.ReadDir(root + "/internal")
	if err != nil {
		t.Fatal(err)
	}
	if len(folders) < 10 {
		t.Fatalf("internal has %d folders", len(folders))
	}
	for _, f := range folders {
		if !regexp.MustCompile(`\b` + regexp.QuoteMeta(f.Name()) + `\b`).MatchString(drawing) {
			t.Errorf("internal/%s is not in the drawing of docs/architecture.md", f.Name())
		}
	}
}
