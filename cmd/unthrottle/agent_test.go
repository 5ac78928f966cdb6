package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/test/lab/require"
	"github.com/unthrottle/unthrottle/test/wait"
)

// background is a running agent.
type background struct {
	t       *testing.T
	cmd     *exec.Cmd
	config  string
	address string
	said    chan string // what it said by its end

	mu    sync.Mutex
	sofar strings.Builder
}

// hasSaid tells whether a text is in what it said so far.
func (b *background) hasSaid(text string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Contains(b.sofar.String(), text)
}

func (b *background) say(line string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fmt.Fprintln(&b.sofar, line)
}

// start runs an agent on a port of the kernel's choice and waits until it
// listens.
func start(t *testing.T, rules string, args ...string) *background {
	t.Helper()
	config := filepath.Join(rootOnly(t), "rules.yaml")
	if err := os.WriteFile(config, []byte("version: 1\nlisten: 127.0.0.1:0\nstartup: 0s\n"+rules), 0o600); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// A deadline of its own, should the test be killed.
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	b := &background{t: t, config: config,
		cmd: exec.CommandContext(ctx, exe, append([]string{"agent", "--config", config}, args...)...), said: make(chan string, 1)}
	b.cmd.Env = append(os.Environ(), envMain+"=1")
	pipe, err := b.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	listens := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(pipe)
		for told := false; lines.Scan(); {
			b.say(lines.Text())
			if m := regexp.MustCompile(`http://(\S+)/metrics`).FindStringSubmatch(lines.Text()); m != nil && !told {
				told = true
				listens <- m[1]
			}
		}
		close(listens)
		b.said <- b.sofar.String()
	}()
	var ok bool
	if b.address, ok = <-listens; !ok {
		t.Fatalf("the agent ended: %s", <-b.said)
	}
	t.Cleanup(func() { _ = b.cmd.Process.Kill(); _ = b.cmd.Wait() })
	return b
}

// rootOnly is a folder that root alone can write, all the way up: the test's
// own temporary folder lies below a sticky one that everybody can write, which
// is fine too.
func rootOnly(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for at := dir; at != "/"; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o022 != 0 && info.Mode()&os.ModeSticky == 0 {
			t.Fatalf("%s can be written by others", at)
		}
	}
	return dir
}

func (b *background) get(path string) string {
	b.t.Helper()
	text, err := b.page(path)
	if err != nil {
		b.t.Fatal(err)
	}
	return text
}

func (b *background) page(path string) (string, error) {
	client := http.Client{Timeout: 10 * time.Second}
	r, err := client.Get("http://" + b.address + path)
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(io.LimitReader(r.Body, 16<<20))
	return string(text), err
}

// metric is the value of the series whose line begins with this.
func metric(page, series string) string {
	for line := range strings.SplitSeq(page, "\n") {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			return value
		}
	}
	return ""
}

func TestAgentObservesOnly(t *testing.T) {
	t.Parallel()
	tr := cgrouptest.New(t)
	busy := tr.Make("busy")
	tr.Limit(busy, 0.2)
	tr.Work(busy, 4)
	settings := tr.Settings()
	rows := filepath.Join(t.TempDir(), "rows")
	b := start(t, "scope: "+tr.Top+"\nexport: {dir: "+rows+", node: n1}\nrules:\n- remedy: auto\n", "--state-dir", tr.StateDir)
	series := func(name string, more ...string) string {
		return fmt.Sprintf(`unthrottle_container_%s{container="%s",id="%s",namespace="",pod=""%s}`, name, busy, busy,
			strings.Join(more, ""))
	}
	wait.Until(t, "stopped time is exported", func() bool {
		v := metric(b.get("/metrics"), series("stopped_low_seconds_total"))
		return v != "" && v != "0"
	})
	page := b.get("/metrics")
	if got := metric(page, series("limit_cpus", `,scope="own"`)); got != "0.2" {
		t.Errorf("limit %q, want 0.2", got)
	}
	for _, name := range []string{"used_cpu_seconds_total", "periods_total", "throttled_periods_total", "stopped_high_seconds_total"} {
		if got := metric(page, series(name)); got == "" || got == "0" {
			t.Errorf("%s is %q", name, got)
		}
	}
	if got := b.get("/healthz"); got != "ok\n" {
		t.Errorf("healthz: %q", got)
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
		request, _ := http.NewRequest(method, "http://"+b.address+"/metrics", nil)
		r, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s /metrics: %s", method, r.Status)
		}
	}
	// Findings need some rounds; nothing may be written by then.
	wait.Until(t, "seven rounds", func() bool {
		return len(metric(b.get("/metrics"), "unthrottle_rounds_total")) > 0 && metric(b.get("/metrics"), "unthrottle_rounds_total") >= "7"
	})
	if tr.Settings() != settings {
		t.Error("it wrote something")
	}
	if err := b.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if said := <-b.said; !strings.Contains(said, "observing only") {
		t.Errorf("no finding in\n%s", said)
	}
	if err := b.cmd.Wait(); err != nil {
		t.Errorf("asked to end: %v", err)
	}
	kept := exported(t, rows)
	if len(kept) == 0 || kept[0].Node != "n1" || kept[0].Samples == 0 || kept[0].StoppedHighSeconds == nil ||
		*kept[0].StoppedHighSeconds == 0 {
		t.Errorf("rows of the fleet: %+v", kept)
	}
}

