package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/explain/live"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// explained is what programs read of `explain --json`. Pointers and slices are nil for null.
type explained struct {
	Cause  *string `json:"cause"`
	Causes []struct {
		Cause    string   `json:"cause"`
		Stopped  *float64 `json:"stopped_seconds"`
		Evidence string   `json:"evidence"`
	} `json:"causes"`
	Limit            *float64 `json:"limit_cpus"`
	Periods          *uint64  `json:"periods"`
	ThrottledPeriods *uint64  `json:"throttled_periods"`
	Stopped          *float64 `json:"stopped_seconds"`
	Window           float64  `json:"window_seconds"`
	EndedEarly       *string  `json:"ended_early"`
	MeanWidth        *float64 `json:"mean_width"`
	Width, Wanted    []struct {
		CPUs    int
		Seconds float64
	}
	Pools []struct {
		Name        string
		Threads     int
		CPU         float64  `json:"cpu_seconds"`
		InThrottled *float64 `json:"cpu_seconds_in_throttled_periods"`
		Widest      int
		Library     *string
		Setting     *string
		Advice      *string
		DelayP99    *float64 `json:"delay_p99_ms"`
	}
	Waiting    map[string]*float64
	Neighbours []map[string]any
	LostEvents *uint64 `json:"lost_events"`
	Checks     []struct {
		Name       string
		ErrorRatio *float64 `json:"error_ratio"`
		OK         *bool
	}
	NotMeasured []string `json:"not_measured"`
}

// TestExplain goes the user's way with one throttled container: text, JSON, page and recording, then the recording.
func TestExplain(t *testing.T) {
	require.EachCgroup(t, "records a cgroup by its id")
	t.Parallel()
	require.Root(t)
	require.BPF(t)
	tr := cgrouptest.New(t)
	busy := tr.Make("busy")
	tr.Limit(busy, 0.3)
	tr.Work(busy, 6)
	dir := t.TempDir()
	kept, page := filepath.Join(dir, "busy.rec"), filepath.Join(dir, "busy.html")

	e := decoded[explained](t, unraced(t, "explain", busy, "--for", "1500ms", "--json", "--record", kept, "--html", page), 0)
	if e.Cause == nil || len(e.Causes) == 0 || e.Causes[0].Cause != *e.Cause || e.Causes[0].Evidence == "" {
		t.Errorf("cause %v of %+v", e.Cause, e.Causes)
	}
	if e.Limit == nil || *e.Limit != 0.3 || e.Periods == nil || e.ThrottledPeriods == nil ||
		*e.ThrottledPeriods*2 < *e.Periods || *e.Periods == 0 {
		t.Errorf("limit %v, %v of %v periods throttled", e.Limit, e.ThrottledPeriods, e.Periods)
	}
	if e.Stopped == nil || *e.Stopped <= 0 || *e.Stopped > e.Window || e.EndedEarly != nil {
		t.Errorf("stopped for %v of %v s, ended early: %v", e.Stopped, e.Window, e.EndedEarly)
	}
	for name, bars := range map[string][]struct {
		CPUs    int
		Seconds float64
	}{"width": e.Width, "wanted": e.Wanted} {
		sum := 0.0
		for _, b := range bars {
			sum += b.Seconds
		}
		if sum < 0.99*e.Window || sum > 1.01*e.Window {
			t.Errorf("%s has %v of %v s", name, sum, e.Window)
		}
	}
	if len(e.Pools) == 0 || e.Pools[0].CPU <= 0 || e.Pools[0].InThrottled == nil || e.Pools[0].Widest < 1 || e.Pools[0].Threads < 1 {
		t.Errorf("pools: %+v", e.Pools)
	}
	reasons := []string{"ancestor_quota", "host_system", "idle_unused", "neighbours", "own_quota", "own_threads", "realtime_limit", "steal"}
	if got := slices.Sorted(maps.Keys(e.Waiting)); !slices.Equal(got, reasons) || e.Waiting["own_quota"] == nil ||
		*e.Waiting["own_quota"] <= 0 {
		t.Errorf("waiting: %v", got)
	}
	if e.LostEvents == nil || e.Neighbours == nil || len(e.Checks) != 3 || e.MeanWidth == nil {
		t.Errorf("lost %v, %d checks, mean %v", e.LostEvents, len(e.Checks), e.MeanWidth)
	}
	for _, c := range e.Checks {
		if (c.ErrorRatio == nil) != (c.OK == nil) {
			t.Errorf("check %s: %v, %v", c.Name, c.ErrorRatio, c.OK)
		}
	}

	if require.InLab() {
		return // what follows reads files, as on every host
	}
	// The recording tells the same again, without rights and as text.
	again := decoded[explained](t, unraced(t, "explain", kept, "--json"), 0)
	if !reflect.DeepEqual(again, e) {
		t.Errorf("of the recording: %+v\nlive: %+v", again, e)
	}
	text := unraced(t, "explain", kept, "--ascii", "--bound", "1%")
	for _, want := range []string{"/unthrottle-test-", "limit 0.3 CPUs", "CPUs at once", "Who spent it",
		"Where waiting went", "own quota"} {
		if !strings.Contains(strings.Join(strings.Fields(text.out), " "), want) {
			t.Errorf("%q is missing in\n%s", want, text.out)
		}
	}
	if text.code != 1 || !strings.Contains(text.errors, "more than 1% of the time") {
		t.Errorf("exit code %d, %s", text.code, text.errors)
	}
	if html, err := os.ReadFile(page); err != nil || !bytes.Contains(html, []byte("</html>")) || bytes.Contains(html, []byte("<script")) {
		t.Errorf("the page: %v, %d bytes", err, len(html))
	}
}

