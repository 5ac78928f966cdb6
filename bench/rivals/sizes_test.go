package main

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/bench/services"
	"github.com/unthrottle/unthrottle/test/study"
)

func TestSizesOf(t *testing.T) {
	for name, want := range map[string][]float64{
		"quota": {0.55, 0.65, 0.8, 1, 1.25, 1.5}, exclusiveCPUs: {1}, withoutLimit: {2},
	} {
		at := slices.IndexFunc(ways(), func(w way) bool { return w.name == name })
		if got := sizesOf(ways()[at], 0.5, 2); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	for _, w := range ways() {
		s := w.setting(1, 2)
		limited := w.name != exclusiveCPUs && w.name != withoutLimit
		if s.Limit.Limited() != limited || limited && s.Limit.CPUs() != 1 || s.Limit.CheckBounds() != nil || s.RequestCPUs != 0 {
			t.Errorf("%s of one CPU: %+v", w.name, s)
		}
		if oneCPU := w.name == exclusiveCPUs || w.name == "narrow"; oneCPU != (s.ExclusiveCPUs == 1) {
			t.Errorf("%s runs on %d CPUs", w.name, s.ExclusiveCPUs)
		}
		if long := w.name == "burst in 1 s"; long != (s.Limit.Period == bandwidth.MaxPeriod) {
			t.Errorf("%s: a period of %s", w.name, s.Limit.Period)
		}
	}
	for _, name := range sizedServices {
		if _, ok := services.Find(name); !ok {
			t.Errorf("there is no service %s", name)
		}
	}
}

// The least size is the smallest from which on all keep the latency; p50 counts too.
func TestLeastSize(t *testing.T) {
	sized := func(name string, size, p50, p99 float64) sizedPoint {
		return sizedPoint{name, size, point{P50: &p50, P99: &p99}}
	}
	piece := sizedPiece{Made: study.Now(time.Unix(0, 0)), Service: "postgres-tpcb", Round: 1, Load: 1, Used: 0.5, Points: []sizedPoint{
		sized(withoutLimit, 2, 1, 10),
		sized("quota", 0.55, 1, 15), sized("quota", 0.65, 1, 90), sized("quota", 0.8, 1, 80), sized("quota", 1, 1, 30),
		sized("quota", 1.25, 1, 19), sized("quota", 1.5, 1, 11),
		sized("burst in 1 s", 0.55, 1, 90), sized("burst in 1 s", 0.65, 1, 12), sized("burst in 1 s", 0.8, 1, 12),
		sized("burst in 1 s", 1, 1, 12), sized("burst in 1 s", 1.25, 1, 12), sized("burst in 1 s", 1.5, 1, 12),
		sized(exclusiveCPUs, 1, 1.2, 12),                                                               // its p50 rises by a fifth
		sized("narrow", 0.8, 1, 12), {"narrow", 1, point{Requests: 100}}, sized("narrow", 1.25, 1, 12), // answers too few
		{"burst in 100 ms", 1.5, point{P50: new(1.0), P99: new(12.0), Requests: 100, Errors: 2}},
	}}
	rows := sizedRows{[]sizedPiece{piece}}
	for _, w := range ways() {
		want := map[string]float64{"quota": 1.25, "burst in 1 s": 0.65, "narrow": 1.25, withoutLimit: 2}[w.name]
		if got := rows.least(w); got != want {
			t.Errorf("%s: %g CPUs, want %g", w.name, got, want)
		}
	}
	page := sizesPage([]sizedPiece{piece}, nil)
	for _, want := range []string{"| `postgres-tpcb` | 0.50 | 1.25 | none | 0.65 (-48 %) | 1.25 (+0 %) | none | 40 % | 77 % | 1 |",
		"p99 10 ms (10 to 10), p50 1", "| 0.65 | 1.3 | 9 (9 to 9); 1 | - | **1.2 (1.2 to 1.2); 1** | - | - |"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing in\n%s", want, page)
		}
	}
	if got := sizesPage(nil, nil); strings.Count(got, "Nothing was measured yet.") != 2 {
		t.Error(got)
	}
}

// The tree's page of sizes is made of the tree's records.
func TestSizesPageIsOfTheRecords(t *testing.T) {
	have, err := study.ReadLines[sizedPiece]("sizes.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	sharded, err := study.ReadLines[shardedPiece]("shards.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../docs/results/sizes.md")
	if err != nil || string(text) != sizesPage(have.All, sharded.All) {
		t.Errorf("docs/results/sizes.md is not of bench/rivals/sizes.jsonl.gz: make results-sizes SIZES='-rounds 0' (%v)", err)
	}
	for _, p := range have.All {
		if !strings.Contains(string(text), "## `"+p.Service+"`") {
			t.Errorf("%s, round %d: the page has no table of it", p.Service, p.Round)
		}
	}
}

// A row has one container's figures, then two's, by the medians of the rounds.
func TestShardedRows(t *testing.T) {
	at := func(containers int, p99 float64) shardedPoint {
		return shardedPoint{Way: "quota", Containers: containers, P50: new(1.5), P99: &p99, UsedCPUs: 0.5 * float64(containers),
			Memory: 100 << 20}
	}
	piece := func(round int, one, two float64) shardedPiece {
		return shardedPiece{Service: "tomcat-pages", Round: round, Points: []shardedPoint{at(1, one), at(2, two)}}
	}
	got := sizesPage(nil, []shardedPiece{piece(1, 10, 30), piece(2, 12, 50), piece(3, 14, 40)})
	for _, want := range []string{
		"| `tomcat-pages` | quota | 1.5; 1.5 | 12 (10 to 14); 40 (30 to 50) | 0.5; 1 | 100; 100 | 3 |",
		"| `tomcat-pages` | burst in 1 s | -; - | -; - | -; - | -; - | 3 |"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	for _, name := range shardedServices {
		if _, ok := services.Find(name); !ok {
			t.Errorf("there is no service %s", name)
		}
	}
	for _, name := range shardedWays {
		if !slices.ContainsFunc(ways(), func(w way) bool { return w.name == name }) {
			t.Errorf("there is no way %s", name)
		}
	}
}
