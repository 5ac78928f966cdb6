package main

import (
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/test/study"
)

// The page's part is made of the records that the tree keeps.
func TestPageIsOfTheRecords(t *testing.T) {
	have, err := study.ReadLines[piece]("records.jsonl.gz")
	if err != nil || len(have.All) == 0 {
		t.Fatal(len(have.All), err)
	}
	text, err := os.ReadFile("../../docs/results/period.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), page(have.All)) {
		t.Error("docs/results/period.md is not of bench/many/records.jsonl.gz: make results-many MANY='-rounds 0'")
	}
	for _, p := range have.All {
		if len(p.P99) != services || len(p.P50) != len(p.P99) {
			t.Errorf("%s, round %d: of %d of %d services something is said", p.Setting, p.Round, len(p.P99), services)
		}
	}
}

// Every setting is the same limit, or none; together all services get their groups at the same moments, as many as by chance.
func TestScenarios(t *testing.T) {
	for _, m := range []machine{narrowHost, wide} {
		for _, set := range settings {
			for _, together := range []bool{false, true} {
				s, err := set.scenario(m, together, 10*time.Second)
				if err != nil {
					t.Fatalf("%s: %v", set.name, err)
				}
				n := 0
				for _, c := range s.Cgroups {
					if cpus := c.Limit.CPUs(); c.Limit.Limited() && (math.Abs(cpus-m.limit()) > 1e-6 || c.Limit.Period != set.period ||
						c.Limit.Burst > 0 != set.burst) {
						t.Errorf("%s: %+v", set.name, c.Limit)
					} else if c.Limit.Limited() {
						n++
					}
				}
				if want := services; set.period == 0 && n != 0 || set.period > 0 && n != want {
					t.Errorf("%s: %d limits", set.name, n)
				}
			}
		}
	}
	if n := len(moments(0, 10*time.Second)); n != 10*perSecond*group && n != (10*perSecond+1)*group {
		t.Errorf("%d requests at given moments", n)
	}
}

// What the guest has measured is not measured again, and a run counts for its host and K alone.
func TestMissing(t *testing.T) {
	all := missing(nil, 2, 8, 20)
	if len(all) != 2*2*5 {
		t.Fatalf("%d runs of two rounds, of five settings by chance and together", len(all))
	}
	if left := missing(all[:3], 2, 8, 20); len(left) != len(all)-3 || !left[0].same(all[3]) {
		t.Errorf("%d of %d left after three", len(left), len(all))
	}
	here := all[0]
	here.HostCPUs, here.K = 0, 0
	if left := missing([]piece{here}, 2, 8, 20); len(left) != len(all) {
		t.Error("a run of this host counts for the guest")
	}
	if _, err := parseRun([]byte("booting\n")); err == nil || !strings.Contains(err.Error(), "booting") {
		t.Errorf("a guest that says no piece: %v", err)
	}
}
