package accuracy_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/bench/accuracy"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

func readScenario(name string) (string, error) {
	text, err := os.ReadFile(filepath.Join("../../examples/scenarios", name+".yaml"))
	return string(text), err
}

// readReal are the runs on a real kernel that the tree keeps.
func readReal(t *testing.T) (r accuracy.ForReal) {
	t.Helper()
	text, err := os.ReadFile(realFile)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// realFile is where they are kept.
const realFile = "conceptual.json"

func runScenario(s scenario.Scenario, seed uint64, times func(string, time.Duration)) (scenario.Outcome, error) {
	r, err := simulate.Run(s, simulate.Options{Seed: seed, Times: times})
	return r.Outcome, err
}

// One seed of each: what is missed is known, and says why.
func TestPublishedFigures(t *testing.T) {
	claims, err := accuracy.Published{Read: readScenario, Run: runScenario, Seeds: 1, Real: readReal(t)}.Claims()
	if err != nil || len(claims) < 15 {
		t.Fatalf("%d claims, %v", len(claims), err)
	}
	page, err := os.ReadFile("../../docs/results/accuracy.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range claims {
		// What could not be missed is not called met. The figures on the page are of more seeds.
		row, verdict := fmt.Sprintf("\n| %s | %s | ", c.Of, c.Bound), c.Unjudged
		_, rest, ok := strings.Cut(string(page), row)
		if cells, _, _ := strings.Cut(rest, "\n"); !ok || verdict != "" && (c.Verdict() != verdict || !strings.HasSuffix(cells, " | "+verdict+" |")) {
			t.Errorf("docs/results/accuracy.md has not %q %q: go -C bench test -tags accuracy -run PublishedFigures ./accuracy -update", row, verdict)
		}
		t.Logf("%v  %s: %s; %s", c.Met, c.Of, c.Bound, c.Came)
		if !c.Met && c.Why == "" && c.Unjudged == "" {
			t.Errorf("%s: %s came, bound: %s", c.Of, c.Came, c.Bound)
		}
	}
}

// Rules that are wrong are seen.
func TestPublishedFiguresOfWrongRules(t *testing.T) {
	unlimited := func(s scenario.Scenario, seed uint64, times func(string, time.Duration)) (scenario.Outcome, error) {
		for i := range s.Cgroups {
			s.Cgroups[i].Limit.Quota *= 2
		}
		s.Duration = min(s.Duration, 2*time.Second)
		return runScenario(s, seed, times)
	}
	claims, err := accuracy.Published{Read: readScenario, Run: unlimited, Seeds: 1}.Claims()
	if err != nil {
		t.Fatal(err)
	}
	missed := 0
	for _, c := range claims {
		if !c.Met && c.Unjudged == "" {
			missed++
		}
	}
	if missed < 8 {
		t.Errorf("with twice the quota only %d of %d claims are missed", missed, len(claims))
	}
}

func TestPublishedFiguresWithoutTheirScenario(t *testing.T) {
	_, err := accuracy.Published{Read: func(string) (string, error) { return "version: 1\n", nil }, Run: runScenario, Seeds: 1}.Claims()
	if err == nil || !strings.Contains(err.Error(), "conceptual") {
		t.Errorf("got %v", err)
	}
}
