package suite

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// needyTests lists the test functions of a folder that state a need: they, or
// what they call in the package's tests, use a package of users (package
// require and those built on it). The place says which needs count. each, alone and
// long are those of them that call require.EachCgroup, require.Alone and require.CheckAll themselves.
//
// It goes by names: a test that mentions a helper's or method's name counts as
// calling it. That may take a test too many, never one too few.
func needyTests(dir string, users map[string]bool, place Place) (found needyNames, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return found, err
	}
	mentions := map[string]map[string]bool{} // of each function, by name
	needy, both, apart, long := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return found, err
		}
		packages := namesOf(file, users)
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			if mentions[f.Name.Name] == nil {
				mentions[f.Name.Name] = map[string]bool{}
			}
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.Ident:
					mentions[f.Name.Name][n.Name] = true
				case *ast.SelectorExpr:
					pkg, ok := n.X.(*ast.Ident)
					if !ok || !packages[pkg.Name] {
						return true
					}
					if !noNeed(n.Sel.Name, place) {
						needy[f.Name.Name] = true
					}
					switch n.Sel.Name {
					case eachName:
						both[f.Name.Name] = true
					case aloneName:
						apart[f.Name.Name] = true
					case longName:
						long[f.Name.Name] = true
					}
				}
				return true
			})
		}
	}
	for grown := true; grown; {
		grown = false
		for name, mentioned := range mentions {
			for other := range mentioned {
				if needy[other] && !needy[name] {
					needy[name], grown = true, true
				}
			}
		}
	}
	for name := range needy {
		if strings.HasPrefix(name, "Test") && name != "TestMain" {
			found.tests = append(found.tests, name)
			if both[name] {
				found.each = append(found.each, name)
			}
			if apart[name] {
				found.alone = append(found.alone, name)
			}
			if long[name] {
				found.long = append(found.long, name)
			}
		}
	}
	slices.Sort(found.tests)
	slices.Sort(found.each)
	slices.Sort(found.alone)
	slices.Sort(found.long)
	return found, nil
}

// needyNames are the names of a folder's tests that state a need. each, alone and long are of tests.
type needyNames struct{ tests, each, alone, long []string }

// eachName is the function of package require by which a test says that cgroup v2 changes what it checks, aloneName the
// one by which it says that nothing may run beside it, longName the one by which it says that `make test` leaves it out.
const (
	eachName  = "EachCgroup"
	aloneName = "Alone"
	longName  = "CheckAll"
)

// noNeeds are the names of package require that are no needs anywhere.
var noNeeds = []string{"Rounds", "InLab", "All", "TestAll", "Inputs", "Sources", "Raced", "Unraced", "Whole", "Cases",
	eachName, aloneName, longName}

// noNeed reports whether the name is of package require and no need at that place.
func noNeed(name string, place Place) bool {
	return slices.Contains(noNeeds, name) || name == "Kernel" && place == Guest
}

// namesOf are the names that a file gives to those of its imports that are
// among users.
func namesOf(file *ast.File, users map[string]bool) map[string]bool {
	names := map[string]bool{}
	for _, i := range file.Imports {
		importPath, err := strconv.Unquote(i.Path.Value)
		if err != nil || !users[importPath] {
			continue
		}
		if i.Name != nil {
			names[i.Name.Name] = true
		} else {
			names[filepath.Base(importPath)] = true
		}
	}
	return names
}

// fixtures lists the testdata folders below dir, as paths relative to it.
func fixtures(dir string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || !d.IsDir() || p == dir:
			return err
		case strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case d.Name() == "testdata":
			rel, err := filepath.Rel(dir, p)
			found = append(found, filepath.ToSlash(rel))
			if err != nil {
				return err
			}
			return filepath.SkipDir
		}
		return nil
	})
	return found, err
}
