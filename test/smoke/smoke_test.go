package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every target has one row, and every row has its target.
func TestEveryTargetHasARow(t *testing.T) {
	text, err := makefiles("../..")
	all := targets(text)
	if err != nil || len(all) < 20 {
		t.Fatalf("%d targets, %v", len(all), err)
	}
	rows := map[string]int{}
	for _, f := range forms {
		rows[f.target]++
		if !slices.Contains(all, f.target) {
			t.Errorf("no makefile has a target %s: take its row out of test/smoke/targets.go", f.target)
		}
		if f.elsewhere != "" && f.args != nil {
			t.Errorf("%s: arguments, and a reason why it does not run", f.target)
		}
	}
	for _, target := range all {
		if rows[target] != 1 {
			t.Errorf("make %s has %d rows in test/smoke/targets.go, want 1: its shortest form, or why it does not "+
				"run there", target, rows[target])
		}
	}
}

// make alone lists every target that has a description, below the title of its part. What to use comes first.
func TestHelpListsTheTargets(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "make", "--no-print-directory", "-C", "../..", "help").Output()
	if err != nil {
		t.Fatal(err)
	}
	help := string(out)
	text, err := makefiles("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range targets(text) {
		described := regexp.MustCompile(`(?m)^` + target + `:.*## `)
		listed := strings.Contains(help, "  make "+target+" ")
		if has := described.MatchString(text); has != listed {
			t.Errorf("make %s: described: %v, listed: %v", target, has, listed)
		}
	}
	if !strings.HasPrefix(help, "Use it:\n") || strings.Contains(help, "\n:\n") {
		t.Errorf("parts and their order:\n%s", help)
	}
}

func TestTargets(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"Makefile": "include a/b.mk\nX := 1\nlow := 2\n.PHONY: one\none: two ## first\n\t@echo three: four\ntwo:\n",
		"a/b.mk":   "five-6: lab\nNAME ?= x\nsix ::= 7\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := makefiles(dir)
	if got := targets(text); err != nil || strings.Join(got, " ") != "five-6 one two" {
		t.Errorf("%v, %v", got, err)
	}
}
