package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing/fstest"

	"github.com/unthrottle/unthrottle/internal/kernel/topologytest"
	"github.com/unthrottle/unthrottle/topology"
)

// machine is one that all allocators are run on.
type machine struct {
	name     string
	topology topology.Machine
	rank     int // its place on the page
}

// saved are real machines' trees; shapes are made after the tables of the
// machines named, as the kubelet's tests and vendors' data sheets give them.
var (
	saved = []string{
		"scattered-80",       // 2 sockets, 4 NUMA nodes, SNC2, scattered numbers
		"xeon-snc2-112",      // 2 sockets, 4 NUMA nodes, SNC2, numbers dealt round
		"xeon-4-sockets-144", // 4 sockets
		"epyc7402",           // 1 socket, no caches told
		"hybrid-16",          // performance and efficiency cores
	}
	shapes = []struct {
		name  string
		shape topologytest.Shape
	}{
		{"epyc7742-nps4-256", topologytest.Shape{Sockets: 2, NodesPerSocket: 4, L3sPerNode: 4, CoresPerL3: 4, Threads: 2}},
		{"xeon8490h-snc4-240", topologytest.Shape{Sockets: 2, NodesPerSocket: 4, NodesShareL3: true, CoresPerL3: 15, Threads: 2}},
		{"epyc9654-nps1-384", topologytest.Shape{Sockets: 2, L3sPerNode: 12, CoresPerL3: 8, Threads: 2}},
		{"128-cores-no-smt", topologytest.Shape{L3sPerNode: 16, CoresPerL3: 8}},
		{"1024-cpus", topologytest.Shape{Sockets: 4, NodesPerSocket: 2, L3sPerNode: 8, CoresPerL3: 8, Threads: 2}},
	}
)

// machines reads those whose name contains the text; trees is the folder of the
// saved ones.
func machines(trees, only string) ([]machine, error) {
	var out []machine
	for _, name := range saved {
		if !strings.Contains(name, only) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(trees, name+".tree"))
		if err != nil {
			return nil, err
		}
		tree := fstest.MapFS{}
		for line := range strings.Lines(string(text)) {
			if path, content, _ := strings.Cut(strings.TrimSpace(line), " "); path != "#" && path != "" {
				tree[path] = &fstest.MapFile{Data: []byte(content + "\n"), Mode: 0o444}
			}
		}
		m, err := topology.Read(tree)
		if err != nil {
			return nil, err
		}
		out = append(out, machine{name, m, len(out)})
	}
	for _, s := range shapes {
		if !strings.Contains(s.name, only) {
			continue
		}
		m, err := topology.Read(s.shape.Tree())
		if err != nil {
			return nil, err
		}
		out = append(out, machine{s.name, m, len(out)})
	}
	return out, nil
}
