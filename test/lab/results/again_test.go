package results

import (
	"fmt"
	"strings"
	"testing"
)

func TestAgain(t *testing.T) {
	failing := func(test, output string) []Event {
		return []Event{out("p", test, output), end("fail", "p", test)}
	}
	closed := end("fail", "p", "")
	many := []Event{closed}
	for i := range mostAgain + 1 {
		many = append(many, failing(fmt.Sprintf("Test%d", i), "x")...)
	}
	for name, c := range map[string]struct {
		events []Event
		want   string // the tests, or the error
	}{
		"good":      {[]Event{end("pass", "p", "TestA"), end("pass", "p", "")}, ""},
		"one":       {append(failing("TestA", "p50 was 3 ms"), closed), "p.TestA"},
		"a subtest": {append(append(failing("TestA/v2", "x"), failing("TestA", "")...), closed), "p.TestA"},
		"a race": {append(failing("TestA", "testing.go:9: race detected during execution of test\n"), closed),
			"p.TestA (host): race detected"},
		"a panic":          {append(failing("TestA", "panic: oops\n"), closed), "p.TestA (host): panic:"},
		"a race elsewhere": {append(failing("TestA", ""), out("p", "", "WARNING: DATA RACE\n"), closed), "p (host): WARNING: DATA RACE"},
		"did not end":      {append(failing("TestA", ""), out("p", "TestB", "x"), closed), "p.TestB (host): did not end"},
		"cut off":          {failing("TestA", ""), "p (host): it was not built, or did not end"},
		"outside tests":    {[]Event{end("pass", "p", "TestA"), closed}, "p (host): it failed outside its tests"},
		"no build": {[]Event{{Action: "build-output", ImportPath: "p [p.test]", Output: "oops\n"},
			{Action: "fail", Package: "p", FailedBuild: "p [p.test]"}}, "it was not built"},
		"many": {many, fmt.Sprintf("host: %d tests failed", mostAgain+1)},
	} {
		ids, err := mustRead(t, "host", c.events...).Again()
		got := fmt.Sprint(err)
		if err == nil {
			got = strings.Trim(fmt.Sprint(ids), "[]")
		}
		if !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestSettle(t *testing.T) {
	once := []Event{out("p", "TestA/v2", "p50 was 3 ms\n"), end("fail", "p", "TestA/v2"), end("fail", "p", "TestA"),
		end("pass", "p", "TestB"), end("fail", "p", "")}
	good := mustRead(t, "again", end("pass", "p", "TestA"), end("pass", "p", ""))
	bad := mustRead(t, "again", end("fail", "p", "TestA"), end("fail", "p", ""))
	skipped := mustRead(t, "again", end("skip", "p", "TestA"), end("pass", "p", ""))
	crashed := mustRead(t, "again", end("pass", "p", "TestA"), end("fail", "p", ""))
	other := mustRead(t, "again", end("pass", "p", "TestB"), end("pass", "p", ""))
	for name, c := range map[string]struct {
		later   []*Run
		settled bool
	}{
		"passed twice":       {[]*Run{good, good, other}, true},
		"passed once":        {[]*Run{good, other}, false},
		"failed once more":   {[]*Run{good, bad}, false},
		"failed of three":    {[]*Run{good, good, bad}, false},
		"skipped afterwards": {[]*Run{good, skipped}, false},
		"crashed afterwards": {[]*Run{good, crashed}, false},
		"not run again":      {nil, false},
	} {
		r := mustRead(t, "host", once...)
		settled := r.Settle(c.later)
		if (len(settled) == 1) != c.settled || (r.Err() == nil) != c.settled {
			t.Errorf("%s: settled %v, the run's error is %v", name, settled, r.Err())
		}
		if c.settled && !strings.Contains(r.Output(settled[0]), "p50 was 3 ms") {
			t.Errorf("%s: the output %q lacks the subtest's", name, r.Output(settled[0]))
		}
	}
}
