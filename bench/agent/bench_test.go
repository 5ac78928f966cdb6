package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestTargetsAreJudged(t *testing.T) {
	var tb table
	tb.add(scenario{200, 20}, []result{
		{name: variantHot, cost: 0.51, rss: 26e6, polled: 20},
		{name: variantBareHot, cost: 0.25, rss: 1e6, polled: 20},
	})
	tb.add(scenario{200, 200}, []result{{name: variantHot, cost: 1.4, rss: 20e6}, {name: variantBareHot, cost: 1}})
	var b strings.Builder
	tb.print(&b)
	for _, want := range []string{"within 2x of the bare loop 2.04 at most 2 MISSED", "minute 0.51 at most 0.5 MISSED",
		"resident MB 26 at most 25 MISSED", "minute 1.4 at most 1.5 met", "loop 1.4 at most 2 met"} {
		if !strings.Contains(strings.Join(strings.Fields(b.String()), " "), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestOutputIsBounded(t *testing.T) {
	var o output
	for range 100 {
		if n, err := o.Write(make([]byte, 10<<10)); n != 10<<10 || err != nil {
			t.Fatal(n, err)
		}
	}
	if len(o.String()) != 64<<10 {
		t.Errorf("%d bytes kept", len(o.String()))
	}
}

func exampleRun() run {
	return run{Label: "1.2", Kernel: "6.18", CPUs: 2, Agents: []agentCost{
		{Cgroups: 50, Stopped: 5, Start: 0.7, Process: 0.1, Resident: 20e6},
		{Cgroups: 200, Stopped: 200, Process: 1.7, Programs: new(0.2), Runs: new(1e4),
			Recording: new(1.0), Resident: 26e6, ResidentRecording: new(int64(28e6))},
	}}
}

func TestTheWholeAgentIsItsProcessItsProgramsAndItsRecordings(t *testing.T) {
	r := exampleRun()
	if got := r.Agents[1].perMinute(); got < 2.0999 || got > 2.1001 {
		t.Errorf("%v CPU-s per minute; the process takes 1.7, the programs 0.2, 12 recordings an hour 0.2", got)
	}
	text := pageOf([]run{r})
	for _, want := range []string{"| 50, 5 | 0.20 | 0.5 | met | 0.20 | - | - | 20.0 | - | | - | 0.70 | - |",
		"| 200, 200 | 1.05 | 1.0 | MISSED | 0.85 | 0.10 | 10000 | 26.0 | 25 | MISSED | 28.0 |", "Version 1.2, Linux 6.18, 2 CPUs"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// The page is of all records of the tree, each of which it shows.
func TestThePageIsOfItsRuns(t *testing.T) {
	all, err := keep{runs: "runs.json"}.read()
	if err != nil || len(all) == 0 {
		t.Fatal(len(all), err)
	}
	page, err := os.ReadFile("../../docs/results/cost.md")
	if err != nil {
		t.Fatal(err)
	}
	text := pageOf(all)
	if string(page) != text {
		t.Errorf("docs/results/cost.md is out of date; it would read\n%s", text)
	}
	for _, r := range all {
		if row := fmt.Sprintf("\n| %s, %s | ", r.At.Format("2006-01-02 15:04"), r.Label); !strings.Contains(text, row) {
			t.Errorf("no row of %s", r.Label)
		}
	}
}

// README's item is that of the last run of the tree's records.
func TestReadmesFigureIsTheWholeAgents(t *testing.T) {
	r := exampleRun()
	r.Agents = append(r.Agents, agentCost{Cgroups: 1000, Stopped: 100, Process: 1, Programs: new(1.0), Runs: new(1e4), Recording: new(1.0),
		Resident: 40e6})
	text, err := inReadme("- **X**: y\n- **What it costs.** old\n  line\n\n## Next\n", r)
	want := "Per 100 containers the agent uses 1.05 to 1.05 CPU-seconds a minute on a host with 200 containers, 0.22 to 0.22 with 1000; and 26.0 " +
		"to 40.0 MB of memory. 1 of 2 figures miss [the aim](docs/results/cost.md#measured)."
	if err != nil || !strings.Contains(strings.Join(strings.Fields(text), " "), want) ||
		strings.Contains(text, "old") || !strings.HasSuffix(text, "\n\n## Next\n") {
		t.Errorf("%v:\n%s", err, text)
	}
	if _, err := inReadme("nothing", r); err == nil {
		t.Error("a README without the item is accepted")
	}
	all, err := keep{runs: "runs.json"}.read()
	if err != nil || len(all) == 0 {
		t.Fatal(len(all), err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := inReadme(string(readme), all[len(all)-1]); err != nil || text != string(readme) {
		t.Errorf("README.md is not of the last run: make results-cost BENCH=-show (%v)", err)
	}
}
