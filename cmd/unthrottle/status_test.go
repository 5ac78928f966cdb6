package main

import (
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/agent"
	"github.com/unthrottle/unthrottle/internal/cure/switchback"
)

// Status says since when there are rows and what went, and shows a folder's name as data.
func TestStatusTellsOfRemovedRows(t *testing.T) {
	got := exporting(&agent.Exporting{Process: 7, Dir: "/srv/a\x1b[2J", Bytes: 3 << 19,
		From: time.Date(2026, 11, 25, 12, 0, 0, 0, time.Local), Removed: 2})
	for _, want := range []string{"process 7", "since 2026-11-25 12:00:00 in /srv/a\\x1b[2J, 1.5 MiB", "removed 2 older files"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
}

// A trial that is spread over hours is a line: how far it is, what each remedy brought; and of what was kept what came of it.
func TestStatusTellsOfSpreadTrials(t *testing.T) {
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	seen := switchback.Compared{Pairs: 3, Times: new(0.71), Low: new(0.6)}
	trial := agent.SpreadTrial{Cgroup: "/a\x1b[2J", Began: now.Add(-2 * time.Hour), NextBlock: now.Add(4 * time.Minute), Blocks: 9,
		Remedied: switchback.Counted{Requests: 1200, Slow: 3}, LeftAlone: switchback.Counted{Requests: 700, Slow: 2},
		Variants: []agent.SpreadVariant{{Name: "burst 50ms", Compared: seen}, {Name: "narrow", Out: new("a request took 3 s")},
			{Name: "period 20ms"}}}
	if got, want := spreadTrial(trial, now), "trial: /a\\x1b[2J: 9 blocks in 2 h, the next in 4 min; burst 50ms 0.71 times what leaving it is "+
		"(0.60 to not bounded); narrow is not tried again: a request took 3 s; of 1 remedy nothing is measured yet; "+
		"3 of 1200 requests with a remedy took longer than twice the usual (left alone: 2 of 700)\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	trial.Kept = &agent.SpreadKept{Transaction: "id", Promised: 0.7, Compared: seen}
	if got, want := spreadTrial(trial, now), "kept: id of /a\\x1b[2J promised 0.70 times what leaving it is; since then 0.71 times what leaving it "+
		"is (0.60 to not bounded), in 3 blocks left alone; it does not bring half of that\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