// In apply mode the agent pins what its rule's latency source proves better,
// moves newcomers off the CPUs, survives SIGKILL without losing anything, and
// leaves alone what its rules do not name.
func TestAgentAppliesByRules(t *testing.T) {
	require.Alone(t, ownCPU)
	require.EachCgroup(t, "an agent looks and writes")
	tr := cgrouptest.New(t)
	busy, other := tr.Make("busy"), tr.Make("other")
	tr.Limit(busy, 0.3)
	tr.Limit(other, 0.3)
	tr.Work(busy, 6)
	tr.Work(other, 6)
	settings := tr.Settings()
	source := filepath.Join(rootOnly(t), "latency")
	// Stands for a service: it is as fast as its container is free of a quota.
	script := fmt.Sprintf("#!/bin/sh\nif grep -q -e '^-1' -e '^max' %s/cpu.cfs_quota_us %s/cpu.max 2>/dev/null; then v=12; else v=97; fi\n"+
		"i=0; while [ $i -lt 1000 ]; do echo $v.$i$$; i=$((i+1)); done\n",
		tr.Host.Dir(cgroup.CPU, busy), tr.Host.Dir(cgroup.CPU, busy))
	if err := os.WriteFile(source, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	b := start(t, fmt.Sprintf(`mode: apply
scope: %s
budget: {cpu_share: 1}
rules:
- match: {cgroup: %s}
  remedy: pin
  cpus: 1
  slo: {objective: p99<20ms, command: %s}
`, tr.Top, busy, source), "--state-dir", tr.StateDir)

	var pinned string
	wait.Until(t, "the pin is in force, and better", func() bool {
		all := decoded[transactions](t, unthrottle(t, "status", "--json", "--state-dir", tr.StateDir), 0).InForce
		for _, f := range all {
			if f["target"] == busy && f["verdict"] == "better" {
				pinned, _ = f["parameters"].(map[string]any)["cpus"].(string)
				return true
			}
		}
		return false
	})
	if got := metric(b.get("/metrics"), `unthrottle_remedies_in_force{remedy="pin"}`); got != "1" && got != "" {
		t.Errorf("remedies in force: %q", got)
	}
	newcomer := tr.Make("newcomer")
	wait.Until(t, "the newcomer is off the exclusive CPUs", func() bool {
		_, effective, err := cgroup.CPUs(tr.Host, newcomer)
		return err == nil && !effective.IsEmpty() && !strings.Contains(effective.String(), pinned)
	})

	if err := b.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = b.cmd.Wait()
	putBack(t, tr)
	kept := []string{}
	for line := range strings.SplitSeq(tr.Settings(), "\n") {
		if !strings.Contains(line, "newcomer") {
			kept = append(kept, line)
		}
	}
	if got := strings.Join(kept, "\n"); got != settings {
		t.Errorf("not as before:\n%s\nwas\n%s", got, settings)
	}
}
