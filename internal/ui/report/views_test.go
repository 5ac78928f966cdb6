package report

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestViewsShareOnlyParts fails where a view or a part imports a view.
func TestViewsShareOnlyParts(t *testing.T) {
	const here = "github.com/unthrottle/unthrottle/internal/ui/report/"
	views, err := filepath.Glob("*/*.go")
	if err != nil || len(views) == 0 {
		t.Fatalf("%d files of views, %v", len(views), err)
	}
	parts, err := filepath.Glob("shared/*/*.go")
	if err != nil || len(parts) == 0 {
		t.Fatalf("%d files of parts, %v", len(parts), err)
	}
	for _, name := range slices.Concat(views, parts) {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			imported, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), here)
			if ours && !strings.HasPrefix(imported, "shared/") {
				t.Errorf("%s imports the view %s: move what both need to shared", name, imported)
			}
		}
	}
}
