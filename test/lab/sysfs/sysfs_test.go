package sysfs

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/unthrottle/unthrottle/test/lab"
)

func TestCaptureAndParse(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	text, err := Capture(fstest.MapFS{
		"devices/system/cpu/online":                           file("0-1\n"),
		"devices/system/cpu/cpu0/topology/core_id":            file("0\n"),
		"devices/system/cpu/cpu0/cache/index3/size":           file("16384K\n"),
		"devices/system/cpu/cpu0/cpufreq/scaling_cur_freq":    file("1\n"),
		"devices/system/node/node0/meminfo":                   file("Node 0 MemTotal: 1 kB\nNode 0 MemFree: 1 kB\n"),
		"devices/system/cpu/vulnerabilities/spectre_v1":       file("x"),
		"devices/system/cpu/cpu0/cache/index3/shared_cpu_map": file("ff\n"),
	}, "a machine\nof two CPUs")
	if err != nil {
		t.Fatal(err)
	}
	want := "# a machine\n# of two CPUs\n" +
		"devices/system/cpu/cpu0/cache/index3/size \"16384K\\n\"\n" +
		"devices/system/cpu/cpu0/topology/core_id \"0\\n\"\n" +
		"devices/system/cpu/online \"0-1\\n\"\n" +
		"devices/system/node/node0/meminfo \"Node 0 MemTotal: 1 kB\\nNode 0 MemFree: 1 kB\\n\"\n"
	if string(text) != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	tree, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Capture(tree, "a machine\nof two CPUs")
	if err != nil || !bytes.Equal(again, text) {
		t.Errorf("a second capture differs: %v\n%s", err, again)
	}
}

func TestParseRefuses(t *testing.T) {
	for in, want := range map[string]string{
		"a/b":                "line 1: want <path>",
		"../b \"x\"":         "line 1: want <path>",
		"# ok\na \"x":        "line 2: a: text",
		"a \"x\"\na \"y\"\n": "twice",
		"/a \"x\"":           "want <path>",
		". \"x\"":            "want <path>",
	} {
		if _, err := Parse([]byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", in, err, want)
		}
	}
}

// TestKeptTrees checks the fixtures: each is of a machine on offer, and has all its CPUs.
func TestKeptTrees(t *testing.T) {
	for _, n := range lab.Topologies() {
		text, err := os.ReadFile(filepath.Join("../testdata/sysfs", n.Name+".txt"))
		if err != nil {
			t.Error(err)
			continue
		}
		tree, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", n.Name, err)
			continue
		}
		m, err := lab.ParseMachine(n.SMP, n.L3s, lab.NUMAPerSocket)
		if err != nil {
			t.Fatal(err)
		}
		cpus, err := fs.Glob(tree, "devices/system/cpu/cpu*/topology/core_id")
		if err != nil || len(cpus) != m.CPUs() || !strings.HasPrefix(string(text), "# Linux ") {
			t.Errorf("%s: %d CPUs, want %d; first line %.40q", n.Name, len(cpus), m.CPUs(), text)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("# c\ndevices/system/cpu/online \"0-1\\n\"\n"))
	f.Add([]byte("a \"\\x00\"\nb `raw`"))
	f.Fuzz(func(t *testing.T, in []byte) {
		if tree, err := Parse(in); err == nil && len(tree) > len(in) {
			t.Fatalf("%d files out of %d bytes", len(tree), len(in))
		}
	})
}
