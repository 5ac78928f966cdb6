package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/bench/services"
	"github.com/unthrottle/unthrottle/test/study"
)

// TestWritePage writes a page of one result.
func TestWritePage(t *testing.T) {
	dir, testCases := t.TempDir(), services.Cases()
	measured := &results{study.Lines[caseRun]{File: filepath.Join(dir, "results.jsonl.gz")}}
	out := filepath.Join(dir, "page.md")
	name, other := testCases[0].Name, testCases[1].Name
	if err := os.WriteFile(out, []byte("before"), 0o644); err != nil {
		t.Fatal(err)
	}
	ofTruth := func(testCases []services.Case, runs []caseRun) string { return truthMarkdown(testCases, runs, nil) }
	if err := writePage(measured, out, ofTruth); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(out); err != nil || string(got) != "before" {
		t.Errorf("no result is kept, and the page is another: %v\n%s", err, got)
	}
	k := measuredCase("burst 50ms", map[string][]float64{leaveIt: {100, 110, 120}, "burst 50ms": {10, 11, 12}})
	k.Case, k.Commit, k.At = name, "0123abcd", time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)
	old := k
	old.Commit = "older"
	for _, one := range []caseRun{old, {Case: "another"}, k} {
		if err := measured.put(one); err != nil {
			t.Fatal(err)
		}
	}
	if again, err := readResults(measured.File); err != nil || len(again.All) != 2 ||
		again.of(name).Commit != k.Commit || again.of(other).Complete {
		t.Errorf("%+v, %v", again, err)
	}
	ofFix := func(testCases []services.Case, runs []caseRun) string {
		return markdown(testCases, runs, make([]caseRun, len(testCases)))
	}
	for _, page := range []func([]services.Case, []caseRun) string{ofTruth, ofFix} {
		if err := writePage(measured, out, page); err != nil {
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
