package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/test/wait"
)

// A hang-up makes the agent read its file again. A file with mistakes changes nothing, and they are named.
func TestAgentReloads(t *testing.T) {
	t.Parallel()
	tr := cgrouptest.New(t)
	head := "version: 1\nlisten: 127.0.0.1:0\nscope: " + tr.Top + "\n"
	b := start(t, "scope: "+tr.Top+"\nflight: {probe: false}\n", "--state-dir", tr.StateDir)
	reload := func(text string) {
		t.Helper()
		if err := os.WriteFile(b.config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := b.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	mode := func(mode string) func() bool {
		return func() bool {
			page, err := b.page("/metrics")
			return err == nil && strings.Contains(page, `unthrottle_build_info{mode="`+mode+`"`)
		}
	}
	wait.Until(t, "it observes", mode("observe"))
	if got := b.get("/"); !strings.Contains(got, `href="/metrics"`) {
		t.Errorf("/: %q", got)
	}
	second := filepath.Join(rootOnly(t), "second.yaml")
	if err := os.WriteFile(second, []byte("version: 1\nflight: {probe: false}\nlisten: "+b.address+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for dir, says := range map[string]string{tr.StateDir: "another agent runs with it (process " +
		strconv.Itoa(b.cmd.Process.Pid) + ")", t.TempDir(): "another agent may run already"} {
		if r := unthrottle(t, "agent", "--config", second, "--state-dir", dir); r.code != exitFailure || !strings.Contains(r.errors, says) {
			t.Errorf("a second agent: %+v, want %q", r, says)
		}
	}
	reload(head + "mode: apply\nflight: {probe: false}\n")
	wait.Until(t, "it applies, at the same port", mode("apply"))
	reload(head + "mode: destroy\nintervall: 1s\n")
	wait.Until(t, "the mistakes are named", func() bool { return b.hasSaid("is refused") })
	if !mode("apply")() {
		t.Error("a refused file changed the mode")
	}
	reload(head + "state_dir: /somewhere/else\n")
	// --state-dir goes before the file's, so that this file is fine, and observes.
	wait.Until(t, "it observes again", mode("observe"))
	if err := b.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	said := <-b.said
	for _, want := range []string{`"destroy": choose from observe, apply`, `unknown key "intervall"`, "the old configuration stays"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in\n%s", want, said)
		}
	}
	if err := b.cmd.Wait(); err != nil {
		t.Errorf("asked to end: %v", err)
	}
}

// --check names every mistake and starts nothing.
func TestAgentCheck(t *testing.T) {
	dir := rootOnly(t)
	config := filepath.Join(dir, "rules.yaml")
	check := func(text string, args ...string) run {
		t.Helper()
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return unthrottle(t, append([]string{"agent", "--check", "--config", config, "--state-dir",
			filepath.Join(dir, "state")}, args...)...)
	}
	if r := check("version: 1\nmode: apply\nrules:\n- remedy: auto\n"); r.code != 0 ||
		!strings.Contains(r.out, "is fine: mode apply, 1 rule") ||
		!strings.Contains(r.out, "line 4: this rule applies nothing") {
		t.Errorf("%+v", r)
	}
	for _, c := range []struct {
		text string
		args []string
		want []string
	}{
		{"mode: destroy\nrules:\n- remedy: pray\n", nil,
			[]string{"3 mistakes", "line 1: the key \"version\" is missing", "line 1: \"destroy\"", "line 3: \"pray\""}},
		{"version: 1\nmoed: apply\n", nil, []string{"line 2: unknown key"}},
		{"version: 1\nscope: /no/such/cgroup\n", nil, []string{"1 mistake,", "no such cgroup"}},
		{"version: 1\nmode: apply\nrules:\n- slo: {objective: p99<20ms, command: no-such-program --last}\n", nil,
			[]string{"line 4: slo command \"no-such-program\"", "give the path"}},
		{"version: 1\n", []string{"--budget-cpu", "1"}, []string{"--budget-cpu \"1\" is not a share", "for example 1%"}},
	} {
		r := check(c.text, c.args...)
		for _, want := range c.want {
			if r.code != exitFailure || r.out != "" || !strings.Contains(r.errors, want) {
				t.Errorf("%q: want %q in %+v", c.text, want, r)
			}
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("it made something: %v, %v", left, err)
	}
}