// TestExplainRefuses: what is no recording, a full disk, and a user without rights.
func TestExplainRefuses(t *testing.T) {
	t.Parallel()
	require.Root(t)
	require.BPF(t)
	tr := cgrouptest.New(t)
	busy := tr.Make("busy")
	tr.Limit(busy, 0.3)
	tr.Work(busy, 6)
	dir := t.TempDir()
	kept := filepath.Join(dir, "busy.rec")
	decoded[explained](t, unraced(t, "explain", busy, "--for", "1s", "--json", "--record", kept), 0)
	t.Run("files", func(t *testing.T) { explainBadFiles(t, dir, kept) })
	t.Run("full disk", func(t *testing.T) { explainFullDisk(t, busy, kept) })
	t.Run("no rights", func(t *testing.T) { explainWithoutRights(t, busy) })
}

// explainBadFiles gives explain what is no recording, or only half of one.
func explainBadFiles(t *testing.T, dir, kept string) {
	whole, err := os.ReadFile(kept)
	if err != nil {
		t.Fatal(err)
	}
	changed := func(change func([]byte) []byte) []byte { return change(bytes.Clone(whole)) }
	for name, c := range map[string]struct {
		content []byte
		code    int
		says    string // on standard error, or among what was not measured
	}{
		// So short a recording is one block of events: without it there is nothing.
		"empty":    {nil, 2, "it is empty"},
		"text":     {[]byte("#!/bin/sh\n"), 2, "if a container of that name is meant, name it by its path or id"},
		"newer":    {changed(func(b []byte) []byte { b[bytes.IndexByte(b, recording.Version)] = 99; return b }), 2, "use a newer one"},
		"header":   {changed(func(b []byte) []byte { b[40] ^= 0x55; return b }), 2, "damaged"},
		"cut":      {whole[:20], 2, "cut off within its header"},
		"half":     {whole[:len(whole)*2/3], 2, "cut off before its first events"},
		"scratch":  {changed(func(b []byte) []byte { b[len(b)*2/3] ^= 0x55; return b }), 2, "the checksum of a block is wrong"},
		"no end":   {whole[:len(whole)-8], 0, "the recording was cut off"},
		"and more": {append(bytes.Clone(whole), "more"...), 0, ""},
	} {
		file := filepath.Join(dir, "bad "+name)
		if err := os.WriteFile(file, c.content, 0o600); err != nil {
			t.Fatal(err)
		}
		got := unraced(t, "explain", file, "--json")
		said := got.errors
		if got.code == 0 {
			said = strings.Join(decoded[explained](t, got, 0).NotMeasured, "\n")
		}
		if got.code != c.code || !strings.Contains(said, c.says) || got.code != 0 && !strings.Contains(said, "bad "+name) {
			t.Errorf("%s: exit code %d, want %d; says %q, want %q in it", name, got.code, c.code, said, c.says)
		}
	}
	if got := unraced(t, "explain", kept, "--record", filepath.Join(dir, "other")); got.code != 2 ||
		!strings.Contains(got.errors, "for containers that run") {
		t.Errorf("--record of a recording: exit code %d, %q", got.code, got.errors)
	}
}

