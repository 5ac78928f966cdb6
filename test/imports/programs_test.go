package imports

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// probes are the BPF objects that stand beside their source, so that a build needs no clang.
var probes = []string{"internal/see/probe/bpf_bpfel.o", "internal/widthcap/scx/bpf_bpfel.o"}

// TestNoProgramIsCommitted finds programs that a build left in the tree and a commit took along.
func TestNoProgramIsCommitted(t *testing.T) {
	for _, name := range committed(t) {
		file, err := os.Open(filepath.Join("../..", name))
		if err != nil {
			t.Fatal(err)
		}
		start, err := io.ReadAll(io.LimitReader(file, 4))
		file.Close()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if string(start) == "\x7fELF" && !slices.Contains(probes, name) {
			t.Errorf("%s is a program: git rm --cached it, and name its folder in .gitignore", name)
		}
	}
}
