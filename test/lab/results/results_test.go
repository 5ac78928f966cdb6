package results

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func lines(events ...Event) string {
	var b strings.Builder
	for _, e := range events {
		text, err := json.Marshal(e)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(&b, "%s\n", text)
	}
	return b.String()
}

func mustRead(t *testing.T, name string, events ...Event) *Run {
	t.Helper()
	r, err := Read(name, strings.NewReader(lines(events...)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func out(pkg, test, text string) Event {
	return Event{Action: "output", Package: pkg, Test: test, Output: text}
}
func end(action, pkg, test string) Event {
	return Event{Action: action, Package: pkg, Test: test, Elapsed: 1.5}
}

func skip(pkg, test, message string) []Event {
	return []Event{out(pkg, test, "=== RUN   "+test+"\n"), out(pkg, test, "    x_test.go:3: logged: first\n"),
		out(pkg, test, "    x_test.go:7: "+message+"\n"), out(pkg, test, "--- SKIP: "+test+" (0.00s)\n"), end("skip", pkg, test)}
}

func TestGoodAndBadRuns(t *testing.T) {
	for name, c := range map[string]struct {
		events      []Event
		err, prints string
	}{
		"good": {[]Event{end("pass", "p", "TestA"), out("p", "", "PASS\n"), end("pass", "p", "")}, "", "ok  \tp\t1.500s\n"},
		"failed test": {[]Event{out("p", "TestA", "=== RUN   TestA\n"), out("p", "TestA", "    a_test.go:1: bad\n"),
			out("p", "TestA", "--- FAIL: TestA (0.00s)\n"),
			end("fail", "p", "TestA"), out("p", "", "FAIL\n"), end("fail", "p", "")},
			"p.TestA (host): fail", "    a_test.go:1: bad\n--- FAIL: TestA (0.00s)\nFAIL\tp\t1.500s\n"},
		"failed, then others passed": {[]Event{end("fail", "p", ""), end("pass", "p", "TestA"), end("pass", "p", "")},
			"p (host): fail", "FAIL\tp\t3.000s\n"},
		"passed, then others cut off": {
			[]Event{end("pass", "p", "TestA"), end("pass", "p", ""), {Action: "start", Package: "p"}},
			"p (host): did not end", "FAIL\tp\t[did not end]\n"},
		"passed, then others too": {
			[]Event{end("pass", "p", "TestA"), end("pass", "p", ""), {Action: "start", Package: "p"},
				end("pass", "p", "")}, "", "ok  \tp\t3.000s\n"},
		"cut off": {
			[]Event{end("pass", "p", "TestA"), out("p", "TestB", "    b_test.go:1: so far\n")}, "p (host): did not end",
			"    b_test.go:1: so far\nFAIL\tp\t[did not end]\n"},
		"no build": {[]Event{end("pass", "q", "TestA"), end("pass", "q", ""),
			{Action: "build-output", ImportPath: "p [p.test]", Output: "p.go:1: oops\n"},
			{Action: "fail", Package: "p", FailedBuild: "p [p.test]"}}, "p (host): fail", "p.go:1: oops\nFAIL\tp [build failed]\n"},
		"panic outside tests": {[]Event{end("pass", "p", "TestA"), out("p", "", "panic: late\n"), end("fail", "p", "")},
			"p (host): fail", "panic: late\nFAIL\tp"},
		"all skipped": {append(skip("p", "TestA", "needs root: no; runs in the lab"), end("pass", "p", "")),
			"host: no test ran", "ok  \tp"},
		"nothing": {nil, "host: no test ran", ""},
		"no test files": {[]Event{end("pass", "q", "TestA"), end("pass", "q", ""), end("skip", "p", "")}, "",
			"?   \tp\t[no test files]\n"},
	} {
		r := mustRead(t, "host", c.events...)
		err := r.Err()
		if (c.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: got %v, want %q", name, err, c.err)
		}
		var printed bytes.Buffer
		r.Print(&printed)
		if !strings.Contains(printed.String(), c.prints) {
			t.Errorf("%s: printed %q, want %q in it", name, &printed, c.prints)
		}
	}
}

func TestSkippedEverywhere(t *testing.T) {
	var host, inLab []Event
	host = append(host, skip("p", "TestV2", "needs v2: no mount; runs in the lab")...)
	host = append(host, skip("p", "TestBoth", "needs jdk: none: at all; runs in a host with a JDK")...)
	host = append(host, skip("q", "TestHostOnly", "not today")...)
	host = append(host, end("pass", "p", "TestV1"))
	inLab = append(inLab, end("pass", "p", "TestV2"))
	inLab = append(inLab, skip("p", "TestBoth", "needs jdk: gone; runs in a host with a JDK")...)
	inLab = append(inLab, skip("p", "TestV1", "needs v1: no mount; runs in a host with cgroup v1")...)
	got := SkippedEverywhere([]*Run{mustRead(t, "host", host...), mustRead(t, "lab", inLab...)})
	if len(got) != 2 || got[0].Test != "TestBoth" || got[1].Test != "TestHostOnly" {
		t.Fatalf("got %+v", got)
	}
	if strings.Join(got[0].Needs, " ") != "jdk jdk" || !strings.HasPrefix(got[0].Reasons[0], "host: needs jdk: none: at all") {
		t.Errorf("got %+v", got[0])
	}
	if got[1].Needs != nil || got[1].Reasons[0] != "host: not today" {
		t.Errorf("got %+v", got[1])
	}
}

func TestReadTellsWhatIsNoEvent(t *testing.T) {
	if _, err := Read("host", strings.NewReader("go: cannot find module\n")); err == nil ||
		!strings.Contains(err.Error(), "cannot find module") {
		t.Errorf("got %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(lines(end("pass", "p", "TestA"), out("p", "", "x"), end("fail", "p", ""))))
	f.Add([]byte(`{"Action":"build-output","ImportPath":"p","Output":"x"}`))
	f.Add([]byte("{}\n[]\nnull\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		r, err := Read("fuzz", bytes.NewReader(in))
		if err == nil {
			var printed bytes.Buffer
			r.Print(&printed)
			_ = SkippedEverywhere([]*Run{r, r})
			if r.Ran() == 0 && r.Err() == nil {
				t.Fatal("a run without tests counts as good")
			}
		}
	})
}
