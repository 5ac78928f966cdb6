package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestWritePage writes a page of one result in a folder.
func TestWritePage(t *testing.T) {
	dir, of := t.TempDir(), cases()
	out := filepath.Join(dir, "page.md")
	name, other := of[0].name, of[1].name
	if err := os.WriteFile(out, []byte("before"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := writePage(dir, out, truthMarkdown); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(out); err != nil || string(got) != "before" {
		t.Errorf("no result is kept, and the page is another: %v\n%s", err, got)
	}
	k := measuredCase("burst 50ms", map[string][]float64{leaveIt: {100, 110, 120}, "burst 50ms": {10, 11, 12}})
	k.Case, k.Commit, k.At = name, "0123abcd", time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)
	if err := k.write(dir); err != nil {
		t.Fatal(err)
	}
	ofFix := func(of []testCase, all []caseRun) string { return markdown(of, all, make([]caseRun, len(of))) }
	for _, page := range []func([]testCase, []caseRun) string{truthMarkdown, ofFix} {
		if err := writePage(dir, out, page); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(got), "- `"+other+"`: not measured yet") {
			t.Errorf("%s is not named in\n%s", other, got)
		}
	}
}
