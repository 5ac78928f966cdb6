// Command bench compares ways to choose CPUs for containers: the kubelet's algorithm, nri-plugins' allocator
// and ours. All get the same machines and streams of requests. It writes docs/results/placement.md.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"

	"github.com/unthrottle/unthrottle/test/study"
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
	trees := flag.String("trees", "internal/kernel/topologytest/testdata", "`folder` of the saved machines")
	out := flag.String("out", "", "`file` to write; empty: standard output")
	only := flag.String("machine", "", "only machines whose name contains this `text`")
	length := flag.Int("arrivals", 200, "measured arrivals per stream")
	seeds := flag.Int("seeds", 3, "streams per cell")
	flag.Parse()
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
	t := &table{length: length, seeds: seeds, results: map[key]*result{}}
	// The largest take longest: they begin.
	slices.SortStableFunc(all, func(a, b machine) int { return b.topology.Online().Size() - a.topology.Online().Size() })
	done, free := make(chan error, len(all)), make(chan struct{}, runtime.GOMAXPROCS(0))
	go func() {
		for _, m := range all {
			free <- struct{}{}
			go func() {
				runtime.LockOSThread() // for its CPU time
				done <- t.machine(m, temp)
				<-free
			}()
		}
	}()
	write := func() error {
		if out == "" {
			return nil
		}
		return study.WritePage(out, t.text())
	}
	for range all {
		if err := <-done; err != nil {
			return err
		}
		if err := write(); err != nil { // an interruption of the rest does not lose the page so far
			return err
		}
	}
	for _, m := range all {
		allocations, err := garbage(m)
		if err != nil {
			return err
		}
		t.garbage = append(t.garbage, allocations)
	}
	if out == "" {
		_, err = os.Stdout.WriteString(t.text())
		return err
	}
	return write()
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
