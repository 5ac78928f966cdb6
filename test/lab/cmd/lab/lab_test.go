package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/test/lab"
	"github.com/unthrottle/unthrottle/test/lab/wire"
)

// TestVerdict is the table of exit codes that `git bisect run` uses.
func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		status wire.ExitStatus
		want   int // -1: the lab's own failure, which run turns into 125
	}{
		{wire.ExitStatus{}, 0},
		{wire.ExitStatus{Code: 1}, 1},
		{wire.ExitStatus{Code: 124}, 124},
		{wire.ExitStatus{Code: 125}, 125}, // the command itself reports: cannot be tested
		{wire.ExitStatus{Code: 126}, -1},
		{wire.ExitStatus{Code: 127}, -1},
		{wire.ExitStatus{Code: 139}, 1},
		{wire.ExitStatus{Code: -1, Signal: "SIGSEGV"}, 1},
		{wire.ExitStatus{NotRun: "no such file"}, -1},
	} {
		var stderr bytes.Buffer
		err := verdict(c.status, &stderr)
		got := -1
		if code, ok := err.(exitCode); ok {
			got = int(code)
		} else if err == nil {
			got = 0
		}
		if got != c.want {
			t.Errorf("%+v: got %d (%v), want %d", c.status, got, err, c.want)
		}
	}
}

func TestWrongUseIs125(t *testing.T) {
	cache := t.TempDir()
	for _, c := range []struct {
		args string
		want string
	}{
		{"run", "requires at least 1 arg"},
		{"run --smp 0 -- true", "--smp 0"},
		{"run --l3 3 -- true", "--l3 3"},
		{"run --memory 1 -- true", "--memory 1"},
		{"run --cgroup v3 -- true", "--cgroup v3"},
		{"run --slow 0 -- true", "--slow 0"},
		{"run --slow 1.5 -- true", "whole number from 1 to 100, or auto"},
		{"run --slow-json x -- true", "give --slow too"},
		{"run --steady -- true", "--steady: give --slow too"},
		{"run --node --packages nodejs -- true", "--node and --packages exclude each other"},
		{"dance", `unknown command "dance"`},
		{"fetch --all 6.18", "exclude each other"},
	} {
		var out bytes.Buffer
		if code := run(append(strings.Fields(c.args), "--cache", cache), &out, &out); code != exitCannotTest ||
			!strings.Contains(out.String(), c.want) {
			// Flags after -- belong to the command. These errors come before any use of the cache.
			t.Errorf("%s: code %d, %q; want %q", c.args, code, &out, c.want)
		}
	}
}

func TestList(t *testing.T) {
	var out bytes.Buffer
	if code := run([]string{"list", "--cache", t.TempDir()}, &out, &out); code != 0 {
		t.Fatalf("code %d: %s", code, &out)
	}
	for _, want := range []string{"two-sockets-16", "four-l3-16", lab.DefaultSMP, "6.18", "V1 CPUSET", "v1 with many CPUs is covered by"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	out.Reset()
	if code := run([]string{"list", "--kernels", "--topologies"}, &out, &out); code != 0 ||
		!strings.Contains(out.String(), "four-l3-16 "+lab.DefaultSMP+" 2\n") || !strings.HasSuffix(out.String(), "7.2\n") {
		t.Errorf("code %d: %s", code, &out)
	}
}

func TestParseFiles(t *testing.T) {
	here := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(here, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	files, err := parseFiles([]string{"/bin/x=" + here})
	if err != nil || len(files) != 1 || files[0].In != "/bin/x" || files[0].From != here {
		t.Errorf("got %+v %v", files, err)
	}
	for _, bad := range []string{"x", "=x", "x=", "x=" + here + "none"} {
		if _, err := parseFiles([]string{bad}); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestMust(t *testing.T) {
	m, err := lab.ParseMachine(lab.DefaultSMP, 2, lab.NUMAPerSocket)
	if err != nil {
		t.Fatal(err)
	}
	for kernel, want := range map[string]string{
		"6.18":      "root,v2,cpus=16,bpf,sched_ext",
		"6.1":       "root,v2,cpus=16,bpf",
		"./bzImage": "root,v2,cpus=16",
	} {
		if got := must(m, kernel, "v2"); got != want {
			t.Errorf("%s: got %s, want %s", kernel, got, want)
		}
	}
	if got := must(m, "6.1", "v1"); got != "root,v1,cpus=16,bpf" {
		t.Errorf("on v1: got %s", got)
	}
}
