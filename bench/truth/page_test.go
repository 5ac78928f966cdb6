package main

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/bench/services"
	"github.com/unthrottle/unthrottle/test/study"
)

func TestPage(t *testing.T) {
	testCases := []services.Case{
		{Name: "good", Limit: 0.5, Causes: []string{"burst"}}, {Name: "bad", Limit: 0.5, Causes: []string{"neighbours", "pool"}},
		{Name: "absent", Limit: 1}, {Name: "later", Limit: 1},
	}
	good := measuredCase("burst 50ms", map[string][]float64{leaveIt: {100, 110, 120}, "burst 50ms": {10, 11, 12}, "pin 1": {9, 9, 9}})
	good.Machine, good.At, good.Each = "a host", time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC), 8*time.Second
	good.Fix.Rows = []row{{Remedy: "none", Judged: new(50.0)},
		{Remedy: "burst", Parameters: map[string]any{"burst_seconds": 0.05}, Judged: new(10.0)}}
	good.Variants = append(good.Variants, variant{Name: "weight", Refused: "not here"})
	bad := measuredCase("", map[string][]float64{leaveIt: {100, 110, 120}, "narrow": {10, 11, 12}})
	bad.Runs[1].LateP99 = new(30.0)
	bad.Runs[0].Errors, bad.Runs[0].FirstFail = 3, "refused"
	runs, met := []caseRun{good, bad, {}, {}}, []caseRun{good, {}, {}, {}}
	inOrder(t, markdown(testCases, runs, met),
		"Of 2 services that are stopped, what fix left in force has the lowest median of all remedies at equal CPU in 1.",
		"more than 10 % above it in 1, more than 25 % in 1.", "at most half of it in 1",
		"what fix left is 5.50 times that (median of\n2 services with three rounds), more than 10 % above it in 1, more than 10 % below it in 0", "It was not measured.",
		"what fix left was the best in 1 of 2", "worse than leaving the service alone in 0. The forecast alone would have chosen the best in 0",
		"## Misses", "- `bad`: fix chose -; narrow is better (11.0 ms (10.0 to 12.0), leave it 110 ms (100 to 120))",
		"## Services that the program met for the first time", "was the best in 1 of 1, and worse than\nleaving it in 0",
		"## Without fix", "- `absent`: not measured yet", "- `later`: not measured yet",
		"| `good` | 0.5 | 110 | leave it | 110 | burst 50ms | 11.0 | - | - | 3 | 03-04 |", "Left alone: `bad`.")
}

// A remedy that is lowest by one lucky round is not what the other rounds would have chosen.
func TestHeldOut(t *testing.T) {
	for name, c := range map[string]struct {
		left, other []float64
		want        float64
	}{
		"lucky once":     {[]float64{11, 11, 11}, []float64{8, 20, 20}, 1},
		"lucky twice":    {[]float64{11, 11, 11}, []float64{8, 8, 30}, 1},
		"always lower":   {[]float64{20, 22, 24}, []float64{10, 11, 12}, 2},
		"too few rounds": {[]float64{20, 22}, []float64{10, 11}, 0},
	} {
		k := measuredCase("burst 50ms", map[string][]float64{leaveIt: {100, 110, 120}, "burst 50ms": c.left, "narrow": c.other})
		if got := (judged{services.Case{Limit: 0.5}, k, finding{}}).heldOut(); got != c.want {
			t.Errorf("%s: %g, want %g", name, got, c.want)
		}
	}
}

// A CPU of its own is equal CPU where the limit is one, and has its row there; where it was refused, that is said.
func TestPinAtOneCPU(t *testing.T) {
	testCases := []services.Case{{Name: "one", Limit: 1}, {Name: "half", Limit: 0.5}, {Name: "refused", Limit: 1}}
	one := measuredCase("burst 50ms", map[string][]float64{leaveIt: {100, 110, 120}, "burst 50ms": {10, 11, 12}, exclusive: {8, 9, 10}})
	for i := range one.Runs {
		if one.Runs[i].Variant == exclusive {
			one.Runs[i].P50 = new(1.0)
		}
	}
	refused := measuredCase("", map[string][]float64{leaveIt: {100, 110, 120}})
	refused.Variants = append(refused.Variants, variant{Name: exclusive, Refused: "others use them"})
	page := markdown(testCases, []caseRun{one, one, refused}, make([]caseRun, 3))
	inOrder(t, page, "## Exclusive CPUs",
		"| `one` | 110 (100 to 120) | 11.0 (10.0 to 12.0) | 9.00 (8.00 to 10.0) | 1.00 (1.00 to 1.00) | 3 | burst 50ms | 11.0 |",
		"| `refused` | 110 (100 to 120) | 11.0 (10.0 to 12.0) | - | - | refused | leave it | 110 |")
	if strings.Contains(page, "| `half` | 110 (") {
		t.Errorf("half a CPU is not a whole one:\n%s", page)
	}
}

// Each record of the tree is on a page, and the pages are of these records.
func TestEachRecordIsOnAPage(t *testing.T) {
	measured, err := readResults("results.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	first, err := readResults("first.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	looked, err := study.ReadLines[sampledLook]("sampled.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	fix := markdown(services.Cases(), measured.all(services.Cases()), first.all(services.Cases()))
	truth := truthMarkdown(services.Cases(), measured.all(services.Cases()), looked.All)
	for name, want := range map[string]string{"fix": fix, "truth": truth} {
		if got, err := os.ReadFile("../../docs/results/" + name + ".md"); err != nil || string(got) != want {
			t.Errorf("docs/results/%s.md is out of date: make truth-page (%v)", name, err)
		}
	}
	for _, k := range slices.Concat(measured.All, first.All) {
		if !strings.Contains(fix, "`"+k.Case+"`") {
			t.Errorf("%s: no page has it", k.Case)
		}
	}
}

// inOrder checks that a page has these texts, one after another.
func inOrder(t *testing.T, page string, all ...string) {
	t.Helper()
	rest := page
	for _, want := range all {
		i := strings.Index(rest, want)
		if i < 0 {
			t.Fatalf("%q is missing, or not in its place, in\n%s", want, page)
		}
		rest = rest[i+len(want):]
	}
	if strings.Contains(page, "%!") {
		t.Errorf("a verb without its value:\n%s", page)
	}
}
