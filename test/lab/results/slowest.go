package results

import (
	"cmp"
	"slices"
	"strings"
)

// Timed is a test of one run.
type Timed struct {
	Run, Package, Test string
	ElapsedSec         float64
}

// Slowest lists the n tests of all runs that took longest, the slowest first.
// Subtests count within their test.
func Slowest(runs []*Run, n int) []Timed {
	var all []Timed
	for _, r := range runs {
		for _, p := range r.Packages {
			for name, t := range p.Tests {
				if !strings.Contains(name, "/") && t.Status != Skip {
					all = append(all, Timed{r.Name, p.Name, name, t.ElapsedSec})
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b Timed) int {
		return cmp.Or(cmp.Compare(b.ElapsedSec, a.ElapsedSec), strings.Compare(a.Package, b.Package), strings.Compare(a.Test, b.Test))
	})
	return all[:min(n, len(all))]
}
