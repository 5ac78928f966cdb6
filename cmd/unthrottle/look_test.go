package main

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"
)

// A look at a process of ours: the document of explain, by counters. What is no process is told, with the exit code of its kind.
func TestLook(t *testing.T) {
	r := unthrottle(t, "look", strconv.Itoa(os.Getpid()), "--for", "2s", "--json")
	var seen struct {
		Schema, Seen  string
		Window        float64  `json:"window_seconds"`
		Pools         []any    `json:"pools"`
		OwnRemedies   []string `json:"own_remedies"`
		NotMeasured   []string `json:"not_measured"`
		LostEvents    *int     `json:"lost_events"`
		StoppedPeriod *int     `json:"stopped_intervals"`
	}
	if err := json.Unmarshal([]byte(r.out), &seen); err != nil {
		t.Fatalf("exit code %d: %v: %s", r.code, err, r.errors)
	}
	if seen.Schema != "explain" || seen.Seen != "counters" || seen.Window <= 0 || seen.Pools == nil || seen.OwnRemedies == nil ||
		len(seen.NotMeasured) == 0 || seen.LostEvents != nil || r.code != exitFine && r.code != exitNotMeasurable {
		t.Errorf("exit code %d: %+v", r.code, seen)
	}
	for _, c := range []struct {
		pid  string
		code int
		says string
	}{
		{"cart", exitFailure, "no PID"}, {"0", exitFailure, "no PID"}, {"-1", exitFailure, ""},
		{strconv.Itoa(1 << 30), exitNotMeasurable, "there is none"},
	} {
		if r := unthrottle(t, "look", c.pid); r.code != c.code || !strings.Contains(r.errors, c.says) {
			t.Errorf("%s: exit code %d: %s", c.pid, r.code, r.errors)
		}
	}
}
