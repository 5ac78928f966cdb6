package topology_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/unthrottle/unthrottle/topology"
)

// TestOddFiles reads a tree on disk in which a pipe, a link to itself, a link to
// nowhere and a folder stand where files are expected: none blocks, none fails.
func TestOddFiles(t *testing.T) {
	dir := t.TempDir()
	for path, file := range small() {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, path), file.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	at := func(path string) string {
		full := filepath.Join(dir, path)
		if err := os.RemoveAll(full); err != nil {
			t.Fatal(err)
		}
		return full
	}
	pipe, loop, nowhere, folder := at(cpus+"cpu0/topology/core_cpus_list"), at(cpus+"cpu1/topology/core_cpus_list"),
		at(cpus+"cpu2/topology/core_cpus_list"), at(cpus+"cpu3/topology/core_cpus_list")
	for _, err := range []error{syscall.Mkfifo(pipe, 0o644), os.Symlink(loop, loop), os.Symlink("none", nowhere), os.Mkdir(folder, 0o755)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	m, err := topology.Read(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range m.CPUs {
		if known := c.Core != topology.Unknown; known != (c.ID >= 4) {
			t.Errorf("CPU %d: core %d", c.ID, c.Core)
		}
		if c.Socket == topology.Unknown {
			t.Errorf("CPU %d: no socket", c.ID)
		}
	}
}
