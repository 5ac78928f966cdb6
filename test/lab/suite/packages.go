package suite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/test/lab/results"
)

// requirePath ends the import path of package require.
const requirePath = "/lab/require"

// Package is a package of the tree whose tests may need the lab.
type Package struct {
	ImportPath string
	Dir        string   // here
	Rel        string   // below the module's root
	Tests      []string // those that state a need
	Each       []string // of Tests, those that check something else on cgroup v2
	Alone      []string // of Tests, those beside which nothing else may run
	Long       []string // of Tests, those that `make test` leaves out
}

type listed struct {
	ImportPath, Dir                    string
	Module                             *struct{ Path, Dir string }
	Imports, TestImports, XTestImports []string
}

// Place is where tests run.
type Place int

const (
	// Host is this machine: every test that states a need.
	Host Place = iota
	// Guest is the lab's guest, where CPU time is scarce: those whose needs a
	// host may lack. Package require's Kernel alone is none of these.
	Guest
)

// Find lists the packages among patterns that have tests for the place.
func Find(ctx context.Context, place Place, patterns ...string) (packages []Package, moduleDir string, err error) {
	all, err := list(ctx, "./...")
	if err != nil {
		return nil, "", err
	}
	selected := all
	if len(patterns) > 0 {
		if selected, err = list(ctx, patterns...); err != nil {
			return nil, "", err
		}
	}
	users := usersOf(all, requirePath)
	for _, p := range selected {
		if p.Module == nil {
			continue
		}
		moduleDir = p.Module.Dir
		uses := func(imported string) bool { return users[imported] }
		if !slices.ContainsFunc(p.TestImports, uses) && !slices.ContainsFunc(p.XTestImports, uses) {
			continue
		}
		rel, err := filepath.Rel(moduleDir, p.Dir)
		if err != nil {
			return nil, "", err
		}
		found, err := needyTests(p.Dir, users, place)
		if err != nil {
			return nil, "", err
		}
		if len(found.tests) > 0 {
			packages = append(packages, Package{ImportPath: p.ImportPath, Dir: p.Dir, Rel: filepath.ToSlash(rel),
				Tests: found.tests, Each: found.each, Alone: found.alone,
				Long: found.long})
		}
	}
	if len(packages) == 0 {
		return nil, "", errors.New("no package with tests that use lab/require; run it in the tree's top folder")
	}
	return packages, moduleDir, nil
}

// NotRepeated takes out the tests that another run took, passed or failed, and that check nothing else on cgroup v2. left
// counts them.
func NotRepeated(packages []Package, other *results.Run) (rest []Package, left int) {
	return without(packages, func(p Package, name string) bool {
		return !slices.Contains(p.Each, name) && other.Took(p.ImportPath, name)
	})
}

// Beside takes out the tests beside which nothing else may run.
func Beside(packages []Package) []Package {
	rest, _ := without(packages, func(p Package, name string) bool { return slices.Contains(p.Alone, name) })
	return rest
}

// Alone takes out the others.
func Alone(packages []Package) []Package {
	rest, _ := without(packages, func(p Package, name string) bool { return !slices.Contains(p.Alone, name) })
	return rest
}

// Long takes out the tests that `make test` has.
func Long(packages []Package) []Package {
	rest, _ := without(packages, func(p Package, name string) bool { return !slices.Contains(p.Long, name) })
	return rest
}

// NotLong takes out those that it has not.
func NotLong(packages []Package) []Package {
	rest, _ := without(packages, func(p Package, name string) bool { return slices.Contains(p.Long, name) })
	return rest
}

// without takes out tests, and packages that then have none. left counts the tests.
func without(packages []Package, out func(p Package, name string) bool) (rest []Package, left int) {
	for _, p := range packages {
		tests := slices.DeleteFunc(slices.Clone(p.Tests), func(name string) bool { return out(p, name) })
		left += len(p.Tests) - len(tests)
		if p.Tests = tests; len(tests) > 0 {
			rest = append(rest, p)
		}
	}
	return rest, left
}

// usersOf is the package whose path ends in suffix and the test helpers built
// on it, directly or not: those that import package testing, too.
func usersOf(all []listed, suffix string) map[string]bool {
	users := map[string]bool{}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if users[p.ImportPath] {
				continue
			}
			if strings.HasSuffix(p.ImportPath, suffix) ||
				slices.Contains(p.Imports, "testing") && slices.ContainsFunc(p.Imports, func(i string) bool { return users[i] }) {
				users[p.ImportPath], grown = true, true
			}
		}
	}
	return users
}

func list(ctx context.Context, patterns ...string) ([]listed, error) {
	cmd := exec.CommandContext(ctx, "go",
		append([]string{"list", "-json=ImportPath,Dir,Module,Imports,TestImports,XTestImports"}, patterns...)...)
	out, err := runGo(cmd)
	if err != nil {
		return nil, err
	}
	var found []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return found, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		found = append(found, p)
	}
}

// runGo runs the go command for the guest: static binaries.
func runGo(cmd *exec.Cmd) ([]byte, error) {
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, errs.String())
	}
	return out.Bytes(), nil
}
