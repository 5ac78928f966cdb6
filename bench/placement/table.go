package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/unthrottle/unthrottle/bench/study"
)

// key names a result.
type key struct {
	machine string
	percent int
	mix     string
	who     string
}

// table collects results and writes them.
type table struct {
	length, seeds int
	who           []string

	mutex    sync.Mutex // of what follows
	machines []machine  // that are done
	results  map[key]*result
	// garbage is the most allocations per decision of ours, by machine; empty:
	// not measured yet.
	garbage map[string]float64
	soaked  []soaked
}

func newTable(length, seeds int) *table {
	t := &table{length: length, seeds: seeds, results: map[key]*result{}, who: slices.Clone(peerNames)}
	for _, v := range variants {
		t.who = append(t.who, v.name)
	}
	return t
}

// machine runs all peers on one machine.
func (t *table) machine(m machine, temp string) error {
	// The peers take up to a second per decision on the largest: it is for our
	// own time.
	var peers []peer
	if m.topology.Online().Size() < largest {
		var err error
		if peers, err = peersOf(m, filepath.Join(temp, m.name)); err != nil {
			return err
		}
	}
	for _, percent := range percents {
		fmt.Fprintf(os.Stderr, "bench: %s at %d %%\n", m.name, percent)
		for _, mix := range mixes {
			if err := t.cell(m, peers, mix, percent); err != nil {
				return err
			}
		}
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.machines = append(t.machines, m)
	slices.SortFunc(t.machines, func(a, b machine) int { return a.rank - b.rank })
	return nil
}

// cell runs all peers on the streams of one cell.
func (t *table) cell(m machine, peers []peer, x mix, percent int) error {
	cpus := m.topology.Online().Difference(m.topology.Isolated()).Size()
	for seed := range t.seeds {
		requests := stream(x, cpus, percent, t.length, uint64(seed))
		for _, p := range peers {
			r, err := runPeer(m, p, requests)
			if err != nil {
				return err
			}
			t.add(key{m.name, percent, x.name, p.name}, r)
		}
		for _, v := range variants {
			r, err := runOurs(m, v, requests)
			if err != nil {
				return err
			}
			t.add(key{m.name, percent, x.name, v.name}, r)
		}
	}
	return nil
}

func (t *table) add(k key, r *result) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.at(k).add(r)
}

func (t *table) at(k key) *result {
	if t.results[k] == nil {
		t.results[k] = &result{}
	}
	return t.results[k]
}

// besidePeers adds up the results of one on the machines that every peer ran on.
func (t *table) besidePeers(who string) *result {
	out := &result{}
	for _, m := range t.machines {
		if m.topology.Online().Size() < largest {
			out.add(t.sum(m.name, 0, "", who))
		}
	}
	return out
}

// sum adds up the results that fit; "" and 0 fit all.
func (t *table) sum(machine string, percent int, mix, who string) *result {
	out := &result{}
	for _, m := range t.machines {
		for _, p := range percents {
			for _, x := range mixes {
				if (machine == "" || machine == m.name) && (percent == 0 || percent == p) && (mix == "" || mix == x.name) {
					out.add(t.at(key{m.name, p, x.name, who}))
				}
			}
		}
	}
	return out
}

func percentOf(n, of int) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", 100*float64(n)/float64(of))
}

func each(n, of int) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", float64(n)/float64(of))
}

func micros(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d)/1e3) }

// rows writes a table and an empty line.
func rows(p *study.Page, heads []string, body [][]any) {
	t := p.Table(heads...)
	for _, row := range body {
		t.Row(row...)
	}
	p.Line("")
}
