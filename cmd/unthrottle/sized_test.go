package main

import (
	"encoding/json"
	"os"
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
