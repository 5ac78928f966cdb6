package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// A simulation that would take hours ends with Ctrl-C.
func TestSimulateInterrupted(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "simulate", "-")
	cmd.Env = append(os.Environ(), envMain+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// More than a pipe holds: once it is written, the program is up and reads.
	const text = "version: 1\nduration: 1h\nhost: {cpus: 1024}\nworkloads: {w: {kind: burn, threads: 60000}}\n"
	if _, err := in.Write([]byte(strings.Repeat("# a long comment\n", 20_000) + text)); err != nil {
		t.Fatal(err)
	}
	in.Close()
	time.Sleep(100 * time.Millisecond)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	// Simulated to its end it exits with 0. It has as long as the test has: beside other tests it may wait for a CPU.
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
}

func TestSimulate(t *testing.T) {
	const conceptual = "../../examples/scenarios/conceptual.yaml"
	var out struct {
		Cgroups   map[string]map[string]any     `json:"cgroups"`
		Workloads map[string]map[string]float64 `json:"workloads"`
	}
	r := unthrottle(t, "simulate", conceptual, "--json", "--repeat", "3")
	if r.code != 0 {
		t.Fatal(r)
	}
	if err := json.Unmarshal([]byte(r.out), &out); err != nil {
		t.Fatal(err)
	}
	app := out.Cgroups["app"]
	if app["periods"] != 6.0 || app["active_periods"] != 5.0 || app["throttled_periods"] != 4.0 ||
		app["throttled_seconds"] != 0.24 || out.Workloads["request"]["max_ms"] != 440 {
		t.Error(r.out)
	}
	if again := unthrottle(t, "simulate", conceptual, "--json", "--repeat", "3"); again.out != r.out {
		t.Error("the same seeds, another output")
	}
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{conceptual, "--set", "sched_cfs_bandwidth_slice=20ms", "--explain"}, 0, "takes 20 ms from the pool"},
		{[]string{conceptual, "--timeline", "--ascii"}, 0, "999xxx"},
		{[]string{conceptual, "--set", "min_cfs_rq_runtime"}, 2, "give NAME=TIME"},
		{[]string{conceptual, "--set", "slice=1ms"}, 2, "no such constant: choose from sched_cfs_bandwidth_slice"},
		{[]string{conceptual, "--repeat", "0"}, 2, "--repeat 0: give a number from 1"},
		{[]string{conceptual, "--json", "--explain"}, 2, "they go with no --json"},
		{nil, 2, "one SCENARIO.yaml is wanted, not 0"},
		{[]string{"../../examples/scenarios/none.yaml"}, 2, "no such file"},
	} {
		r := unthrottle(t, append([]string{"simulate"}, test.args...)...)
		if r.code != test.code || !strings.Contains(r.out+r.errors, test.want) {
			t.Errorf("%v: %+v", test.args, r)
		}
	}
	r = runIn(t.Context(), t, "version: 1\nhost: {cpus: 1}\nworkloads:\n  w: {kind: burn, threads: -1}\n", "simulate", "-")
	if r.code != 2 || !strings.Contains(r.errors, "-:4: workloads.w.threads") {
		t.Errorf("%+v", r)
	}
}