// explainFullDisk: the explanation is told all the same, the file that was there before stays, and nothing is left over.
func explainFullDisk(t *testing.T, busy, kept string) {
	small := t.TempDir()
	if err := unix.Mount("none", small, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(small, unix.MNT_DETACH)
	file := filepath.Join(small, "x")
	for _, args := range [][]string{{busy, "--for", "300ms", "--record", file}, {kept, "--html", file}} {
		if err := os.WriteFile(file, []byte("before"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(small, "rest"), make([]byte, 60<<10), 0o600); err != nil {
			t.Fatal(err)
		}
		got := unraced(t, append([]string{"explain"}, args...)...)
		if got.code != 2 || !strings.Contains(got.errors, file+": not written: no space left on device: make room") ||
			!strings.Contains(got.out, "Who spent it") {
			t.Errorf("%v: exit code %d, %q, %d bytes of explanation", args[1:], got.code, got.errors, len(got.out))
		}
		left, err := os.ReadDir(small)
		if before, _ := os.ReadFile(file); err != nil || string(before) != "before" || len(left) != 2 {
			t.Errorf("%v: the file holds %d bytes; left over: %v, %v", args[1:], len(before), left, err)
		}
	}
}

// explainWithoutRights: another user gets what counters tell, and hears what they do not.
func explainWithoutRights(t *testing.T, busy string) {
	dir, err := os.MkdirTemp("", "unthrottle-explain") // below t.TempDir no other user may look
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(dir, "unthrottle")
	if err := os.WriteFile(exe, self, 0o755); err != nil {
		t.Fatal(err)
	}
	as := func(args ...string) run {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, exe, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), envMain+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 61234, Gid: 61234}}
		var out, complaints bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &complaints
		if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return run{cmd.ProcessState.ExitCode(), out.String(), complaints.String()}
	}
	got := as("explain", busy, "--for", "1s", "--json")
	e := decoded[explained](t, run{0, got.out, got.errors}, 0)
	if e.Width != nil || e.Wanted != nil || e.Pools != nil || e.Waiting != nil || e.Neighbours != nil ||
		e.LostEvents != nil || e.Checks != nil {
		t.Errorf("something is no null that counters do not tell: %s", got.out)
	}
	if e.Periods == nil || *e.Periods == 0 || e.Limit == nil || *e.Limit != 0.3 || e.MeanWidth == nil {
		t.Errorf("counters were not told: %s", got.out)
	}
	if decided := e.Cause != nil; decided != (got.code == 0) || !decided && got.code != 3 || decided != (len(e.Causes) > 0) {
		t.Errorf("exit code %d with cause %v", got.code, e.Cause)
	}
	if !strings.Contains(strings.Join(e.NotMeasured, "\n"), "run as root, or with CAP_BPF and CAP_PERFMON") {
		t.Errorf("no way out: %q", e.NotMeasured)
	}
	file := filepath.Join(dir, "x")
	if got := as("explain", busy, "--for", "1s", "--record", file); got.code != 3 ||
		!strings.Contains(got.errors, "run as root") || got.out != "" {
		t.Errorf("--record: exit code %d, %q, %q", got.code, got.errors, got.out)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left over: %v", left)
	}
}

// TestExplainEndsWithItsTarget: nothing is recorded on in silence when the target is gone.
func TestExplainEndsWithItsTarget(t *testing.T) {
	t.Parallel()
	require.Root(t)
	require.BPF(t)
	tr := cgrouptest.New(t)
	for name, c := range map[string]struct {
		remove bool
		says   string
	}{"exits": {false, "all its processes have ended"}, "removed": {true, "its cgroup was removed"}} {
		path := tr.Make(name)
		worker := exec.Command("sleep", "600")
		if err := worker.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { worker.Process.Kill(); worker.Wait() })
		for _, controller := range cgroup.Controllers() {
			if _, ok := tr.Host.Version(controller); ok {
				if err := tr.Host.Attach(controller, path, worker.Process.Pid); err != nil {
					t.Fatal(err)
				}
			}
		}
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, exe, "explain", path, "--for", "1h", "--json")
		cmd.Env = append(os.Environ(), envMain+"=1")
		var out bytes.Buffer
		cmd.Stdout = &out
		said, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(said)
		for began := false; !began; { // on a busy host it first says what it waits for
			line, err := lines.ReadString('\n')
			if began = strings.HasPrefix(line, "recording "); err != nil {
				t.Fatalf("%s: %q, %v", name, line, err)
			}
		}
		time.Sleep(2 * live.MinRecording)
		worker.Process.Kill()
		worker.Wait()
		if c.remove {
			for _, controller := range cgroup.Controllers() {
				if _, ok := tr.Host.Version(controller); ok {
					for tr.Host.Remove(controller, path) != nil && ctx.Err() == nil {
						if _, err := tr.Host.ID(controller, path); err != nil {
							break
						}
						time.Sleep(10 * time.Millisecond)
					}
				}
			}
		}
		rest, _ := io.ReadAll(lines)
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%s: %v: %s", name, err, rest)
		}
		var e explained
		if err := json.Unmarshal(out.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		if e.EndedEarly == nil || *e.EndedEarly != c.says || e.Window <= 0 || e.Window > 60 {
			t.Errorf("%s: ended early: %v, after %v s", name, e.EndedEarly, e.Window)
		}
	}
}
