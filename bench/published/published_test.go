package main

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/test/study"
)

// The page is made of the records that the tree keeps.
func TestPageIsOfTheRecords(t *testing.T) {
	have, err := study.ReadLines[piece]("records.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	expiring, err := study.ReadLines[slicesPiece]("slices.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../docs/results/published.md")
	if len(have.All)+len(expiring.All) == 0 && errors.Is(err, fs.ErrNotExist) {
		return // there is no page before anything is measured
	}
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != page(have.All, expiring.All) {
		t.Error("docs/results/published.md is not of bench/published/records.jsonl.gz: make results-published PUBLISHED='-rounds 0'")
	}
	for _, p := range have.All {
		if p.P99 == nil || p.Sleeps == 0 || p.UsedCPUs <= 0 {
			t.Errorf("%s, round %d: nothing is said", p.Variant, p.Round)
		}
	}
}

// The workers alone would take a slice of 5 ms for each CPU, which is more than a period's quota; what all use is far below it.
func TestSlicesScenario(t *testing.T) {
	for _, h := range slicesHosts {
		s, err := h.scenario(6)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Workloads) != 2 || s.Host.CPUs != h.cpus {
			t.Errorf("%+v", s)
		}
		if slices := time.Duration(h.cpus) * 5 * time.Millisecond; slices <= h.quota {
			t.Errorf("%d CPUs take %v of a quota of %v", h.cpus, slices, h.quota)
		}
	}
	p99 := 300.
	text := page(nil, []slicesPiece{{Kernel: slicesKernels[0].name, HostCPUs: 16, K: 20, Round: 1, Seconds: 6, Quota: 0.6, P99: &p99,
		Periods: 60, Throttled: 55, UsedCPUs: 0.25}})
	if !strings.Contains(text, "| 16 | 20 | slices expire | 0.6 | 0.25 | 55 of 60 | - | 300.0 | - |") {
		t.Error(text)
	}
}

// A page names what has not run, and has a row for what has.
func TestPage(t *testing.T) {
	const missing = "Not measured yet: GOMAXPROCS=32, quota;"
	if text := page(nil, nil); !strings.Contains(text, "Nothing is measured yet") || !strings.Contains(text, missing) {
		t.Error(text)
	}
	p := piece{Variant: variants[0], Round: 1, Seconds: 6, HostCPUs: 32, K: 40, Sleeps: 60, P50: new(100.), P90: new(101.), P99: new(110.),
		Longest: new(120.), Periods: 60, Throttled: 59, UsedCPUs: 2}
	text := page([]piece{p}, nil)
	const row = "| 32 | quota | 59 of 60 | 100.0 | 101.0 | 110.0 | 120.0 | 2.0 |"
	if !strings.Contains(text, row) || strings.Contains(text, missing) {
		t.Error(text)
	}
}
