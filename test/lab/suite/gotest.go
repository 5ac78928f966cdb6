package suite

import (
	"slices"
	"strings"
)

// GoTest returns the arguments by which one `go test` runs the packages' tests
// and few others: a test is taken too if it has the name of one of them, and its
// package is among them.
func GoTest(packages []Package) []string {
	var names, paths []string
	for _, p := range packages {
		names = append(names, p.Tests...)
		paths = append(paths, p.ImportPath)
	}
	slices.Sort(names)
	return append([]string{"-run", "^(" + strings.Join(slices.Compact(names), "|") + ")$"}, paths...)
}
