package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/test/lab/results"
)

const (
	passed  = `{"Action":"pass","Package":"p","Test":"TestA"}` + "\n"
	ended   = `{"Action":"pass","Package":"p","Elapsed":0.5}` + "\n"
	failed  = `{"Action":"fail","Package":"p","Test":"TestA"}` + "\n" + `{"Action":"fail","Package":"p"}` + "\n"
	skipped = `{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:9: needs v2: no mount; runs in the lab\n"}` + "\n" +
		`{"Action":"skip","Package":"p","Test":"TestB"}` + "\n"
	leftOut = `{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:9: needs root, which -short and UNTHROTTLE_PURE leave out\n"}` + "\n" +
		`{"Action":"skip","Package":"p","Test":"TestB"}` + "\n"
)

func TestRun(t *testing.T) {
	for name, c := range map[string]struct {
		host, lab, must string
		code            int
		want            string
	}{
		"good": {passed + ended, passed + ended, "v2", 0, "ok  \tp\t0.500s"},
		"skipped": {passed + skipped + ended, passed + skipped + ended, "", 0,
			"p.TestB\n    host: needs v2: no mount; runs in the lab\n    lab: needs v2"},
		"skipped, must":        {passed + skipped + ended, passed + skipped + ended, "v2", 1, "which UNTHROTTLE_MUST lists as present"},
		"ran in the lab":       {passed + skipped + ended, strings.ReplaceAll(passed, "TestA", "TestB") + ended, "v2", 0, "PASS"},
		"left out everywhere":  {passed + leftOut + ended, passed + ended, "", 1, "p.TestB: left out of a run"},
		"left out, then ran":   {passed + leftOut + ended, strings.ReplaceAll(passed, "TestA", "TestB") + ended, "", 0, "PASS"},
		"left out, then unmet": {passed + leftOut + ended, passed + skipped + ended, "root", 0, "p.TestB\n    host: needs root, which"},
		"slowest": {passed + ended, strings.Replace(passed, "}", `,"Elapsed":2.5}`, 1) + ended, "", 0,
			"    2.5 s  p.TestA (lab)\n    0.0 s  p.TestA (host)"},
		"failed":              {failed, passed + ended, "", 1, "p.TestA (host): fail"},
		"empty":               {passed + ended, "", "", 1, "lab: no test ran"},
		"misspelt must":       {passed + skipped + ended, passed + ended, "v3", 1, `unknown need "v3"`},
		"the lab was cut off": {passed + ended, passed, "", 1, "p (lab): did not end"},
		"the go command said": {"no required module\n", passed + ended, "", 1, "no required module"},
	} {
		dir := t.TempDir()
		host, inLab := filepath.Join(dir, "host.json"), filepath.Join(dir, "lab.json")
		for file, text := range map[string]string{host: c.host, inLab: c.lab} {
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		var out bytes.Buffer
		if code := run([]string{host, inLab}, c.must, &out, &out); code != c.code || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: code %d, want %d and %q in:\n%s", name, code, c.code, c.want, &out)
		}
	}
	var out bytes.Buffer
	if code := run([]string{filepath.Join(t.TempDir(), "none.json")}, "", &out, &out); code != 1 {
		t.Errorf("a missing file gives %d", code)
	}
	if code := run(nil, "", &out, &out); code != 2 {
		t.Errorf("no file gives %d", code)
	}
}

// write makes files of a folder.
func write(t *testing.T, files map[string]string) {
	t.Helper()
	for file, text := range files {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

const failedSaying = `{"Action":"output","Package":"p","Test":"TestA","Output":"    p50 was 3 ms\n"}` + "\n" + failed

// A failure that did not come again when the test ran alone is shown, and fails nothing.
func TestFailedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		later []string
		code  int
		want  string
	}{
		"passed twice": {[]string{passed + ended, passed + ended}, 0,
			"FAILED ONCE, then passed 2 times alone: p.TestA; what it printed:\n    p50 was 3 ms\n"},
		"failed again":    {[]string{passed + ended, failed}, 1, "p.TestA (host): fail"},
		"ran again once":  {[]string{passed + ended}, 1, "p.TestA (host): fail"},
		"did not run":     {nil, 1, "p.TestA (host): fail"},
		"unreadable file": {[]string{passed + ended, passed + ended, "oops\n"}, 1, "oops"},
	} {
		host := filepath.Join(t.TempDir(), "host.json")
		files := map[string]string{host: failedSaying}
		for i, text := range c.later {
			files[results.LaterFile(host, 0, i)] = text
		}
		write(t, files)
		var out bytes.Buffer
		if code := run([]string{host}, "", &out, &out); code != c.code || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: code %d, want %d and %q in:\n%s", name, code, c.code, c.want, &out)
		}
	}
}

// What fails once in the third of the last runs is a failure, and good again once it passes. Older runs do not count.
func TestFailedOnceTooOften(t *testing.T) {
	dir := t.TempDir()
	host, history := filepath.Join(dir, "host.json"), filepath.Join(dir, "cache", "failed-once.txt")
	noise := map[string]string{host: failedSaying, results.LaterFile(host, 0, 0): passed + ended,
		results.LaterFile(host, 0, 1): passed + ended}
	good := map[string]string{host: passed + ended}
	for i, c := range []struct {
		files map[string]string
		times int
		code  int
		want  string
	}{
		{noise, 1, 0, "  1  p.TestA\n"}, {good, 3, 0, "  1  p.TestA\n"}, {noise, 1, 0, "  2  p.TestA\n"},
		{noise, 1, 1, "p.TestA: failed once in 3 of the last runs"}, {good, 1, 0, "  3  p.TestA\n"},
		{good, 7, 0, "  2  p.TestA\n"}, {good, 2, 0, "PASS\n"}, {noise, 1, 0, "  1  p.TestA\n"},
	} {
		write(t, c.files)
		var out bytes.Buffer
		code := 0
		for range c.times {
			out.Reset()
			code = run([]string{"-failed-once", history, host}, "", &out, &out)
		}
		if code != c.code || !strings.Contains(out.String(), c.want) {
			t.Errorf("step %d: code %d, want %d and %q in:\n%s", i, code, c.code, c.want, &out)
		}
	}
}

func TestFailuresOnly(t *testing.T) {
	good, bad := filepath.Join(t.TempDir(), "pure.json"), filepath.Join(t.TempDir(), "pure.json")
	write(t, map[string]string{good: passed + leftOut + ended, bad: failedSaying})
	var out bytes.Buffer
	if code := run([]string{"-failures", good}, "", &out, &out); code != 0 || out.Len() > 0 {
		t.Errorf("code %d:\n%s", code, &out)
	}
	if code := run([]string{"-failures", bad}, "", &out, &out); code != 1 || !strings.HasPrefix(out.String(), "    p50 was 3 ms\n") {
		t.Errorf("code %d:\n%s", code, &out)
	}
}
