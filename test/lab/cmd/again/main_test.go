package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/test/lab/results"
)

const failed = `{"Action":"fail","Package":"p","Test":"TestA"}` + "\n" + `{"Action":"fail","Package":"p"}` + "\n"

// The command runs twice for a test that failed, and its events stand beside the run's.
func TestRunsAFailedTestAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kernel.json")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		events  string
		command []string
		code    int
		files   int
		says    string
	}{
		"printed":        {failed, []string{"echo", "TEST of PACKAGE"}, 0, results.LaterRuns, "== once more, twice and alone: p.TestA"},
		"written":        {failed, []string{"cp", "/dev/null", "FILE"}, 0, results.LaterRuns, "p.TestA"},
		"it fails again": {failed, []string{"false"}, 0, results.LaterRuns, "p.TestA"},
		"cannot run":     {failed, []string{"sh", "-c", "exit 125"}, 1, 1, "exit status 125"},
		"all is well": {`{"Action":"pass","Package":"p","Test":"TestA"}` + "\n" + `{"Action":"pass","Package":"p"}` +
			"\n", []string{"false"}, 0, 0, ""},
		"no noise": {`{"Action":"run","Package":"p","Test":"TestA"}` + "\n", []string{"false"}, 0, 0, "not run again: p ("},
	} {
		must(os.WriteFile(file, []byte(c.events), 0o644))
		must(os.WriteFile(results.LaterFile(file, 8, 0), nil, 0o644)) // of an earlier run
		var out bytes.Buffer
		code := run(t.Context(), append([]string{file}, c.command...), &out, &out)
		later, err := filepath.Glob(results.LaterFiles(file))
		must(err)
		if code != c.code || len(later) != c.files || !strings.Contains(out.String(), c.says) {
			t.Errorf("%s: code %d, files %v, and it says:\n%s", name, code, later, &out)
		}
		if name == "printed" {
			text, err := os.ReadFile(later[0])
			must(err)
			if string(text) != "TestA of p\n" {
				t.Errorf("%s: the file has %q", name, text)
			}
		}
		for _, f := range later {
			must(os.Remove(f))
		}
	}
	var out bytes.Buffer
	if code := run(t.Context(), []string{file}, &out, &out); code != 2 {
		t.Errorf("no command gives %d", code)
	}
}
