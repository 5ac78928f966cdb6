package main

import (
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/bench/services"
)

// measuredCase is a kept case whose variants had these p99s.
func measuredCase(chosen string, p99s map[string][]float64) caseRun {
	k := caseRun{Case: "x", Complete: true, Rounds: 3, Look: &look{Cause: "burst", Verdict: "why"}, Fix: &fixed{}}
	granted := map[string]float64{"pin 1": 1, "raise 2x": 1}
	for _, name := range []string{leaveIt, "burst 50ms", "narrow", "pin 1", "raise 2x"} {
		values, ok := p99s[name]
		if !ok {
			continue
		}
		cpus := granted[name]
		if cpus == 0 {
			cpus = 0.5
		}
		k.Variants = append(k.Variants, variant{Name: name, Granted: &cpus})
		for i, v := range values {
			k.Runs = append(k.Runs, oneRun{Variant: name, Round: i + 1, P50: new(v / 10), P99: &v, UsedCPUs: 0.4})
		}
	}
	if chosen != "" {
		k.Fix.Answer, k.Fix.Chosen, k.Fix.Applied, k.Fix.Left = answerRemedy, chosen, true, chosen
	}
	return k
}

func TestJudge(t *testing.T) {
	c := services.Case{Name: "x", Limit: 0.5}
	leave, low, middle := []float64{100, 110, 120}, []float64{10, 11, 12}, []float64{50, 55, 60}
	for name, test := range map[string]struct {
		k             caseRun
		isBest, worse bool
		best, why     string
	}{
		"the best": {measuredCase("burst 50ms",
			map[string][]float64{leaveIt: leave, "burst 50ms": low, "narrow": middle}), true, false, "burst 50ms", ""},
		"a better one": {measuredCase("narrow",
			map[string][]float64{leaveIt: leave, "burst 50ms": low, "narrow": middle}), false, false, "burst 50ms",
			"burst 50ms is better (11.0 ms (10.0 to 12.0), narrow 55.0 ms"},
		"better, more CPU": {measuredCase("burst 50ms",
			map[string][]float64{leaveIt: leave, "burst 50ms": middle, "pin 1": low}), true, false, "burst 50ms", ""},
		"rounds overlap": {measuredCase("narrow",
			map[string][]float64{leaveIt: leave, "burst 50ms": {40, 50, 52}, "narrow": middle}), true, false, "burst 50ms", ""},
		"worse": {measuredCase("narrow", map[string][]float64{leaveIt: low, "narrow": leave}), false,
			true, leaveIt, "worse than leaving it"},
		"left, and rightly": {measuredCase("", map[string][]float64{leaveIt: low, "narrow": leave}), true, false, leaveIt, ""},
		"left, and wrongly": {measuredCase("", map[string][]float64{leaveIt: leave, "narrow": low}), false, false,
			"narrow", "narrow is better"},
		"less than half a ms": {measuredCase("",
			map[string][]float64{leaveIt: {0.5, 0.5, 0.5}, "narrow": {0.1, 0.1, 0.1}}), true, false, "narrow", ""},
		"the chosen is unkown": {measuredCase("weight", map[string][]float64{leaveIt: leave}), false, false, "",
			"nothing was measured of weight"},
		"one round of leave only": {measuredCase("", map[string][]float64{leaveIt: {5}}), true, false, leaveIt, ""},
	} {
		f := judge(c, test.k)
		if f.IsBest != test.isBest || f.Worse != test.worse || f.Best != test.best ||
			!strings.Contains(f.Why, test.why) || (test.why == "") != (f.Why == "") {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// fix undoes what does not help. What it leaves then counts as leaving it.
func TestJudgeUndone(t *testing.T) {
	k := measuredCase("narrow", map[string][]float64{leaveIt: {10, 11, 12}, "narrow": {10, 11, 12}})
	k.Fix.Left = ""
	if f := judge(services.Case{Limit: 0.5}, k); !f.good() {
		t.Errorf("%+v", f)
	}
	if f := judge(services.Case{Limit: 0.5, Healthy: true},
		measuredCase("", map[string][]float64{leaveIt: {8, 8, 9}, "narrow": {3, 3, 4}})); !f.good() {
		t.Errorf("a healthy service was left, though another remedy wins by chance: %+v", f)
	}
	helps := measuredCase("narrow", map[string][]float64{leaveIt: {100, 110, 120}, "narrow": {10, 11, 12}})
	helps.Fix.Left = ""
	if f := judge(services.Case{Limit: 0.5}, helps); f.good() || !f.IsBest || f.LeftIsBest ||
		!strings.Contains(f.Why, "fix undid it, and it helps") {
		t.Errorf("%+v", f)
	}
	if f := judge(services.Case{Limit: 0.5, Healthy: true}, k); f.good() || !strings.Contains(f.Why, "nothing was wrong") {
		t.Errorf("a healthy service was changed: %+v", f)
	}
}

// Work counts by the time that a unit takes: less is better there too.
func TestJudgeWork(t *testing.T) {
	k := measuredCase("", map[string][]float64{leaveIt: {1}, "narrow": {1}})
	k.Runs = nil
	for round := 1; round <= 3; round++ {
		k.Runs = append(k.Runs, oneRun{Variant: leaveIt, Round: round, Done: new(10.0)},
			oneRun{Variant: "narrow", Round: round, Done: new(20.0)})
	}
	if f := judge(services.Case{Limit: 0.5}, k); f.IsBest || f.Best != "narrow" {
		t.Errorf("%+v", f)
	}
}

// A fix that failed has left the service alone, and counts so.
func TestFailedFix(t *testing.T) {
	k := measuredCase("", map[string][]float64{leaveIt: {10, 11, 12}, "narrow": {1, 1.1, 1.2}})
	k.Fix.Failed = "round 1: too few\nunthrottle: no luck\n"
	f := judge(services.Case{Limit: 0.5}, k)
	if !f.Known || f.IsBest || f.Best != "narrow" || !strings.HasPrefix(f.Why, "fix failed: no luck; narrow is better") {
		t.Errorf("%+v", f)
	}
	k.Runs = nil
	if f := judge(services.Case{Limit: 0.5}, k); f.Known || f.Why != "fix failed: no luck" {
		t.Errorf("nothing was measured: %+v", f)
	}
}
