package main

import (
	"strings"
	"testing"
	"time"
)

func TestOtherLoad(t *testing.T) {
	of := func(recorded uint64, rounds ...uint64) *scored {
		k := caseRun{Each: 4 * time.Second, Look: &look{
			Window: 6, Requests: &recorded, RequestsP99: new(170.9), Rows: []row{{Remedy: "none", Requests: new(182.0)}},
		}}
		for i, n := range rounds {
			k.Runs = append(k.Runs, oneRun{Variant: leaveIt, Round: i + 1, Requests: n}, oneRun{Variant: "pin 1", Round: i + 1, Requests: 10_000})
		}
		return &scored{c: testCase{name: "php"}, k: k}
	}
	for _, want := range []string{"php has 58.0 requests a second, the rounds have 84.0 to 93.0", "p99 of 182 ms; recorded were 171 ms."} {
		if got := of(348, 336, 336, 372).otherLoad(); !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
	for name, j := range map[string]*scored{"the same rate": of(504, 336), "no round": of(348), "rounds without requests": of(348, 0)} {
		if got := j.otherLoad(); got != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
	mixed := of(348, 336)
	mixed.k.Runs[0].Beside = map[string]float64{"other": 1}
	unknown := of(348, 336)
	unknown.k.Look.Requests = nil
	for name, j := range map[string]*scored{"two kinds of requests": mixed, "not recorded": unknown} {
		if got := j.otherLoad(); got != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
	many := of(700, 336)
	many.k.Look.RequestsP99 = nil
	if got := many.otherLoad(); !strings.Contains(got, "117 requests a second") || strings.Contains(got, "Replayed") {
		t.Error(got)
	}
}
