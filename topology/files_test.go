package topology_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/unthrottle/unthrottle/internal/kernel/topologytest"
	"github.com/unthrottle/unthrottle/topology"
)

// TestOddFiles reads a tree on disk in which a pipe, a link to itself, a link to
// nowhere and a folder stand where files are expected: none blocks, none fails.
func TestOddFiles(t *testing.T) {
	dir := onDisk(t, small())
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

// onDisk writes a tree into a folder.
func onDisk(t *testing.T, tree fstest.MapFS) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for path, file := range tree {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, path), file.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestPipesAnywhere puts a pipe in the place of each file and each folder of a tree: none is opened, which would block.
func TestPipesAnywhere(t *testing.T) {
	tree := topologytest.Shape{Threads: 2}.Tree()
	delete(tree, cpus+"present") // the folders stand in
	dir, aside := onDisk(t, tree), filepath.Join(t.TempDir(), "aside")
	places := map[string]bool{}
	for path := range tree {
		for ; path != "."; path = filepath.Dir(path) {
			places[path] = true
		}
	}
	for place := range places {
		pipe := filepath.Join(dir, place)
		if err := os.Rename(pipe, aside); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(pipe, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := topology.Read(os.DirFS(dir)); err != nil && strings.HasPrefix(place, cpus) {
			t.Errorf("%s: %v", place, err)
		}
		if err := os.Remove(pipe); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(aside, pipe); err != nil {
			t.Fatal(err)
		}
	}
}
