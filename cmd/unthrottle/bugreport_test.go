package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
)

// A report names neither containers nor users, and is written only when asked.
func TestBugReport(t *testing.T) {
	t.Parallel()
	tr := cgrouptest.New(t)
	busy := tr.Make("busy-secret")
	tr.Limit(busy, 0.2)
	if r := unthrottle(t, "apply", busy, "--remedy", "raise", "--to", "0.3", "--for", "200ms", "--scope", tr.Top,
		"--state-dir", tr.StateDir); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	defer putBack(t, tr)
	config := filepath.Join(t.TempDir(), "agent.yaml")
	if err := os.WriteFile(config, []byte("version: 1\nscope: "+tr.Top+
		"\nrules:\n- slo: {objective: p99<20ms, command: hunter2}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	output := filepath.Join(t.TempDir(), "report.tar.gz")
	args := []string{"bug-report", "--state-dir", tr.StateDir, "--config", config, "--file", output}
	shown := unthrottle(t, args...)
	if _, err := os.Stat(output); shown.code != 0 || err == nil || !strings.Contains(shown.errors, "give --yes") {
		t.Errorf("written without --yes: %d, %s", shown.code, shown.errors)
	}
	for _, private := range []string{"busy-secret", strings.Trim(tr.Top, "/"), "hunter2", ", user "} {
		if strings.Contains(shown.out, private) {
			t.Errorf("%q is in\n%s", private, shown.out)
		}
	}
	for _, want := range []string{"==> check.txt <==", "What unthrottle can do here", `"remedy":"raise"`,
		`"limit_cpus":0.3`, "p99<20ms", "==> agent.log <=="} {
		if !strings.Contains(shown.out, want) {
			t.Errorf("%q is not in\n%s", want, shown.out)
		}
	}
	if r := unthrottle(t, append(args, "--yes", "--names")...); r.code != 0 || !strings.Contains(r.out, busy) ||
		!strings.Contains(r.errors, "nothing was sent") {
		t.Errorf("with --names: %+v", r)
	}
	if info, err := os.Stat(output); err != nil || info.Size() == 0 || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}
