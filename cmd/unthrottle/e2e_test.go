package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// envMain makes the test binary the program itself, so that what is tested is
// what users run, exit codes and streams included.
const envMain = "UNTHROTTLE_TEST_MAIN"

// Tests with t.Parallel wait for windows and rounds in cgroups of their own, need little
// CPU, and pin nothing: on two CPUs the pin of one would leave none free for another's.
func TestMain(m *testing.M) {
	if os.Getenv(envMain) != "" || len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "__") {
		main()
		return
	}
	if os.Getenv(envHostile) != "" {
		hostile()
		return
	}
	code := m.Run()
	if builtIn != "" {
		_ = os.RemoveAll(builtIn)
	}
	os.Exit(code)
}

// run is one call of the program.
type run struct {
	code        int
	out, errors string
}

func unthrottle(t *testing.T, args ...string) run {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // patience, no claim
	defer cancel()
	return runIn(ctx, t, "", args...)
}

func runIn(ctx context.Context, t *testing.T, input string, args ...string) run {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return runProgram(ctx, t, exe, input, args...)
}

// withoutRace is the program without the race detector, built once: under the detector a forecast takes eight times as long.
var withoutRace = sync.OnceValues(func() (string, error) {
	dir, err := buildDir()
	if err != nil {
		return "", err
	}
	exe := filepath.Join(dir, "unthrottle")
	build := exec.Command("go", "build", "-o", exe, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as the Makefile compiles all but what has the race detector
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return exe, nil
})

// buildDir is a folder for programs that several tests start.
var buildDir = sync.OnceValues(func() (dir string, err error) {
	dir, err = os.MkdirTemp("", "unthrottle-test-")
	builtIn = dir
	return dir, err
})

// builtIn is that folder; "": nothing was built.
var builtIn string

// unraced runs the program without the race detector, for what takes long and is not about goroutines. The lab has no
// detector, and no Go to build with.
func unraced(t *testing.T, args ...string) run {
	t.Helper()
	exe := unracedExe(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // patience, no claim
	defer cancel()
	return runProgram(ctx, t, exe, "", args...)
}

// unracedExe is this program without the race detector.
func unracedExe(t *testing.T) string {
	t.Helper()
	find := withoutRace
	if !require.Raced || require.InLab() {
		find = os.Executable
	}
	exe, err := find()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

func runProgram(ctx context.Context, t *testing.T, exe, input string, args ...string) run {
	t.Helper()
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Env = append(os.Environ(), envMain+"=1", "COLUMNS=300") // messages in one line
	cmd.Stdin = strings.NewReader(input)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	err := cmd.Run()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return run{cmd.ProcessState.ExitCode(), out.String(), complaints.String()}
}

// decoded is what the program printed, as JSON, after ending with code.
func decoded[T any](t *testing.T, r run, code int) T {
	t.Helper()
	var v T
	if r.code != code {
		t.Fatalf("exit code %d, want %d\n%s%s", r.code, code, r.out, r.errors)
	}
	if err := json.Unmarshal([]byte(r.out), &v); err != nil {
		t.Fatalf("%v in\n%s", err, r.out)
	}
	fits(t, r.out)
	return v
}

type listed struct {
	Path                string   `json:"path"`
	Limit               *float64 `json:"limit_cpus"`
	Window              float64  `json:"window_seconds"`
	Used                *float64 `json:"used_cpus"`
	Periods             *uint64  `json:"periods"`
	ThrottledPeriods    *uint64  `json:"throttled_periods"`
	ThrottledSeconds    *float64 `json:"throttled_seconds"`
	OwnThrottledSeconds *float64 `json:"own_throttled_seconds"`
	StoppedLow          *float64 `json:"stopped_seconds_low"`
	StoppedHigh         *float64 `json:"stopped_seconds_high"`
	ThrottledBy         *string  `json:"throttled_by"`
	ThrottledByAll      []struct {
		Path    string  `json:"path"`
		Seconds float64 `json:"seconds"`
	} `json:"throttled_by_all"`
	CPUs string `json:"cpus"`
}

func list1(t *testing.T, path string, args ...string) listed {
	t.Helper()
	containers := decoded[struct{ Containers []listed }](t,
		unthrottle(t, append([]string{"ls", "-o", "json", "--below", path}, args...)...), 0).Containers
	if len(containers) != 1 || containers[0].Path != path {
		t.Fatalf("want one line for %s, got %+v", path, containers)
	}
	return containers[0]
}

// transactions are `status --json` or its --history, key by key.
type transactions struct {
	InForce []map[string]any `json:"in_force"`
	Ended   []map[string]any `json:"ended"`
}

// inForceList is `status --json`, without the parameters: their types differ.
type inForceList struct {
	InForce []struct {
		ID      string     `json:"id"`
		Target  string     `json:"target"`
		Verdict string     `json:"verdict"`
		Trial   *txn.Trial `json:"trial"`
	} `json:"in_force"`
}

type changed struct {
	ID     string `json:"id"`
	Writes []struct {
		Path, File, Before, After string
		Done                      bool
	} `json:"writes"`
	Skipped []struct{ Path, Why string } `json:"skipped"`
	Verdict string                       `json:"verdict"`
	Remedy  string                       `json:"remedy"`
	Kept    bool                         `json:"kept"`
}

// putBack restores all. The one thing that may differ is a list that was empty
// on a kernel that cannot empty it.
func putBack(t *testing.T, tr *cgrouptest.Tree) {
	t.Helper()
	r := decoded[changed](t, unthrottle(t, "restore", "--json", "--scope", tr.Top, "--state-dir", tr.StateDir), 0)
	for _, s := range r.Skipped {
		if !tr.InheritsEmpty() || !strings.Contains(s.Why, "all that its parent has") {
			t.Errorf("restore left %s: %s", s.Path, s.Why)
		}
	}
	if r.Verdict != "restored" && r.Verdict != "nothing to do" && len(r.Skipped) == 0 {
		t.Errorf("restore: %+v", r)
	}
}

// The whole journey on one container: see it, plan, apply, see it gone, put it
// back byte by byte.
func TestSeeApplyRestore(t *testing.T) {
	require.Alone(t, ownCPU)
	require.EachCgroup(t, "the files that are read and written")
	tr := cgrouptest.New(t)
	busy, quiet := tr.Make("pod/busy"), tr.Make("pod/quiet")
	tr.Limit(busy, 0.3)
	pid := tr.Work(busy, 6)
	tr.Work(quiet, 0)
	write := []string{"--scope", tr.Top, "--state-dir", tr.StateDir}

	before := list1(t, busy)
	if before.Limit == nil || *before.Limit != 0.3 {
		t.Errorf("limit %v, want 0.3", before.Limit)
	}
	if before.ThrottledBy == nil || *before.ThrottledBy != "self" {
		t.Errorf("throttled by %v, want self", before.ThrottledBy)
	}
	if *before.ThrottledPeriods*2 < *before.Periods || *before.Periods == 0 {
		t.Errorf("%d of %d periods throttled, want most", *before.ThrottledPeriods, *before.Periods)
	}
	if got := unthrottle(t, "ls", "--below", tr.Top, "--bound", "5%"); got.code != 1 {
		t.Errorf("--bound 5%%: exit code %d, want 1: %s", got.code, got.errors)
	}
	settings := tr.Settings()

	planned := decoded[changed](t, unthrottle(t, append(write, "apply", busy, "--remedy", "pin", "--dry-run", "--json")...), 0)
	if len(planned.Writes) == 0 || planned.Writes[0].Done || tr.Settings() != settings {
		t.Fatalf("a dry run must say what it would write and write nothing: %+v", planned)
	}

	done := decoded[changed](t, unthrottle(t, append(write, "apply", busy, "--remedy", "pin", "--json")...), 0)
	if done.Verdict != "unverified" || len(done.Writes) < len(planned.Writes) {
		t.Errorf("got %+v, want what was planned, unverified", done)
	}
	for _, w := range done.Writes {
		if !w.Done || !strings.HasPrefix(w.Path, tr.Top) {
			t.Errorf("write %+v: not done, or outside the scope", w)
		}
	}
	after := list1(t, busy)
	if after.Limit != nil || *after.StoppedHigh > 0.01 {
		t.Errorf("after pin: limit %v, stopped at most %v s", after.Limit, *after.StoppedHigh)
	}
	other := list1(t, quiet)
	if after.CPUs == "" || strings.Contains(other.CPUs, after.CPUs) {
		t.Errorf("CPUs %s are not exclusive: the other container has %s", after.CPUs, other.CPUs)
	}
	if got := cgrouptest.Allowed(t, pid); got != after.CPUs {
		t.Errorf("the process may run on %s, its container on %s", got, after.CPUs)
	}

	show := []string{"status", "--json", "--state-dir", tr.StateDir}
	status := decoded[transactions](t, unthrottle(t, show...), 0).InForce
	if len(status) != 1 || status[0]["target"] != busy || status[0]["remedy"] != "pin" || status[0]["verdict"] != "unverified" ||
		status[0]["since"] == nil || status[0]["by"] == nil {
		t.Errorf("status %v", status)
	}
	if got := unthrottle(t, append(write, "apply", busy, "--remedy", "burst")...); got.code != 2 ||
		!strings.Contains(got.errors, "in force already") {
		t.Errorf("a second remedy: exit code %d, %q", got.code, got.errors)
	}

	putBack(t, tr)
	if got := tr.Settings(); got != settings {
		t.Errorf("not as before:\n%s\nwas\n%s", got, settings)
	}
	if status := decoded[transactions](t, unthrottle(t, show...), 0).InForce; len(status) != 0 {
		t.Errorf("still in force: %v", status)
	}
	history := decoded[transactions](t, unthrottle(t, append(show, "--history")...), 0).Ended
	if len(history) != 1 || history[0]["outcome"] == nil {
		t.Errorf("history without outcome: %v", history)
	}
}

// A child that its parent's quota stops looks clean in its own counters.
func TestTheAncestorIsNamed(t *testing.T) {
	t.Parallel()
	tr := cgrouptest.New(t)
	pod := tr.Make("pod")
	child := tr.Make("pod/child")
	tr.Limit(pod, 0.02) // so little that it is used up beside any load
	// One thread, since nothing will limit it for a while.
	tr.Work(child, 1)
	got := list1(t, child)
	if got.ThrottledBy == nil || *got.ThrottledBy != pod {
		t.Errorf("throttled by %v, want %s", got.ThrottledBy, pod)
	}
	if got.Limit == nil || *got.Limit != 0.02 {
		t.Errorf("effective limit %v, want the parent's 0.02", got.Limit)
	}
	if got.OwnThrottledSeconds != nil && *got.OwnThrottledSeconds != 0 {
		t.Errorf("own throttled time %v, want none", *got.OwnThrottledSeconds)
	}
	if len(got.ThrottledByAll) != 1 || got.ThrottledByAll[0].Path != pod || got.ThrottledByAll[0].Seconds <= 0 {
		t.Errorf("throttled by all: %+v", got.ThrottledByAll)
	}

	// Below a cgroup that the user named, the quota may be lifted, and is put back.
	settings := tr.Settings()
	write := []string{"--scope", tr.Top, "--state-dir", tr.StateDir}
	decoded[changed](t, unthrottle(t, append(write, "apply", child, "--remedy", "weight", "--json")...), 0)
	if now := list1(t, child); now.Limit != nil {
		t.Errorf("limit %v after weight, want none", *now.Limit)
	}
	// A sibling without a quota of its own would have become unlimited.
	decoded[changed](t, unthrottle(t, append(write, "restore", "--json")...), 0)
	tr.Make("pod/sibling")
	refused := unthrottle(t, append(write, "apply", child, "--remedy", "weight")...)
	if refused.code != 2 || !strings.Contains(refused.errors, "sibling") {
		t.Errorf("exit code %d, %q: want a refusal that names the sibling", refused.code, refused.errors)
	}
	if got := tr.Settings(); !strings.HasPrefix(got, settings[:20]) || strings.Count(got, "100000") != strings.Count(settings, "100000")+1 {
		// The sibling brings a default period; nothing else may differ.
		t.Logf("settings now:\n%s", got)
	}
}

func TestFix(t *testing.T) {
	require.Alone(t, ownCPU)
	tr := cgrouptest.New(t)
	busy := tr.Make("busy")
	tr.Limit(busy, 0.3)
	tr.Work(busy, 6)
	write := []string{"--scope", tr.Top, "--state-dir", tr.StateDir, "--for", "1s"}
	settings := tr.Settings()

	// A source of latencies needs no recording.
	if got := unthrottle(t, append(write, "fix", busy, "--remedy", "pin", "--slo", "p99<20ms", "--slo-command",
		"seq 1 600")...); got.code != 2 || !strings.Contains(got.errors, "--yes") || tr.Settings() != settings {
		t.Errorf("no terminal to ask: exit code %d, %q; settings changed: %v", got.code, got.errors, tr.Settings() != settings)
	}

	// A sleeper beside burners is what a pin is for; the probe sees it where there is one.
	got := decoded[changed](t, unraced(t, append(write, "fix", busy, "--yes", "--remedy", "pin", "--json", "--for", "3s")...), 0)
	if got.Verdict != "better" && got.Verdict != "unverified" || !got.Kept || got.Remedy != "pin" {
		t.Errorf("without slo: %+v", got)
	}
	putBack(t, tr)
	if got := tr.Settings(); got != settings {
		t.Fatalf("not put back:\n%s\nwas\n%s", got, settings)
	}
}

// A source decides, which tells the truth about a file that stands for a service.
func TestFixBySource(t *testing.T) {
	for _, tc := range []struct {
		name, after, verdict string
		kept                 bool
	}{
		{"better", "12", "better", true},
		{"no change", "97", "no change", false},
		{"worse", "300", "worse", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tr := cgrouptest.New(t)
			busy := tr.Make("busy")
			tr.Limit(busy, 0.3)
			tr.Work(busy, 6)
			settings := tr.Settings()
			source := filepath.Join(t.TempDir(), "latency")
			// 1,000 samples, others for each call: the first call prints the old latency, the later ones the new.
			script := fmt.Sprintf(`#!/bin/sh
if [ -e "$0.%[1]s" ]; then v=%[1]s; else v=97; : > "$0.%[1]s"; fi
i=0; while [ $i -lt 1000 ]; do echo $v.$i$$; i=$((i+1)); done
`, tc.after)
			if err := os.WriteFile(source, []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			code := 0
			if !tc.kept {
				code = 1 // it is stopped as before
			}
			got := decoded[changed](t, unthrottle(t, "fix", busy, "--yes", "--remedy", "raise", "--to", "0.6", "--json", "--for", "1s",
				"--scope", tr.Top, "--state-dir", tr.StateDir, "--slo", "p99<20ms", "--slo-command", "sh "+source), code)
			if got.Verdict != tc.verdict || got.Kept != tc.kept {
				t.Errorf("verdict %q, kept %v; want %q, %v", got.Verdict, got.Kept, tc.verdict, tc.kept)
			}
			putBack(t, tr)
			if tr.Settings() != settings {
				t.Error("not put back")
			}
		})
	}
}

func TestFixLeavesAloneWhatIsFine(t *testing.T) {
	t.Parallel()
	tr := cgrouptest.New(t)
	calm := tr.Make("calm")
	// Far above what it needs: emulated CPUs stall for many ms and are charged for it.
	tr.Limit(calm, 1.5)
	tr.Work(calm, 0)
	got := decoded[changed](t, unthrottle(t, "fix", calm, "--json", "--for", "1s", "--scope", tr.Top, "--state-dir", tr.StateDir), 0)
	if got.Verdict != "nothing to fix" || len(got.Writes) != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestBadInput(t *testing.T) {
	state := t.TempDir()
	rules := filepath.Join(state, "rules.yaml")
	if err := os.WriteFile(rules, []byte("version: 1\nmood: apply\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args string
		code int
		says string
	}{
		{"nonsense", 2, "unknown command"},
		{"ls --nonsense", 2, "see 'unthrottle ls --help'"},
		{"bench service --html /", 2, "a folder: give a file"},
		{"bench service --html /dev/null", 2, "give a file of your own"},
		{"ls -o yaml", 2, "choose text, json or wide"},
		{"ls --bound 105%", 2, "0% to 100%"},
		{"ls --for 1us", 2, "--for"},
		{"ls --below /a/../b", 2, "--below"},
		{"apply no-such-thing --remedy pin", 2, "no-such-thing"},
		{"apply pid:999999999 --remedy pin", 2, "pid:999999999"},
		{"apply x", 2, "--remedy is missing"},
		{"apply x --remedy magic", 2, "choose pin"},
		{"apply x --remedy pin --cpus -1", 2, "above 0"},
		{"apply x --remedy pin --reserve 0-99999999", 2, "--reserve"},
		{"apply", 2, "TARGET is missing"},
		{"fix x --slo-command y", 2, "belong together"},
		{"fix x --slo p99 --slo-command true", 2, "p99<20ms"},
		{"topology --sysfs /no/such/dir", 2, "/no/such/dir"},
		{"agent", 2, "--config is missing"},
		{"agent --config /no/such/file", 2, "/no/such/file"},
		{"agent --config " + rules, 2, "line 2"},
		{"demo --for -1s", 2, "give a time from"},
		{"demo --for 0s", 2, "give a time from"},
		{"ls extra", 2, "takes no arguments"},
		{"rstore", 2, "restore"},
		{"fix", 2, "TARGET is missing"},
		{"apply x --remedy burst --cpus 1", 2, "a setting of pin"},
		{"apply x --remedy burst --burst 0", 2, "above 0"},
		{"apply x --remedy raise --to NaN", 2, "no number"},
		{"apply x --remedy raise --to 1 --factor 2", 2, "one of them"},
		{"apply x --remedy pin --cpus 1.5", 2, "--cpus"},
		{"apply x --remedy pin --full-cores --idle-siblings", 2, "give one of them"},
		{"apply x --remedy narrow --full-cores", 2, "a setting of pin"},
		{"apply x --remedy burst --realtime", 2, "a setting of pin"},
		{"apply --system --irqs", 2, "not of --system"},
		{"apply / --remedy pin --scope=", 2, "--scope is empty"},
		{"status --limit -1", 2, "--limit"},
		{"explain", 2, "TARGET is missing"},
		{"explain no-such-thing", 2, "no-such-thing"},
		{"explain x --for 0s", 2, "give a time from 200ms to 1h"},
		{"explain x --for -1s", 2, "give a time from 200ms to 1h"},
		{"explain x --for 2h", 2, "give a time from 200ms to 1h"},
		{"explain x --at 03:12 --record y", 2, "goes with none of"},
		{"explain x --at noon", 2, "--at noon"},
		{"explain x --bound x", 2, "--bound"},
		{"explain / --record /dev/null", 2, "/dev/null"},
	} {
		t.Run(tc.args, func(t *testing.T) {
			args := strings.Fields(tc.args)
			if args[0] == "apply" || args[0] == "fix" {
				args = append(args, "--state-dir", state)
			}
			got := unthrottle(t, args...)
			if got.code != tc.code || !strings.Contains(got.errors, tc.says) {
				t.Errorf("exit code %d, want %d; standard error %q, want %q in it", got.code, tc.code, got.errors, tc.says)
			}
			if got.out != "" {
				t.Errorf("standard output is for data: %q", got.out)
			}
		})
	}
}

func TestHelpGroupsTheCommands(t *testing.T) {
	got := unthrottle(t, "--help")
	last := -1
	for _, want := range []string{"Look", "  ls ", "Try", "  demo ", "Change", "  fix ", "  restore "} {
		at := strings.Index(got.out, want)
		if at < last {
			t.Errorf("%q is missing or out of place in\n%s", want, got.out)
		}
		last = at
	}
	if got.code != 0 || got.errors != "" {
		t.Errorf("exit code %d, %q", got.code, got.errors)
	}
}
