package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// advisedJSON is what programs read of a recommendation.
type advisedJSON struct {
	Row     *int `json:"row"`
	NotHere []struct {
		Row    int    `json:"row"`
		Remedy string `json:"remedy"`
		Why    string `json:"why"`
	} `json:"not_here"`
	HostUnseen *string `json:"host_unseen"`
}

// refused are the reasons of rows that this host cannot do because of an ancestor's quota, by remedy.
func (a *advisedJSON) refused(t *testing.T, by string) map[string]string {
	t.Helper()
	if a == nil || a.HostUnseen != nil {
		t.Fatalf("%s: %+v", by, a)
	}
	reasons := map[string]string{}
	for _, n := range a.NotHere {
		if strings.Contains(n.Why, "neither a pod's") {
			reasons[n.Remedy] = n.Why
		}
		if a.Row != nil && *a.Row == n.Row {
			t.Errorf("%s recommends a row that it refuses: %+v", by, a)
		}
	}
	return reasons
}

// One rule, three commands: what this host refuses is refused by explain, forecast and fix, with the same reason. Of a file
// they say that it was not looked at.
func TestOneRuleThreeCommands(t *testing.T) {
	t.Parallel()
	require.Root(t)
	require.BPF(t)
	tr := cgrouptest.New(t)
	pod := tr.Make("pod")
	tr.Limit(pod, 0.3) // this quota binds, and it is not ours to change
	busy := tr.Make("pod/busy")
	tr.Work(busy, 3)
	kept := filepath.Join(t.TempDir(), "busy.rec")
	settings := tr.Settings()
	explain := unraced(t, "explain", busy, "--for", "1s", "--json", "--record", kept)
	forecast := unraced(t, "forecast", busy, "--for", "1s", "--json", "--host-load", "0%", "--repeat", "1")
	fix := unraced(t, "fix", busy, "--for", "1s", "--json", "--dry-run")
	type recommending struct {
		Recommended, Chosen *advisedJSON
		Rows                []struct {
			Remedy  string  `json:"remedy"`
			NotHere *string `json:"not_here"`
			Command *string `json:"command"`
		} `json:"rows"`
	}
	said := map[string]recommending{"explain": decoded[recommending](t, explain, 0),
		"forecast": decoded[recommending](t, forecast, 0), "fix": decoded[recommending](t, fix, fix.code)}
	want := said["forecast"].Recommended.refused(t, "forecast")
	if want["period"] == "" {
		t.Errorf("nothing is refused: %q", want)
	}
	for by, document := range said {
		advice := document.Recommended
		if by == "fix" {
			advice = document.Chosen
		}
		got := advice.refused(t, by)
		if got["period"] != want["period"] {
			t.Errorf("%s: %q, forecast: %q", by, got, want)
		}
		for _, row := range document.Rows {
			if row.Remedy == "period" && (row.NotHere == nil || *row.NotHere != want["period"] || row.Command != nil) {
				t.Errorf("%s: row %+v", by, row)
			}
		}
	}
	if text := unraced(t, "explain", busy, "--for", "1s"); !strings.Contains(strings.Join(strings.Fields(text.out),
		" "), "not possible here: the quota that binds is that of "+pod) {
		t.Errorf("explain says nothing of it:\n%s", text.out)
	}
	const unseen = "What this host can do was not looked at: a recording's file"
	if text := unraced(t, "explain", kept); !strings.Contains(strings.Join(strings.Fields(text.out), " "), unseen) {
		t.Errorf("explain of a file does not say it:\n%s", text.out)
	}
	file := decoded[recommending](t, unraced(t, "forecast", kept, "--json", "--host-load", "0%", "--repeat", "1"), 0)
	if file.Recommended == nil || file.Recommended.HostUnseen == nil {
		t.Fatalf("forecast of a file: %+v", file.Recommended)
	}
	for _, n := range file.Recommended.NotHere { // what no host can do is told of a file too
		if !strings.Contains(n.Why, "no unused time to spend") {
			t.Errorf("forecast of a file: %+v", n)
		}
	}
	if got := tr.Settings(); got != settings {
		t.Errorf("settings\n%s\nwere\n%s", got, settings)
	}
}
