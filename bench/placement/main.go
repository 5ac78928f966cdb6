// Command bench compares ways to choose CPUs for containers: the kubelet's algorithm, nri-plugins' allocator
// and ours. All get the same machines and streams of requests. It writes docs/results/placement.md.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"

	"github.com/unthrottle/unthrottle/bench/study"
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
	soak := flag.String("soak", "bench/placement/soak.json", "`file` that make soak-placement wrote; none: nothing is said of it")
	only := flag.String("machine", "", "only machines whose name contains this `text`")
	length := flag.Int("arrivals", 200, "measured arrivals per stream")
	seeds := flag.Int("seeds", 3, "streams per cell")
	flag.Parse()
	if err := run(*trees, *out, *only, *soak, *length, *seeds); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(trees, out, only, soak string, length, seeds int) error {
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
	// The largest take longest: they begin.
	slices.SortStableFunc(all, func(a, b machine) int { return b.topology.Online().Size() - a.topology.Online().Size() })
	next, done := make(chan machine), make(chan error)
	for range min(len(all), runtime.GOMAXPROCS(0)) {
		go func() {
			runtime.LockOSThread() // for threadTime
			for m := range next {
				done <- t.machine(m, temp)
			}
		}()
	}
	defer close(next)
	for sent, ended := 0, 0; ended < len(all); {
		feed := next
		var m machine
		if sent == len(all) {
			feed = nil
		} else {
			m = all[sent]
		}
		select {
		case feed <- m:
			sent++
		case err := <-done:
			if err != nil {
				return err
			}
			ended++
			// An interruption of the rest does not lose the page so far.
			if out != "" {
				if err := study.WritePage(out, t.text()); err != nil {
					return err
				}
			}
		}
	}
	if t.soaked, err = readSoak(soak); err != nil {
		return err
	}
	t.garbage = map[string]float64{}
	for _, m := range all {
		if t.garbage[m.name], err = garbage(m); err != nil {
			return err
		}
	}
	if out == "" {
		_, err = os.Stdout.WriteString(t.text())
		return err
	}
	return study.WritePage(out, t.text())
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
