package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// The host's own slices, played by a subtree: confined to the reserve, no
// other one touched, once more without effect, put back; also after kill -9.
func TestSystemSlices(t *testing.T) {
	require.CPUs(t, 2)
	tr := cgrouptest.New(t)
	service, web := tr.Make("system.slice/sshd.service"), tr.Make("pods/web")
	user := tr.Make("user.slice")
	pids := map[string]int{}
	for _, path := range []string{service, user, web} {
		pids[path] = tr.Work(path, 0)
	}
	write := []string{"--scope", tr.Top, "--state-dir", tr.StateDir}
	settings, all := tr.Settings(), cgrouptest.Allowed(t, pids[web])

	planned := decoded[changed](t, unthrottle(t, append(write, "apply", "--system", "--dry-run", "--json")...), 0)
	if len(planned.Writes) == 0 || planned.Writes[0].Done || tr.Settings() != settings {
		t.Fatalf("a dry run must say what it would write and write nothing: %+v", planned)
	}
	confine := func(args ...string) changed {
		return decoded[changed](t, unthrottle(t, append(append(write, "apply", "--system", "--json"), args...)...), 0)
	}
	if done := confine(); done.Verdict != "unverified" {
		t.Errorf("%+v", done)
	}
	reserve := cgrouptest.Allowed(t, pids[service])
	if reserve == all || cgrouptest.Allowed(t, pids[user]) != reserve || cgrouptest.Allowed(t, pids[web]) != all {
		t.Errorf("the service on %s, the user on %s, web on %s", reserve, cgrouptest.Allowed(t, pids[user]),
			cgrouptest.Allowed(t, pids[web]))
	}
	if again := confine(); again.Verdict != "nothing to do" || len(again.Writes) != 0 {
		t.Errorf("again: %+v", again)
	}
	if moved := confine("--reserve", "1"); moved.Verdict != "unverified" || cgrouptest.Allowed(t, pids[service]) != "1" {
		t.Errorf("with another reserve it runs on %s: %+v", cgrouptest.Allowed(t, pids[service]), moved)
	}
	if got := unthrottle(t, "status", "--state-dir", tr.StateDir); !strings.Contains(got.out, "system") {
		t.Errorf("status does not show it: %s", got.out)
	}
	decoded[changed](t, unthrottle(t, append(write, "restore", "system", "--json")...), 0)
	putBack(t, tr)
	if got := tr.Settings(); got != settings {
		t.Fatalf("not as before:\n%s\nwas\n%s", got, settings)
	}

	killed := 0
	for round := range require.Rounds(t, 5) {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(exe, append(write, "apply", "--system", "--reserve", "0")...)
		cmd.Env = append(os.Environ(), envMain+"=1")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// Once it has begun to write, a little later each round.
		for until := time.Now().Add(20 * time.Second); time.Now().Before(until); time.Sleep(time.Millisecond) {
			if journal, err := os.ReadFile(tr.StateDir + "/journal.jsonl"); err == nil && bytes.Contains(journal, []byte(`"begin"`)) {
				break
			}
		}
		time.Sleep(time.Duration(2*round) * time.Millisecond)
		_ = cmd.Process.Kill()
		if cmd.Wait() != nil {
			killed++
		}
		putBack(t, tr)
		if got := tr.Settings(); got != settings {
			t.Fatalf("killed in round %d, not as before:\n%s\nwas\n%s", round, got, settings)
		}
	}
	t.Logf("%d killed in the middle", killed)
}

func TestSystemSlicesRefused(t *testing.T) {
	t.Parallel()
	tr := cgrouptest.New(t)
	tr.Make("pods/web")
	write := []string{"--scope", tr.Top, "--state-dir", tr.StateDir, "apply", "--system"}
	for _, tc := range []struct{ args, says string }{
		{"", "there is none of"},
		{"--remedy pin", "not of --system"},
		{"--cpus 2", "not of --system"},
		{"web", "takes no arguments"},
		{"--reserve 0-x", "--reserve"},
		{"--reserve 4000", "not there or offline"},
		{"--reserve=", "--reserve is empty"},
	} {
		got := unthrottle(t, append(write, strings.Fields(tc.args)...)...)
		if got.code != 2 || !strings.Contains(got.errors, tc.says) {
			t.Errorf("%s: exit code %d, %q, want %q in it", tc.args, got.code, got.errors, tc.says)
		}
	}
}
