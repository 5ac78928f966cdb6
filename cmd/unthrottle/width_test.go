package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/text"
)

// Whatever a command prints fits 80 columns, and in the locale C it is ASCII without colours.
func TestEveryCommandFits(t *testing.T) {
	recorded, state := writtenRecording(t, true, 0), t.TempDir()
	containers := "../../examples/scenarios/"
	for _, args := range [][]string{
		{"ls", "--for", "100ms"}, {"ls", "--for", "100ms", "-o", "wide"}, {"check"}, {"topology"}, {"status", "--state-dir", state},
		{"status", "--state-dir", state, "--history"}, {"explain", recorded},
		{"forecast", recorded, "--repeat", "1", "--pools", "--load", "1..2"},
		{"demo", "--simulated"}, {"simulate", containers + "conceptual.yaml", "--explain", "--timeline"},
		{"simulate", containers + "service-pools-small.yaml", "--repeat", "2"},
	} {
		out := plain(t, args...)
		for line := range strings.Lines(out) {
			line = strings.TrimRight(line, " \n")
			// A path is kept whole, and may be any process's: it stands alone after its indentation.
			if path := strings.TrimLeft(line, " "); strings.HasPrefix(path, "/") && !strings.Contains(path, " ") {
				continue
			}
			widest := 0
			for _, word := range strings.Fields(line) {
				widest = max(widest, text.Width(word))
			}
			if text.Width(line) > 80 && widest < 68 {
				t.Errorf("unthrottle %s: %d columns: %q", strings.Join(args, " "), text.Width(line), line)
			}
		}
		if strings.ContainsFunc(out, func(r rune) bool { return r > '~' || r == '\x1b' }) {
			t.Errorf("unthrottle %s: not plain ASCII:\n%s", strings.Join(args, " "), out)
		}
	}
}

// plain runs the program in the locale C with 80 columns, and returns what it printed.
func plain(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), unracedExe(t), args...)
	cmd.Env = append(os.Environ(), envMain+"=1", "COLUMNS=80", "LC_ALL=C")
	out, err := cmd.Output()
	if err != nil && len(out) == 0 {
		t.Fatalf("unthrottle %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}
