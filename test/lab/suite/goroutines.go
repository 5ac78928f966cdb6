package suite

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// starters are packages of others that call our code from goroutines of their own, or read and write our memory there.
var starters = []string{
	"net/http", "os/signal", "testing/synctest",
	"charm.land/bubbletea", "github.com/cilium/ebpf", "github.com/coreos/go-systemd", "github.com/godbus/dbus", "github.com/prometheus/client_golang",
}

// startNames are methods and functions that run their argument, or the test, in a goroutine: sync.WaitGroup.Go,
// testing.T.Parallel, testing.B.RunParallel, time.AfterFunc and context.AfterFunc.
var startNames = []string{"Go", "Parallel", "RunParallel", "AfterFunc"}

// fieldNames are those of exec.Cmd whose values goroutines of os/exec read, write or call.
var fieldNames = []string{"Stdin", "Stdout", "Stderr", "Cancel"}

// Goroutines divides the tree's packages by their tests that state no need. In those with goroutines, such a test may
// start one, itself or through what its package imports. In those without, the race detector has nothing to detect.
//
// A test file that uses package require and has no other test is left aside: the run on this host's kernel has it.
func Goroutines(ctx context.Context) (with, without []string, err error) {
	all, err := list(ctx, "./...")
	if err != nil {
		return nil, nil, err
	}
	g := goroutines{byPath: map[string]listed{}, known: map[string]bool{}, users: usersOf(all, requirePath)}
	for _, p := range all {
		g.byPath[p.ImportPath] = p
	}
	for _, p := range all {
		starts, err := g.inPackage(p.ImportPath)
		if err == nil && !starts {
			starts, err = g.inTests(p)
		}
		if err != nil {
			return nil, nil, err
		}
		if starts {
			with = append(with, p.ImportPath)
		} else {
			without = append(without, p.ImportPath)
		}
	}
	return with, without, nil
}

// Repeating returns those of the packages whose tests that state no need repeat less under -short: a test file asks
// testing.Short or require.Rounds, or uses a library that does.
func Repeating(ctx context.Context, paths []string) (found []string, err error) {
	all, err := list(ctx, "./...")
	if err != nil {
		return nil, err
	}
	users := usersOf(all, requirePath)
	for _, p := range all {
		if !slices.Contains(paths, p.ImportPath) {
			continue
		}
		repeats, err := inPureFiles(p, users, func(file *ast.File) (bool, error) { return repeatsLess(file), nil })
		if err != nil {
			return nil, err
		}
		if repeats {
			found = append(found, p.ImportPath)
		}
	}
	return found, nil
}

// repeaters are packages whose checks repeat less under -short.
var repeaters = []string{"pgregory.net/rapid"}

// repeatsLess reports whether a test file may repeat less under -short.
func repeatsLess(file *ast.File) bool {
	imports := func(i *ast.ImportSpec) bool {
		importPath, err := strconv.Unquote(i.Path.Value)
		return err == nil && slices.Contains(repeaters, importPath)
	}
	if slices.ContainsFunc(file.Imports, imports) {
		return true
	}
	found := false
	ast.Inspect(file, func(n ast.Node) bool {
		if called, ok := n.(*ast.SelectorExpr); ok && (called.Sel.Name == "Short" || called.Sel.Name == "Rounds") {
			found = true
		}
		return !found
	})
	return found
}

type goroutines struct {
	byPath map[string]listed
	users  map[string]bool
	known  map[string]bool // of packages of the tree, without their tests
}

// inPackage reports whether a package, or one that it imports, may start goroutines that run our code.
func (g *goroutines) inPackage(importPath string) (bool, error) {
	p, ours := g.byPath[importPath]
	if !ours {
		return slices.ContainsFunc(starters, func(s string) bool { return importPath == s || strings.HasPrefix(importPath, s+"/") }), nil
	}
	if starts, ok := g.known[importPath]; ok {
		return starts, nil
	}
	files, err := filepath.Glob(filepath.Join(p.Dir, "*.go"))
	if err != nil {
		return false, err
	}
	files = slices.DeleteFunc(files, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	starts := false
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return false, err
		}
		if starts, err = g.inFile(file); starts || err != nil {
			break
		}
	}
	g.known[importPath] = starts
	return starts, err
}

// inTests is inPackage of those test files that a run without kernel experiments needs.
func (g *goroutines) inTests(p listed) (bool, error) { return inPureFiles(p, g.users, g.inFile) }

// inPureFiles reports whether holds is true of a test file that a run without kernel experiments needs.
func inPureFiles(p listed, users map[string]bool, holds func(*ast.File) (bool, error)) (bool, error) {
	needy, err := needyTests(p.Dir, users, Host)
	if err != nil {
		return false, err
	}
	files, err := filepath.Glob(filepath.Join(p.Dir, "*_test.go"))
	if err != nil {
		return false, err
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return false, err
		}
		if len(namesOf(file, users)) > 0 && !hasPureTest(file, needy.tests) {
			continue
		}
		if found, err := holds(file); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// hasPureTest reports whether a file has a test, a fuzz target or an example that is not among the needy ones.
func hasPureTest(file *ast.File, needy []string) bool {
	return slices.ContainsFunc(file.Decls, func(d ast.Decl) bool {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name == "TestMain" || slices.Contains(needy, f.Name.Name) {
			return false
		}
		return slices.ContainsFunc([]string{"Test", "Fuzz", "Example"}, func(kind string) bool { return strings.HasPrefix(f.Name.Name, kind) })
	})
}

func (g *goroutines) inFile(file *ast.File) (bool, error) {
	starts := false
	execs := slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"os/exec"` })
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			starts = true
		case *ast.CallExpr:
			if called, ok := n.Fun.(*ast.SelectorExpr); ok && slices.Contains(startNames, called.Sel.Name) {
				starts = true
			}
		case *ast.Ident:
			starts = starts || execs && slices.Contains(fieldNames, n.Name)
		}
		return !starts
	})
	for _, i := range file.Imports {
		if starts {
			break
		}
		importPath, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			return false, err
		}
		if starts, err = g.inPackage(importPath); err != nil {
			return false, err
		}
	}
	return starts, nil
}
