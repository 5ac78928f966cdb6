package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// ownCPU is why a test that pins runs alone.
const ownCPU = "a CPU of its own: another test's pin would leave none"

// interrupted is a fix under way. It has applied its remedy and now looks at
// the effect, through a latency source that does not answer.
type interrupted struct {
	cmd    *exec.Cmd
	errors *bufio.Reader
}

func fixUnderWay(t *testing.T, tr *cgrouptest.Tree, target string) interrupted {
	t.Helper()
	// Under nohup the tests would hand an ignored SIGHUP on to their children; one
	// that has a handler here is at its default there.
	handled := make(chan os.Signal, 1)
	signal.Notify(handled, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(handled) })
	dir := t.TempDir()
	script := filepath.Join(dir, "source")
	text := fmt.Sprintf("#!/bin/sh\nif [ -e %[1]s/first ]; then touch %[1]s/second; exec sleep 25; fi\ntouch %[1]s/first\nseq 1 600\n", dir)
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "fix", target, "--yes", "--remedy", "pin", "--for", "1s", "--slo", "p99<20ms", "--slo-command", script,
		"--scope", tr.Top, "--state-dir", tr.StateDir)
	cmd.Env = append(os.Environ(), envMain+"=1")
	complaints, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	i := interrupted{cmd, bufio.NewReader(complaints)}
	for range 6000 {
		if _, err := os.Stat(filepath.Join(dir, "second")); err == nil {
			return i
		}
		time.Sleep(10 * time.Millisecond)
	}
	_ = cmd.Process.Kill()
	said, _ := io.ReadAll(i.errors)
	t.Fatalf("nothing was applied: %s", said)
	return i
}

func (i interrupted) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := i.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// end is what else it said, after it ended with 130.
func (i interrupted) end(t *testing.T) string {
	t.Helper()
	said, err := io.ReadAll(i.errors)
	if err != nil {
		t.Fatal(err)
	}
	_ = i.cmd.Wait()
	if code := i.cmd.ProcessState.ExitCode(); code != exitInterrupted {
		t.Errorf("exit code %d, want %d: %s", code, exitInterrupted, said)
	}
	return string(said)
}

// Ctrl-C, SIGTERM and SIGHUP undo what was applied, and say so.
func TestInterruptUndoes(t *testing.T) {
	require.Alone(t, ownCPU)
	tr := cgrouptest.New(t)
	busy := tr.Make("pod/busy")
	tr.Limit(busy, 0.3)
	tr.Work(busy, 4)
	before := tr.Settings()
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		i := fixUnderWay(t, tr, busy)
		i.signal(t, s)
		if said := i.end(t); !strings.Contains(said, "undoing pin of") || !strings.Contains(said, "a second Ctrl-C leaves it") {
			t.Errorf("%v: %q", s, said)
		}
		if got := tr.Settings(); got != before {
			t.Errorf("%v: settings\n%s\nwant\n%s", s, got, before)
		}
	}
}

// A second Ctrl-C ends it at once, though undoing waits for the journal's lock,
// which is the test's. Restore then undoes the pin. A second hang-up does nothing.
func TestASecondInterruptLeavesItForRestore(t *testing.T) {
	require.Alone(t, ownCPU)
	tr := cgrouptest.New(t)
	busy := tr.Make("pod/busy")
	tr.Limit(busy, 0.3)
	tr.Work(busy, 4)
	before := tr.Settings()
	i := fixUnderWay(t, tr, busy)
	j, err := journal.Open(t.Context(), tr.StateDir, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	i.signal(t, syscall.SIGHUP)
	for {
		line, err := i.errors.ReadString('\n')
		if err != nil {
			t.Fatalf("%v, after %q: nothing is undone", err, line)
		}
		if strings.Contains(line, "undoing pin of") {
			break
		}
	}
	i.signal(t, syscall.SIGHUP)
	i.signal(t, os.Interrupt)
	said := i.end(t)
	open := j.State().Open()
	if len(open) != 1 {
		t.Fatalf("open %v, want the pin", open)
	}
	if want := fmt.Sprintf("left as it is: pin of %q (%s), %d settings", busy, open[0].Txn,
		len(open[0].Holds)); !strings.Contains(said, want) {
		t.Errorf("said %q, want %q in it", said, want)
	}
	if tr.Settings() == before {
		t.Error("the pin was undone")
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	putBack(t, tr)
	if got := tr.Settings(); got != before {
		t.Errorf("restored\n%s\nwant\n%s", got, before)
	}
}

// The first signal undoes, the second ends at once. A hang-up is never the second, and Ctrl-C is not ours while a child has
// the terminal.
func TestAnswerToSignals(t *testing.T) {
	for _, c := range []struct {
		s           os.Signal
		front       bool
		first, then answer
	}{
		{os.Interrupt, false, undoAndEnd, endAtOnce},
		{syscall.SIGTERM, false, undoAndEnd, endAtOnce},
		{syscall.SIGHUP, false, undoAndEnd, goOn},
		{os.Interrupt, true, goOn, goOn},
		{syscall.SIGTERM, true, undoAndEnd, endAtOnce},
		{syscall.SIGHUP, true, undoAndEnd, goOn},
	} {
		childInFront.Store(c.front)
		if first, then := answerTo(c.s, true), answerTo(c.s, false); first != c.first || then != c.then {
			t.Errorf("%v, a child in front: %v: %d, then %d", c.s, c.front, first, then)
		}
	}
	childInFront.Store(false)
	hangupReloads.Store(true)
	defer hangupReloads.Store(false)
	if answerTo(syscall.SIGHUP, true) != goOn {
		t.Error("a hang-up ends the agent")
	}
}
