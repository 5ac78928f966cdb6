package imports

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// probes are the BPF objects that stand beside their source, so that a build needs no clang.
var probes = []string{"internal/see/probe/bpf_bpfel.o", "internal/widthcap/scx/bpf_bpfel.o"}

// TestNoProgramIsCommitted finds programs that a build left in the tree and a commit took along.
func TestNoProgramIsCommitted(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "git", "-C", "../..", "ls-files", "-z").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		file, err := os.Open(filepath.Join("../..", name))
		if err != nil {
			t.Fatal(err)
		}
		var first [4]byte
		n, err := io.ReadFull(file, first[:])
		file.Close()
		if err != nil && n == 0 && err != io.EOF {
			t.Errorf("%s: %v", name, err)
		}
		if bytes.Equal(first[:], []byte("\x7fELF")) && !slices.Contains(probes, name) {
			t.Errorf("%s is a program: git rm --cached it, and name its folder in .gitignore", name)
		}
	}
}
