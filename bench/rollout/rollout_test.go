package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/test/study"
)

// The page is made of the records that the tree keeps.
func TestPageIsOfTheRecords(t *testing.T) {
	have, err := study.ReadLines[night]("records.jsonl.gz")
	if err != nil || len(have.All) == 0 {
		t.Fatal(len(have.All), err)
	}
	text, err := os.ReadFile("../../docs/results/rollout.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != page(slices.Clone(have.All)) {
		t.Error("docs/results/rollout.md is not of bench/rollout/records.jsonl.gz: make results-rollout ROLLOUT='-for 0'")
	}
}

// Kills are in order, one in each part of the time, and far enough from the next that the agent recovers in between.
func TestMoments(t *testing.T) {
	for seed := range uint64(50) {
		all := moments(10, 2*time.Hour, seed)
		if len(all) != 10 || !slices.IsSorted(all) || all[0] <= 0 || all[9] >= 2*time.Hour {
			t.Fatal(all)
		}
		for i := range all[1:] {
			if all[i+1]-all[i] < 2*recovers {
				t.Errorf("seed %d: %v", seed, all)
			}
		}
	}
	if all := moments(0, time.Hour, 1); len(all) != 0 {
		t.Error(all)
	}
}

const saidByStatus = `{"in_force": [
	{"target": "/x/app", "remedy": "burst", "parameters": {"burst": "50ms", "period": "300ms"}, "trial": null},
	{"target": "/x/db", "remedy": "narrow", "parameters": {}, "trial": {"state": "abandoned"}},
	{"target": "/x/web", "remedy": "burst", "parameters": {}, "trial": {"state": "running"}},
	{"target": "/x/mq", "remedy": "pin", "parameters": {}, "trial": null}],
	"spread_trials": [{"cgroup": "/x/app", "blocks": 7, "remedied": {"requests": 0, "slow_requests": 0}, "variants": [], "kept": {"promised_times": 0.7, "pairs": 2, "times": 0.8,
	"still_helps": true}}, {"cgroup": "/x/db", "blocks": 5,
	"remedied": {"requests": 200, "slow_requests": 1}, "left_alone": {"requests": 1000, "slow_requests": 1}, "variants": [{"name": "narrow", "pairs": 1, "times": 0.6, "out": null},
	{"name": "burst 50ms", "pairs": 2, "times": 0.5, "times_low": 0.4, "times_high": 0.9, "out": null},
	{"name": "period 20ms", "pairs": 1, "times": 0.1, "out": "a request took 3 s"}]}]}`

// What status tells becomes what was in force, on trial, abandoned, and what came of each trial; a page says it.
func TestTold(t *testing.T) {
	var told told
	if err := json.Unmarshal([]byte(saidByStatus), &told); err != nil {
		t.Fatal(err)
	}
	if got := told.onTrial(); !slices.Equal(got, []string{"narrow of db", "burst of web"}) {
		t.Error(got)
	}
	if got := told.abandoned(); !slices.Equal(got, []string{"narrow of db", "pin of mq"}) {
		t.Error(got)
	}
	n := night{Seconds: 600, AgentCPU: 12, Alone: 120, Warnings: []string{`level=WARN msg="its trial is ended" container=db why="no look"`}, Services: []serviced{{Name: "app", Restored: true, Minutes: []minute{{At: -60, Load: 1, P99: new(80.0)},
		{At: 60, Load: 1, P99: new(30.0)}, {At: 120, Load: 1}, {At: 180, Load: 0.5, P99: new(9.0)}, {At: 570, Load: 1, P99: new(1.0)},
		{At: 630, Load: 1, P99: new(90.0)}}}, {Name: "db"}, {Name: "web", Restored: true}},
		Kills: []kill{{OnTrial: told.onTrial(), Abandoned: told.abandoned()}, {}}}
	a := agents{night: &n, all: []*staged{{path: "/x/app"}, {path: "/x/db"}, {path: "/x/web"}}}
	a.take(told, true)
	got := page([]night{n})
	for _, want := range []string{
		"The agent used 0.020 CPUs.", "| `app` | 0 | 85.0 (2) | 30.0 (1) | - | 7 | - | - | kept, promised 0.70 times; since then 0.80 in 2 blocks left alone | " +
			"burst burst 50ms period 300ms |",
		"| `db` | 0 | - | - | - | 5 | 0.50 | 0.10 | still tried; lowest burst 50ms, 0.50 times (0.40 to 0.90) | nothing |",
		"| `web` | 0 | - | - | - | - | - | - | no trial began | nothing |",
		"- `db`: its limit, weight or CPUs after `restore` are others", "- `web`: no trial began", "- `db`: its trial was ended by an error", "kill 1: narrow of db was in force still 30s after",
		"narrow of db, burst of web; nothing."} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// Lines that differ in time, container and transaction alone are one.
func TestWarnings(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	log := `time=1 level=INFO msg="applied"
time=2 level=WARN msg="not fixed" cgroup=/unthrottle-service-a.1/app stopped_per_second_low=0.1 why="x of 20261129-085611-e10071"
time=3 level=WARN msg="not fixed" cgroup=/unthrottle-service-b.2/app stopped_per_second_low=0.2 why="x of 20261129-085612-e10072"
`
	if err := os.WriteFile(name, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := warnings(name)
	if err != nil || !slices.Equal(got, []string{`level=WARN msg="not fixed" cgroup=app why="x of "`}) {
		t.Errorf("%q, %v", got, err)
	}
}
