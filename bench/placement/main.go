// Command bench compares ways to choose CPUs for containers: the kubelet's
// algorithm, nri-plugins' allocator and ours, on the same machines and the same
// streams of requests, and writes docs/placement.md.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

var percents = []int{50, 75, 90, 97}

// Variants of ours. The first is the default.
var variants = []variant{
	{"ours", "spans", false},
	{"ours, with moves", "spans", true},
	{"ours, shared first", "spans,shared", false},
	{"ours, stranded first", "spans,stranded", false},
}

func main() {
	trees := flag.String("trees", "topology/topologytest/testdata", "`folder` of the saved machines")
	out := flag.String("out", "", "`file` to write; empty: standard output")
	only := flag.String("machine", "", "only machines whose name contains this `text`")
	length := flag.Int("arrivals", 200, "measured arrivals per stream")
	seeds := flag.Int("seeds", 3, "streams per cell")
	flag.Parse()
	runtime.LockOSThread() // for threadTime
	if err := run(*trees, *out, *only, *length, *seeds); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(trees, out, only string, length, seeds int) error {
	all, err := machines(trees, only)
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "unthrottle-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	t := newTable(length, seeds)
	for _, m := range all {
		// The peers take up to a second per decision on the largest: it is for
		// our own time.
		var peers []peer
		if m.topology.Online().Size() < largest {
			if peers, err = peersOf(m, filepath.Join(temp, m.name)); err != nil {
				return err
			}
		}
		for _, percent := range percents {
			fmt.Fprintf(os.Stderr, "bench: %s at %d %%\n", m.name, percent)
			for _, mix := range mixes {
				if err := t.cell(m, peers, mix, percent, length, seeds); err != nil {
					return err
				}
			}
		}
	}
	text := t.text()
	if out == "" {
		_, err = os.Stdout.WriteString(text)
		return err
	}
	return os.WriteFile(out, []byte(text), 0o644)
}

func peersOf(m machine, dir string) ([]peer, error) {
	if err := writeSysfs(dir, m.topology); err != nil {
		return nil, err
	}
	peers := []peer{kubelet(m.topology, false), kubelet(m.topology, true)}
	for _, walk := range []bool{false, true} {
		p, err := nri(m.topology, dir, walk)
		if err != nil {
			return nil, err
		}
		peers = append(peers, p)
	}
	return peers, nil
}
