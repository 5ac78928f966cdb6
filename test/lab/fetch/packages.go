package fetch

import (
	"context"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// PackagesSuite is the Debian whose packages a guest can have.
const PackagesSuite = "bookworm"

// packagesRecipe names how a disk of packages is made.
const packagesRecipe = "packages-1"

// packageName is what Debian's policy allows (5.6.1).
var packageName = regexp.MustCompile("^[a-z0-9][a-z0-9+.-]+$")

// Packages returns a disk with packages of PackagesSuite and all that they depend on, and builds it if it is missing: one for each set
// of packages. That takes root, mmdebstrap and some minutes.
func (c *Cache) Packages(ctx context.Context, line Line, kernel Kernel, names []string) (Node, error) {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	for _, name := range names {
		if !packageName.MatchString(name) {
			return Node{}, fmt.Errorf("--packages: %.60q is no name of a Debian package", name)
		}
	}
	recipe := strings.Join(append([]string{packagesRecipe, PackagesSuite, kernel.Version}, names...), " ")
	dir := filepath.Join(c.Dir, fmt.Sprintf("packages-%.6x", sha256.Sum256([]byte(recipe))))
	n := Node{Disk: filepath.Join(dir, "root.ext4")}
	err := c.part(ctx, dir, recipe, &n.Manifest, func(ctx context.Context, into string) (string, string, error) {
		// Some packages make links in the folders of the manual, so these stay.
		return kernel.Version, "", c.buildDisk(ctx, line, kernel, into, PackagesSuite, names, []string{"doc", "locale", "info"},
			func(string, string) error { return nil })
	})
	if err != nil {
		return n, err
	}
	n.Modules, err = filepath.Glob(filepath.Join(dir, "*.ko*"))
	return n, err
}
