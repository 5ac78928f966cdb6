package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/ui/report/sized"
)

func TestSized(t *testing.T) {
	out, err := called("sized", "--print", "--request", "1.5", "--json", "--", "envoy", "--print")
	var d sized.Document
	if err != nil || json.Unmarshal([]byte(out), &d) != nil || len(d.Settings) < 12 {
		t.Fatalf("%v, %s", err, out)
	}
	for args, says := range map[string]string{
		"sized":                          "CMD is missing",
		"sized --times 0 -- true":        "numbers above 0",
		"sized --tomcat 0 -- true":       "give a number above 0",
		"sized --request 0 --print":      "numbers above 0",
		"sized --request 65537 --print":  "divisor 1m gives thousandths: 65.537 CPUs",
		"sized -- /no/such/program --to": "/no/such/program",
	} {
		if _, err := called(strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q in it", args, err, says)
		}
	}
}

// The exit codes of env(1): 127 where the program is not there, 126 where it cannot be run.
func TestSizedExitsAsEnv(t *testing.T) {
	dir := t.TempDir()
	notAProgram, noInterpreter := filepath.Join(dir, "data"), filepath.Join(dir, "script")
	if err := os.WriteFile(notAProgram, []byte("data"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(noInterpreter, []byte("#!/no/such/interpreter\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"no-such-program", "/no/such/program", notAProgram, dir, noInterpreter, notAProgram + "/in-a-file"} {
		var want *exec.ExitError
		if err := exec.Command("env", program).Run(); !errors.As(err, &want) {
			t.Fatalf("env %s: %v", program, err)
		}
		if r := unthrottle(t, "sized", "--", program); r.code != want.ExitCode() {
			t.Errorf("%s: %d, env exits with %d: %+v", program, r.code, want.ExitCode(), r)
		}
	}
}

// The program takes the place of this one: its arguments are its own, and its exit code is what comes back.
func TestSizedReplaces(t *testing.T) {
	script := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho \"$$ $1 $OMP_NUM_THREADS\"\nexit 7\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	r := unthrottle(t, "sized", "--request", "0.5", "--times", "1", "--", script, "--json")
	if fields := strings.Fields(r.out); r.code != 7 || len(fields) != 3 || fields[1] != "--json" {
		t.Errorf("%+v", r)
	}
}
