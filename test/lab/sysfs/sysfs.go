package sysfs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing/fstest"
)

const (
	maxBytes = 8 << 20
	maxFiles = 200_000
)

// patterns returns the saved files, as path.Match patterns.
func patterns() []string {
	const cpu, node = "devices/system/cpu/", "devices/system/node/"
	return []string{
		cpu + "online", cpu + "possible", cpu + "present", cpu + "isolated", cpu + "offline", cpu + "nohz_full",
		cpu + "smt/active", cpu + "smt/control",
		cpu + "cpu[0-9]*/online", cpu + "cpu[0-9]*/cpu_capacity",
		cpu + "cpu[0-9]*/topology/*",
		cpu + "cpu[0-9]*/cache/index[0-9]*/id", cpu + "cpu[0-9]*/cache/index[0-9]*/level", cpu + "cpu[0-9]*/cache/index[0-9]*/type",
		cpu + "cpu[0-9]*/cache/index[0-9]*/size", cpu + "cpu[0-9]*/cache/index[0-9]*/shared_cpu_list",
		node + "online", node + "possible", node + "has_memory", node + "has_cpu",
		node + "node[0-9]*/cpulist", node + "node[0-9]*/distance", node + "node[0-9]*/meminfo",
	}
}

// Capture reads a machine's /sys. It leaves out unreadable files, because some files return an error on machines
// without the hardware that they describe.
func Capture(sys fs.FS, comment string) ([]byte, error) {
	var names []string
	for _, p := range patterns() {
		found, err := fs.Glob(sys, p)
		if err != nil {
			return nil, err
		}
		names = append(names, found...)
	}
	slices.Sort(names)
	var out bytes.Buffer
	for line := range strings.Lines(comment) {
		fmt.Fprintf(&out, "# %s\n", strings.TrimSpace(line))
	}
	for _, name := range names {
		text, err := fs.ReadFile(sys, name)
		if err != nil {
			continue
		}
		fmt.Fprintf(&out, "%s %q\n", name, text)
	}
	if out.Len() > maxBytes {
		return nil, fmt.Errorf("the tree has %d bytes; the bound is %d", out.Len(), maxBytes)
	}
	return out.Bytes(), nil
}

// Parse makes a file system, whose root is /sys, from the output of Capture.
func Parse(text []byte) (fstest.MapFS, error) {
	if len(text) > maxBytes {
		return nil, fmt.Errorf("%d bytes; want at most %d", len(text), maxBytes)
	}
	tree := fstest.MapFS{}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		name, quoted, ok := strings.Cut(line, " ")
		if !ok || !fs.ValidPath(name) || path.Clean(name) != name || name == "." {
			return nil, fmt.Errorf("line %d: want <path> <quoted text>", number)
		}
		content, err := strconv.Unquote(quoted)
		if err != nil {
			return nil, fmt.Errorf("line %d: %s: text: %w", number, name, err)
		}
		if _, twice := tree[name]; twice {
			return nil, fmt.Errorf("line %d: %s appears twice", number, name)
		}
		tree[name] = &fstest.MapFile{Data: []byte(content), Mode: 0o444}
		if len(tree) > maxFiles {
			return nil, errors.New("too many files")
		}
	}
	return tree, nil
}
