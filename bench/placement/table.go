package main

import (
	"fmt"
	"strings"
	"time"
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
	machines      []machine
	who           []string
	results       map[key]*result
}

func newTable(length, seeds int) *table {
	return &table{length: length, seeds: seeds, results: map[key]*result{}}
}

// cell runs everybody on the streams of one cell.
func (t *table) cell(m machine, peers []peer, x mix, percent, length, seeds int) error {
	if len(t.machines) == 0 || t.machines[len(t.machines)-1].name != m.name {
		t.machines = append(t.machines, m)
	}
	if len(t.who) == 0 {
		for _, p := range peers {
			t.who = append(t.who, p.name)
		}
		for _, v := range variants {
			t.who = append(t.who, v.name)
		}
	}
	cpus := m.topology.Online().Difference(m.topology.Isolated()).Size()
	for seed := range seeds {
		requests := stream(x, cpus, percent, length, uint64(seed))
		for _, p := range peers {
			r, err := runPeer(m, p, requests)
			if err != nil {
				return err
			}
			t.at(key{m.name, percent, x.name, p.name}).add(r)
		}
		for _, v := range variants {
			r, err := runOurs(m, v, requests)
			if err != nil {
				return err
			}
			t.at(key{m.name, percent, x.name, v.name}).add(r)
		}
	}
	return nil
}

func (t *table) at(k key) *result {
	if t.results[k] == nil {
		t.results[k] = &result{}
	}
	return t.results[k]
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

// rows writes a table in Markdown.
func rows(b *strings.Builder, head []string, body [][]string) {
	fmt.Fprintf(b, "| %s |\n|%s\n", strings.Join(head, " | "), strings.Repeat("---|", len(head)))
	for _, row := range body {
		fmt.Fprintf(b, "| %s |\n", strings.Join(row, " | "))
	}
	b.WriteByte('\n')
}
