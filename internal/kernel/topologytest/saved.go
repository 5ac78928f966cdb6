// Package topologytest holds machines for tests: real ones, saved as reduced copies of /sys under testdata, and
// generated ones of any shape.
//
// A saved machine is one text file of lines "path content", each a file below /sys that holds one line. A line that
// begins with # has the origin and the licence. For example
//
//	devices/system/cpu/cpu0/topology/core_cpus_list 0,24
package topologytest

import (
	"embed"
	"io/fs"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/unthrottle/unthrottle/topology"
)

//go:embed testdata/*.tree
var saved embed.FS

// Names returns the saved machines' names.
func Names(t testing.TB) []string {
	t.Helper()
	files, err := fs.Glob(saved, "testdata/*.tree")
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(strings.TrimPrefix(f, "testdata/"), ".tree")
	}
	return files
}

// Tree returns a saved machine's /sys; the caller may change it.
func Tree(t testing.TB, name string) fstest.MapFS {
	t.Helper()
	text, err := saved.ReadFile("testdata/" + name + ".tree")
	if err != nil {
		t.Fatal(err)
	}
	tree := fstest.MapFS{}
	for line := range strings.Lines(string(text)) {
		if name, content, _ := strings.Cut(strings.TrimSpace(line), " "); name != "#" {
			put(tree, name, content)
		}
	}
	return tree
}

// Machine returns a saved machine.
func Machine(t testing.TB, name string) topology.Machine {
	t.Helper()
	return read(t, Tree(t, name))
}

func read(t testing.TB, tree fstest.MapFS) topology.Machine {
	t.Helper()
	m, err := topology.Read(index(tree))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// indexed is a tree that knows its folders. A MapFS walks all of its files to
// find that one is missing, and a machine lacks several for each CPU.
type indexed struct {
	tree   fstest.MapFS
	exists map[string]bool
}

func index(tree fstest.MapFS) indexed {
	exists := map[string]bool{".": true}
	for name := range tree {
		for ; !exists[name]; name = path.Dir(name) {
			exists[name] = true
		}
	}
	return indexed{tree, exists}
}

// Open opens a file or folder; the error of one that is missing is fs.ErrNotExist.
func (i indexed) Open(name string) (fs.File, error) {
	if !i.exists[name] {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return i.tree.Open(name)
}

func put(tree fstest.MapFS, name, content string) {
	tree[name] = &fstest.MapFile{Data: []byte(content + "\n"), Mode: 0o444}
}
