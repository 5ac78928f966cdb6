package imports

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// ofDocuments are the numbers of a view that say what a key of its document means.
var ofDocuments = []string{"fleet.HoursPerMonth", "fleet.DaysOfApplied"}

// TestViewsHoldNoBounds: a view says what was computed. A length of time or a bound that it exports is one that others compute with:
// it stands with them, and the view gets it in its document.
func TestViewsHoldNoBounds(t *testing.T) {
	for _, file := range committed(t, "internal/ui/report/*.go") {
		view, isView := strings.CutPrefix(filepath.ToSlash(filepath.Dir(file)), "internal/ui/report/")
		if !isView || strings.HasPrefix(view, "shared/") || strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), filepath.Join("../..", file), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range tree.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, s := range g.Specs {
				values := s.(*ast.ValueSpec)
				for i, name := range values.Names {
					if !name.IsExported() || i >= len(values.Values) || slices.Contains(ofDocuments, view+"."+name.Name) {
						continue
					}
					ast.Inspect(values.Values[i], func(n ast.Node) bool {
						if literal, ok := n.(*ast.BasicLit); ok && literal.Kind != token.STRING {
							t.Errorf("%s: the view exports %s, a number: it belongs to what computes with it", file, name.Name)
						}
						return true
					})
				}
			}
		}
	}
}
