package report

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// parts are what views share; every other folder here is a view.
var parts = []string{"page", "table", "histogram", "timeline", "figure", "progress", "jsonout", "cputree", "changes", "trial", "rows", "webpage", "next"}

// TestViewsShareOnlyParts fails where a view or a part imports a view.
func TestViewsShareOnlyParts(t *testing.T) {
	const here = "github.com/unthrottle/unthrottle/internal/ui/report/"
	files, err := filepath.Glob("*/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			imported, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), here)
			if ours && !slices.Contains(parts, imported) {
				t.Errorf("%s imports the view %s: move what both need to a part", name, imported)
			}
		}
	}
	for _, part := range parts {
		if _, err := os.Stat(part); err != nil {
			t.Error(err)
		}
	}
}
