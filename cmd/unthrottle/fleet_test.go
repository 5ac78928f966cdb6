package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The program beside this one is taken before that in PATH, and where there is none the error says how to get it.
func TestFindFleet(t *testing.T) {
	here, elsewhere := t.TempDir(), t.TempDir()
	self := func() (string, error) { return filepath.Join(here, "unthrottle"), nil }
	program := func(dir string, mode os.FileMode) string {
		name := filepath.Join(dir, fleetProgram)
		if err := os.WriteFile(name, []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
		return name
	}
	t.Setenv("PATH", elsewhere)
	if _, err := findFleet(self); err == nil || !strings.Contains(err.Error(), "make fleet") || !strings.Contains(err.Error(), here) {
		t.Errorf("there is none: %v", err)
	}
	inPath := program(elsewhere, 0o755)
	if got, err := findFleet(self); err != nil || got != inPath {
		t.Errorf("in PATH: %s, %v", got, err)
	}
	beside := program(here, 0o644)
	if got, err := findFleet(self); err == nil || !strings.Contains(err.Error(), beside) {
		t.Errorf("no program beside it: %s, %v", got, err)
	}
	if err := os.Chmod(beside, 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := findFleet(self); err != nil || got != beside {
		t.Errorf("beside: %s, %v", got, err)
	}
}

// Arguments reach the other program as they are, and its exit code comes back.
func TestFleetStartsItsProgram(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, fleetProgram),
		[]byte("#!/bin/sh\nfor a in \"$@\"; do echo \"<$a>\"; done\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	r := unthrottle(t, "fleet", "report", "a b", "--json", "--bound=1%", "--help")
	if want := "<report>\n<a b>\n<--json>\n<--bound=1%>\n<--help>\n"; r.out != want || r.code != 3 {
		t.Errorf("%d, %q, %s", r.code, r.out, r.errors)
	}
	if r := unthrottle(t, "fleet", "--help"); r.code != 0 || !strings.Contains(r.out, "fleet report DIR") {
		t.Errorf("help: %d, %q", r.code, r.out)
	}
}
