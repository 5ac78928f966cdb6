package main

import (
	"os"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/bench/services"
	"github.com/unthrottle/unthrottle/test/study"
)

// The tree's page is made of the tree's records.
func TestPageIsOfTheRecords(t *testing.T) {
	have, err := study.ReadLines[piece]("records.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../docs/results/secondary.md")
	if err != nil || string(text) != page(have.All) {
		t.Errorf("docs/results/secondary.md is not of bench/secondary/records.jsonl.gz: make results-secondary SECONDARY='-rounds 0' (%v)", err)
	}
	for _, p := range have.All {
		if !strings.Contains(string(text), "### `"+p.Service+"`") {
			t.Errorf("%s, round %d: the page has no table of it", p.Service, p.Round)
		}
	}
}

// Ratios are of the same round, and a variant that was refused says why.
func TestTable(t *testing.T) {
	at := func(i int, p99, batch float64) point {
		return point{Variant: variants[i].name, P50: new(1.0), P99: &p99, UsedCPUs: 0.25, Batch: batch}
	}
	got := page([]piece{
		{Service: served[0], Round: 1, CPUs: 2, Points: []point{at(0, 4, 0.001), at(1, 40, 1.5), at(4, 5, 1.6),
			{Variant: variants[7].name, Refused: `unthrottle: cgroup "/x": no real-time bandwidth`}}},
		{Service: served[0], Round: 2, CPUs: 2, Points: []point{at(0, 8, 0.001), at(1, 40, 1.5), at(4, 9, 1.4)}},
		{Service: served[0], Round: 3, CPUs: 2, Points: []point{at(0, 2, 0.001), at(1, 40, 1.5), at(4, 3, 1.5)}},
	})
	for _, want := range []string{
		"| the batch hardly runs | 1 | 4 | 1 (1 to 1) | 0.25 | 0.00 | |",
		"| equal weights | 1 | 40 | 10 (5 to 20) | 0.25 | 1.50 | |",
		"| the batch as secondary | 1 | 5 | 1.25 (1.12 to 1.5) | 0.25 | 1.50 | |",
		"| equal weights | 10 (10 to 10) | 1.50 (1.50 to 1.50) |", "| refused: no real-time bandwidth |", "| not measured |"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if got := page(nil); !strings.Contains(got, "Nothing was measured yet.") {
		t.Error(got)
	}
	for _, name := range served {
		if _, ok := services.Find(name); !ok {
			t.Errorf("there is no service %s", name)
		}
	}
}
