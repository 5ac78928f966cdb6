package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// What runs now is told from events, with a line that is only half written.
func TestProgress(t *testing.T) {
	var s state
	s.add(strings.NewReader(`{"Action":"run","Package":"a.b/txn","Test":"TestKilled"}
{"Action":"run","Package":"a.b/txn","Test":"TestKilled/v2"}
{"Action":"run","Package":"a.b/txn","Test":"TestDone"}
{"Action":"pass","Package":"a.b/txn","Test":"TestDone"}
{"Action":"pass","Package":"a.b/text"}
{"Action":"pa`))
	if got, want := progress("kernel", 3*time.Minute+2*time.Second, s), "-- kernel, 3 minutes: 1 package ended; now txn.TestKilled"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The exit code is the command's, and the table has both parts once.
func TestParts(t *testing.T) {
	dir := t.TempDir()
	var out, errs bytes.Buffer
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{dir, "good", "true"}, 0},
		{[]string{dir, "bad", "sh", "-c", "exit 3"}, 3},
		{[]string{dir, "none", "/no/such/program"}, 1},
		{[]string{dir}, 2},
	} {
		if code := run(t.Context(), c.args, &out, &errs); code != c.code {
			t.Errorf("%v: %d, want %d: %s", c.args, code, c.code, &errs)
		}
	}
	out.Reset()
	if code := run(t.Context(), []string{"-sum", dir}, &out, &errs); code != 0 || !strings.Contains(out.String(), "  good\n") || !strings.Contains(out.String(), "  bad  FAILED\n") {
		t.Errorf("%d: %s%s", code, &out, &errs)
	}
	out.Reset()
	if code := run(t.Context(), []string{"-sum", dir}, &out, &errs); code != 0 || out.Len() > 0 {
		t.Errorf("the second time: %d: %s", code, &out)
	}
}
