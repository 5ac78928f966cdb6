package outfile

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSame(t *testing.T) {
	dir := t.TempDir()
	a, link := filepath.Join(dir, "a"), filepath.Join(dir, "folder")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for other, want := range map[string]bool{
		a: true, dir + "/./a": true, filepath.Join(link, "a"): true, filepath.Join(dir, "b"): false,
	} {
		if got := Same(a, other); got != want {
			t.Errorf("%s and %s: %v, want %v", a, other, got, want)
		}
	}
}
