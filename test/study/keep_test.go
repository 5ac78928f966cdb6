package study

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

type result struct {
	Made
	Seed uint64
}

func TestLinesGoOn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new", "results.jsonl")
	first, err := ReadLines[result](file)
	if err != nil || first.All != nil {
		t.Fatalf("%v, %v before anything was kept", first, err)
	}
	made := Now(time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC))
	if made.Machine == "" || made.Day() != "2026-03-04" || made.At.Nanosecond() != 0 {
		t.Errorf("%+v", made)
	}
	for seed := range uint64(3) {
		if err := first.Add(result{made, seed}); err != nil {
			t.Fatal(err)
		}
	}
	again, err := ReadLines[result](file)
	if err != nil || !reflect.DeepEqual(again.All, first.All) || len(again.All) != 3 || again.All[2].Seed != 2 ||
		again.All[2].Made != made {
		t.Errorf("%+v, %v", again, err)
	}
	for line, want := range map[string]string{`{"Seed":`: "line 2", strings.Repeat(" ", maxLine+1): "after 1 lines"} {
		damaged := filepath.Join(t.TempDir(), "damaged")
		if err := os.WriteFile(damaged, []byte("{\"Seed\":1}\n"+line+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadLines[result](damaged); err == nil || !strings.Contains(err.Error(), damaged) ||
			!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "remove") {
			t.Errorf("%.20q: %v", line, err)
		}
	}
	if err := (&Lines[result]{File: "/proc/none/results.jsonl"}).Add(result{}); err == nil {
		t.Error("kept nowhere")
	}
}

// A compressed file has the same pieces, and one that is none says so.
func TestCompressedLines(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new", "results.jsonl.gz")
	first := &Lines[result]{File: file}
	for seed := range uint64(200) {
		if err := first.Add(result{Seed: seed}); err != nil {
			t.Fatal(err)
		}
	}
	again, err := ReadLines[result](file)
	if err != nil || !reflect.DeepEqual(again.All, first.All) {
		t.Errorf("%+v, %v", again, err)
	}
	if info, err := os.Stat(file); err != nil || info.Size() > 3000 {
		t.Errorf("%v, %v: it is not compressed", info, err)
	}
	if err := os.WriteFile(file, []byte("{}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadLines[result](file); err == nil || !strings.Contains(err.Error(), file) ||
		!strings.Contains(err.Error(), "remove it") {
		t.Errorf("no gzip: %v", err)
	}
}

// What an older version kept of a piece, and this one does not know, stays where the piece does not change.
func TestUnknownFieldsStay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results.jsonl")
	if err := os.WriteFile(file, []byte("{\"Seed\":1,\"longer\":[1,2]}\n{\"Seed\":2,\"longer\":[3]}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := ReadLines[result](file)
	if err != nil {
		t.Fatal(err)
	}
	l.All[1].Seed = 9
	slices.Reverse(l.All)
	if err := l.Write(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	lines := strings.Split(string(text), "\n")
	if err != nil || len(lines) != 3 || lines[1] != "{\"Seed\":1,\"longer\":[1,2]}" || strings.Contains(lines[0], "longer") ||
		!strings.Contains(lines[0], "9") {
		t.Errorf("%q, %v", text, err)
	}
}

func TestWholeFiles(t *testing.T) {
	name := filepath.Join(t.TempDir(), "new", "one.json")
	var got result
	if found, err := Read(name, &got); found || err != nil {
		t.Errorf("found %v, %v before it was kept", found, err)
	}
	if err := Write(name, result{Seed: 7}); err != nil {
		t.Fatal(err)
	}
	if found, err := Read(name, &got); !found || err != nil || got.Seed != 7 {
		t.Errorf("%v, %v, %+v", found, err, got)
	}
	if err := WritePage(name, "{"); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(name, &got); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "remove it") {
		t.Errorf("a damaged piece: %v", err)
	}
	if err := WritePage("/nonexistent/page.md", ""); err == nil {
		t.Error("written to nowhere")
	}
	if err := Write(name, func() {}); err == nil {
		t.Error("a function was kept")
	}
}
