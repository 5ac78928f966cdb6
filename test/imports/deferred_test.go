package imports

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// lostErrors names the assignments in deferred functions to an error that the function around them does not return: to a
// variable of its body, which may shadow the result of that name, so that the caller never gets it.
func lostErrors(set *token.FileSet, file *ast.File) (lost []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch f := n.(type) {
		case *ast.FuncDecl:
			if f.Body != nil {
				lost = append(lost, lostIn(set, f.Type, f.Body)...)
			}
		case *ast.FuncLit:
			lost = append(lost, lostIn(set, f.Type, f.Body)...)
		}
		return true
	})
	return lost
}

// lostIn looks at the deferred functions of one function, not at those of functions inside it.
func lostIn(set *token.FileSet, of *ast.FuncType, body *ast.BlockStmt) (lost []string) {
	results := map[any]bool{}
	if of.Results != nil {
		for _, field := range of.Results.List {
			for _, name := range field.Names {
				results[name.Obj] = true
			}
		}
	}
	ast.Inspect(body, func(n ast.Node) bool {
		if _, inner := n.(*ast.FuncLit); inner {
			return false
		}
		deferred, ok := n.(*ast.DeferStmt)
		if !ok {
			return true
		}
		if f, ok := deferred.Call.Fun.(*ast.FuncLit); ok {
			ast.Inspect(f.Body, func(n ast.Node) bool {
				a, ok := n.(*ast.AssignStmt)
				if !ok || a.Tok != token.ASSIGN {
					return true
				}
				for _, left := range a.Lhs {
					name, ok := left.(*ast.Ident)
					if !ok || name.Name != "err" || name.Obj == nil || results[name.Obj] {
						continue
					}
					if at := name.Obj.Pos(); at < f.Pos() || at > f.End() {
						lost = append(lost, fmt.Sprintf("%s: a deferred function sets %s of %s, which nobody returns",
							set.Position(name.Pos()), name.Name, set.Position(at)))
					}
				}
				return true
			})
		}
		return false
	})
	return lost
}

// TestDeferredErrorsAreReturned: what a deferred function joins to an error has to be the error that its function returns.
func TestDeferredErrorsAreReturned(t *testing.T) {
	for _, name := range committed(t, "*.go") {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, filepath.Join("../..", name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, lost := range lostErrors(set, file) {
			t.Error(strings.TrimPrefix(lost, "../../"))
		}
	}
}

func TestLostErrors(t *testing.T) {
	const source = `package p
func shadowed() (err error) {
	if true {
		_, err := do()
		defer func() { err = join(err, end()) }()
	}
	return nil
}
func unnamed() error {
	err := do()
	defer func() { err = end() }()
	return err
}
func returned() (n int, err error) {
	defer func() { err = join(err, end()) }()
	defer func() {
		err := end()
		err = other(err)
	}()
	return func() (n int, err error) {
		defer func() { err = end() }()
		return 0, nil
	}()
}`
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "p.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, lost := range lostErrors(set, file) {
		lines = append(lines, strings.SplitN(lost, ":", 3)[1])
	}
	if want := []string{"5", "11"}; !slices.Equal(lines, want) {
		t.Errorf("lines %q, want %q", lines, want)
	}
}
