package imports

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// mostLines is how long a function of a command may be, with the text of its help.
const mostLines = 80

// TestCommandsAreShort: a command's flags stand apart from what it does with them, as in cmd/unthrottle/ls.go.
func TestCommandsAreShort(t *testing.T) {
	for _, name := range committed(t, "cmd/*.go", "fleet/cmd/*.go", "kubernetes/cmd/*.go") {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, filepath.Join("../..", name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if lines := set.Position(f.End()).Line - set.Position(f.Pos()).Line + 1; lines > mostLines {
				t.Errorf("%s: %s has %d lines, more than %d: give its parts names", name, f.Name.Name, lines, mostLines)
			}
		}
	}
}
