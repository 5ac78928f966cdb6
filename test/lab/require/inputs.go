package require

import (
	"io/fs"
	"path/filepath"
	"testing"
)

// Sources are the folders of which go makes the program, below the top of the tree.
var Sources = []string{"bandwidth", "cmd", "internal", "libs", "placement", "topology"}

// Inputs names files and folders below root that a program reads which the test starts, such as go or make. The go command
// notes which files a test itself looks at, and takes a cached result only if they are as they were.
func Inputs(t testing.TB, root string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := filepath.WalkDir(filepath.Join(root, name), func(_ string, _ fs.DirEntry, err error) error { return err }); err != nil {
			t.Fatal(err)
		}
	}
}
