package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/test/wait"
)

// A fix that is killed while it looks at the effect leaves a trial that status
// names. The next command that writes puts everything back, and so does restore.
func TestKilledTrial(t *testing.T) {
	tr := cgrouptest.New(t)
	busy, other := tr.Make("pod/busy"), tr.Make("pod/other")
	for _, path := range []string{busy, other} {
		tr.Limit(path, 0.3)
		tr.Work(path, 4)
	}
	before := tr.Settings()
	for _, next := range [][]string{
		{"restore", "--scope", tr.Top},
		{"apply", other, "--remedy", "raise", "--to", "0.4", "--for", "100ms", "--scope", tr.Top},
	} {
		i := fixUnderWay(t, tr, busy)
		pid := i.cmd.Process.Pid
		running := decoded[inForceList](t, unthrottle(t, "status", "--json", "--state-dir", tr.StateDir), 0).InForce
		if len(running) != 1 || running[0].Trial == nil || running[0].Trial.State != txn.TrialRunning ||
			running[0].Trial.PID != pid || running[0].Verdict != "on trial" {
			t.Errorf("under way: %+v", running)
		}
		if err := i.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = i.cmd.Wait()
		if tr.Settings() == before {
			t.Error("nothing was in force")
		}
		abandoned := decoded[inForceList](t, unthrottle(t, "status", "--json", "--state-dir", tr.StateDir), 0).InForce
		if len(abandoned) != 1 || abandoned[0].Trial == nil || abandoned[0].Trial.State != txn.TrialAbandoned ||
			abandoned[0].Verdict != "trial abandoned" {
			t.Errorf("killed: %+v", abandoned)
		}
		r := unthrottle(t, "status", "--state-dir", tr.StateDir)
		for _, want := range []string{"trial: pin of", "which was to judge it, has ended", "'unthrottle restore' puts it back"} {
			if !strings.Contains(r.out, want) {
				t.Errorf("status %q, want %q in it", r.out, want)
			}
		}
		if r := unthrottle(t, append(next, "--state-dir", tr.StateDir)...); r.code != 0 {
			t.Errorf("%v: exit code %d: %s%s", next, r.code, r.out, r.errors)
		}
		if next[0] != "restore" {
			held := decoded[inForceList](t, unthrottle(t, "status", "--json", "--state-dir", tr.StateDir), 0).InForce
			if len(held) != 1 || held[0].Target != other || held[0].Trial != nil {
				t.Errorf("in force: %+v", held)
			}
			putBack(t, tr)
		}
		if got := tr.Settings(); got != before {
			t.Errorf("%v: settings\n%s\nwant\n%s", next, got, before)
		}
	}
}

// A fix that is killed at any moment of a trial in turns leaves nothing that the next restore, or an agent that starts, does not put back.
// UNTHROTTLE_KILLS is how many moments are drawn.
func TestKilledTurns(t *testing.T) {
	t.Parallel()
	kills := 2
	if n, err := strconv.Atoi(os.Getenv("UNTHROTTLE_KILLS")); err == nil {
		kills = n
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(t.TempDir(), "source")
	if err := os.WriteFile(source, []byte("#!/bin/sh\nexec awk 'BEGIN { srand(); for (i = 0; i < 600; i++) print 50 "+
		"+ 50 * rand() }'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	draw := rand.New(rand.NewPCG(1, uint64(kills)))
	for n := range kills {
		after := 2*time.Second + time.Duration(draw.Int64N(int64(45*time.Second)))
		t.Run(fmt.Sprintf("%d after %v", n, after.Round(time.Millisecond)), func(t *testing.T) {
			t.Parallel()
			tr := cgrouptest.New(t)
			busy := tr.Make("busy")
			tr.Limit(busy, 0.1)
			tr.Work(busy, 2)
			before := tr.Settings()
			cmd := exec.Command(exe, "fix", busy, "--yes", "--for", "1s", "--slo", "p99<20ms", "--slo-command", source,
				"--scope", tr.Top, "--state-dir", tr.StateDir)
			cmd.Env = append(os.Environ(), envMain+"=1")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(after)
			_ = cmd.Process.Kill() // it may have ended
			_ = cmd.Wait()
			t.Logf("a turn was in force: %v", tr.Settings() != before)
			if n%2 == 0 {
				if r := unthrottle(t, "restore", "--scope", tr.Top, "--state-dir", tr.StateDir); r.code != 0 {
					t.Errorf("restore: exit code %d: %s%s", r.code, r.out, r.errors)
				}
			} else {
				start(t, "mode: apply\nscope: "+tr.Top+"\nrules:\n- match: {cgroup: "+busy+"}\n  remedy: none\n",
					"--state-dir", tr.StateDir)
				wait.Until(t, "the turn is taken back", func() bool { return tr.Settings() == before })
			}
			if got := tr.Settings(); got != before {
				t.Errorf("settings\n%s\nwant\n%s", got, before)
			}
		})
	}
}

// An agent that is killed while it judges a change leaves a trial. The next agent
// rolls it back when it starts, whatever its own rules ask for.
func TestAgentKilledOnTrial(t *testing.T) {
	t.Parallel()
	tr := cgrouptest.New(t)
	busy := tr.Make("busy")
	tr.Limit(busy, 0.3)
	tr.Work(busy, 2)
	before := tr.Settings()
	dir := rootOnly(t)
	source, asked := filepath.Join(dir, "latency"), filepath.Join(dir, "asked")
	script := fmt.Sprintf("#!/bin/sh\nif [ -e %[1]s ]; then touch %[1]s.again; exec sleep 25; fi\ntouch %[1]s\nseq 100 700\n", asked)
	if err := os.WriteFile(source, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	rules := "mode: apply\nscope: " + tr.Top + "\nrules:\n- match: {cgroup: " + busy + "}\n  "
	first := start(t, rules+"remedy: raise\n  to: 0.4\n  slo: {objective: p99<20ms, command: "+source+"}\n", "--state-dir", tr.StateDir)
	wait.Until(t, "the change is on trial", func() bool {
		_, err := os.Stat(asked + ".again")
		return err == nil
	})
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.cmd.Wait()
	if tr.Settings() == before {
		t.Error("nothing was in force")
	}
	if r := unthrottle(t, "status", "--state-dir", tr.StateDir); !strings.Contains(r.out, "trial: raise of") {
		t.Errorf("status %q", r.out)
	}
	second := start(t, rules+"remedy: none\n", "--state-dir", tr.StateDir)
	wait.Until(t, "the trial is rolled back", func() bool { return tr.Settings() == before })
	if got := second.get("/healthz"); got != "ok\n" {
		t.Errorf("/healthz: %q", got)
	}
	if r := unthrottle(t, "status", "--history", "--state-dir", tr.StateDir); !strings.Contains(r.out, "trial abandoned") {
		t.Errorf("history %q", r.out)
	}
}
