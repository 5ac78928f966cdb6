package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const earlierPage = "# Head\n\nwords\n\n## In short\n\n| a | 27 of 28 |\n\n## Misses\n\n- `old`: why\n\n" +
	"## `new`, limit 1 CPU\n\nnew as it was\n\n## `old`, limit 2 CPUs\n\nold as it was\n\na host, on 2026-01-02\n"

func TestWithEarlier(t *testing.T) {
	only := func(names ...string) func(string) bool {
		return func(name string) bool {
			for _, n := range names {
				if n == name {
					return true
				}
			}
			return false
		}
	}
	page := "# Head\n\n## In short\n\n| a | 1 of 1 |\n\n## `new`, limit 1 CPU\n\nnew of today\n"
	once := withEarlier(page, earlierPage, only("new"))
	rest := once
	for _, want := range []string{
		page, earlierHeading, "Not measured since: `old`.", earlierShort + "\n\n| a | 27 of 28 |\n", "## `old`, limit 2 CPUs\n\nold as it was\n\na host, on 2026-01-02\n",
	} {
		i := strings.Index(rest, want)
		if i < 0 {
			t.Fatalf("%q is missing, or not in its place, in\n%s", want, once)
		}
		rest = rest[i+len(want):]
	}
	if strings.Contains(once, "new as it was") || strings.Contains(once, "- `old`: why") {
		t.Errorf("what is measured anew, or a miss of another day, was carried over:\n%s", once)
	}
	if twice := withEarlier(page, once, only("new")); twice != once {
		t.Errorf("made again it differs:\n%s\nbefore\n%s", twice, once)
	}
	if all := withEarlier(page, once, only("new", "old")); all != page {
		t.Errorf("with every service measured it is more than the page:\n%s", all)
	}
	if first := withEarlier(page, "", only("new")); first != page {
		t.Errorf("without an earlier page it is more than the page:\n%s", first)
	}
}

// TestWritePage writes a page of one result in a folder, beside an earlier page.
func TestWritePage(t *testing.T) {
	dir, of := t.TempDir(), cases()
	out := filepath.Join(dir, "page.md")
	name, other := of[0].name, of[1].name
	if err := os.WriteFile(out, []byte("# Head\n\n## `"+name+"`, limit 1 CPU\n\nbefore\n\n## `"+other+"`, limit 1 CPU\n\nbefore\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if err := writePage(dir, out, truthMarkdown); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(out); err != nil || string(got) != string(before) {
		t.Errorf("no result is kept, and the page is another: %v\n%s", err, got)
	}
	k := measuredCase("burst 50ms", map[string][]float64{leaveIt: {100, 110, 120}, "burst 50ms": {10, 11, 12}})
	k.Case, k.Commit, k.At = name, "0123abcd", time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)
	if err := k.write(dir); err != nil {
		t.Fatal(err)
	}
	ofFix := func(of []testCase, all []caseRun) string { return markdown(of, all, make([]caseRun, len(of))) }
	for _, page := range []func([]testCase, []caseRun) string{truthMarkdown, ofFix} {
		if err := os.WriteFile(out, before, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := writePage(dir, out, page); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"| 2026-03-04 0123abcd |", "commit 0123abcd", "Not measured since: `" + other + "`.", "before\n"} {
			if !strings.Contains(string(got), want) {
				t.Errorf("%q is missing in\n%s", want, got)
			}
		}
		if strings.Count(string(got), "## `"+name+"`") != 1 {
			t.Errorf("%s is there other than once:\n%s", name, got)
		}
	}
}
