package imports

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
)

// spelled are the constants that may be a remedy's name: a list with its own names of remedies lacks the next remedy, and no compiler
// tells. The second line has other things by the same word.
var spelled = []string{"internal/scenario", "internal/sim/forecast", "internal/cure/remedy",
	"internal/explain/diagnose.Burst", "placement.Secondary", "internal/widthcap.File", "internal/ui/report/fleet.AsksLimit",
	"internal/ui/report/fleet.AsksShards", "bench/wide.narrowed"}

// TestARemedyIsSpelledOnce: a scenario's remedies are named in internal/scenario, other rows of a forecast in internal/sim/forecast,
// the rest in internal/cure/remedy. All others use these constants.
func TestARemedyIsSpelledOnce(t *testing.T) {
	names := forecast.Priceable()
	for _, k := range remedy.Kinds() {
		names = append(names, string(k))
	}
	for _, file := range committed(t, "*.go") {
		tree, err := parser.ParseFile(token.NewFileSet(), filepath.Join("../..", file), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range tree.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST || strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, s := range g.Specs {
				values := s.(*ast.ValueSpec)
				for i, v := range values.Values {
					literal, ok := v.(*ast.BasicLit)
					if !ok || literal.Kind != token.STRING {
						continue
					}
					name, err := strconv.Unquote(literal.Value)
					if err != nil || !slices.Contains(names, name) {
						continue
					}
					folder := filepath.ToSlash(filepath.Dir(file))
					constant := folder + "." + values.Names[i].Name
					if !slices.Contains(spelled, folder) && !slices.Contains(spelled, constant) {
						t.Errorf("%s is the remedy %q by its own spelling: use the constant of internal/sim/forecast or internal/cure/remedy",
							constant, name)
					}
				}
			}
		}
	}
}
