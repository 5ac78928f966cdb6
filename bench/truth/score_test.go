package main

import (
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/bench/services"
)

// lookedAt is a case whose forecast said 10 ms for leaving it and 5 ms for narrow.
func lookedAt(came ...float64) caseRun {
	p99 := func(v float64) *float64 { return &v }
	k := caseRun{
		Case: "c", Complete: true, Rounds: len(came),
		Look: &look{Cause: "pool", Guilty: []string{"sorter"}, Suffers: "server", Judged: "server",
			Rows: []row{{Remedy: "none", Judged: p99(10)}, {Remedy: "narrow", Judged: p99(5)}}},
		Variants: []variant{{Name: leaveIt}, {Name: "narrow", Args: []string{"--remedy", "narrow"}}},
	}
	for i, v := range came {
		k.Runs = append(k.Runs,
			oneRun{Variant: leaveIt, Round: i + 1, P99: p99(10 + float64(i)/10), Requests: 1000},
			oneRun{Variant: "narrow", Round: i + 1, P99: p99(v), Requests: 1000})
	}
	return k
}

func sick() services.Case {
	return services.Case{Name: "c", Causes: []string{"pool", "shortage"}, Guilty: []string{"sort"}, Suffers: []string{"server"}}
}

func TestScoreOfACause(t *testing.T) {
	for name, test := range map[string]struct {
		change                       func(*look)
		cause, guilty, waits, judges bool
	}{
		"right":                 {func(*look) {}, true, true, true, true},
		"second cause":          {func(l *look) { l.Cause = "shortage" }, true, true, true, true},
		"another cause":         {func(l *look) { l.Cause = "burst" }, false, false, false, true},
		"another part":          {func(l *look) { l.Guilty = []string{"server"} }, true, false, true, true},
		"no part":               {func(l *look) { l.Guilty = nil }, true, false, true, true},
		"stops all of it":       {func(l *look) { l.Suffers = "" }, true, true, true, true},
		"another part waits":    {func(l *look) { l.Suffers = "sorter" }, true, true, false, true},
		"a role of the part":    {func(l *look) { l.Judged = "server (workers)" }, true, true, true, false},
		"judges nothing":        {func(l *look) { l.Judged = "" }, true, true, true, true},
		"judges the guilty one": {func(l *look) { l.Judged = "sorter" }, true, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			k := lookedAt(5, 5, 5)
			test.change(k.Look)
			s := scoreOf(sick(), k)
			if s.Cause != test.cause || s.Guilty != test.guilty || s.Suffers != test.waits || s.Judges != test.judges {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestScoreOfAnEffect(t *testing.T) {
	for name, test := range map[string]struct {
		came             []float64
		real, sign, near bool
	}{
		"as forecast":      {[]float64{5, 5.5, 6}, true, true, true},
		"better by more":   {[]float64{2, 2, 2}, true, true, false},
		"worse":            {[]float64{20, 21, 22}, true, false, false},
		"within the noise": {[]float64{5, 9.9, 10.1}, false, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := scoreOf(sick(), lookedAt(test.came...))
			if len(s.Effects) != 2 {
				t.Fatalf("%+v", s.Effects)
			}
			e := s.Effects[1]
			if e.Real != test.real || e.Sign != test.sign || e.Close != test.near || !e.Fair {
				t.Errorf("%+v", e)
			}
			if s.Effects[0].Real {
				t.Error("leaving it has no direction")
			}
		})
	}
}

func TestFairness(t *testing.T) {
	k := lookedAt(5, 5)
	late := 2.0
	k.Runs[1].LateP99 = &late
	if k.fair("narrow") || !k.fair(leaveIt) {
		t.Error("a client that is late makes a figure unfair, and that of its run alone")
	}
	k = lookedAt(5)
	k.Runs[1].Requests = fairRequests - 1
	if k.fair("narrow") {
		t.Error("too few requests are enough")
	}
}

// An interval contains p99 where the median of the rounds lies in it.
func TestScoreOfAnInterval(t *testing.T) {
	for name, test := range map[string]struct {
		came   []float64
		within bool
	}{
		"as forecast":          {[]float64{5, 5, 5}, true},
		"at its end":           {[]float64{6, 6, 6}, true},
		"one round reaches in": {[]float64{6, 6.5, 7}, false},
		"beyond":               {[]float64{6.1, 6.5, 7}, false},
	} {
		k := lookedAt(test.came...)
		k.Look.Rows[1].Range = &between{Low: 4, High: 6}
		if e := scoreOf(sick(), k).Effects[1]; e.Within != test.within {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// The head of the page counts the intervals that contain what came.
func TestCoverageOnThePage(t *testing.T) {
	k := lookedAt(5, 5.1, 5.2)
	k.Look.Rows[1].Range = &between{Low: 4, High: 6}
	testCases, runs := []services.Case{sick()}, []caseRun{k}
	text := truthMarkdown(testCases, runs, nil)
	for _, want := range []string{
		// leaving it has no interval but its point
		"| the forecast's interval contains p99, rows that can be judged | 1 of 2 (50 %) | 80 % |",
		"| the same, all rows | 1 of 2 (50 %) | |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
}

func TestFalseAlarms(t *testing.T) {
	for name, test := range map[string]struct {
		look  look
		alarm bool
	}{
		"nothing wrong":  {look{Cause: "none", Answer: "leave"}, false},
		"a cause":        {look{Cause: "neighbours"}, true},
		"advice":         {look{Cause: "none", Advice: []string{"w: set -t to 1"}}, true},
		"a remedy":       {look{Cause: "none", Recommended: "narrow"}, true},
		"alert, no more": {look{Cause: "none", Throttled: 26, Periods: 100}, false},
	} {
		s := scoreOf(services.Case{Healthy: true}, caseRun{Look: &test.look})
		if s.FalseAlarm != test.alarm {
			t.Errorf("%s: %+v", name, s)
		}
		if s.Alert != (test.look.Throttled > 25) {
			t.Errorf("%s: the mixin's alert is %v", name, s.Alert)
		}
	}
}

func TestTruthPage(t *testing.T) {
	missed := lookedAt(20, 21, 22)
	testCases := []services.Case{sick(), {Name: "open", Causes: []string{"burst"}}}
	runs := []caseRun{missed, {Case: "open"}}
	text := truthMarkdown(testCases, runs, nil)
	for _, want := range []string{
		"| cause and guilty part right, healthy services included | 1 of 1 |", "0 of 1 (0 %)", "## Misses",
		"narrow: forecast 0.50 of p99, came 2.08", "`open`: not measured yet",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
}

// What look said of the services is a part of the page of its own: how often it was right, and what it missed.
func TestSampledOnThePage(t *testing.T) {
	testCases := []services.Case{sick(), {Name: "fine", Healthy: true}, {Name: "open"}}
	wrong := sampledLook{Case: sick().Name, Seconds: 7, Look: look{Cause: "gc"}}
	got := truthMarkdown(testCases, make([]caseRun, 3), []sampledLook{wrong, {Case: "fine", Seconds: 9, Look: look{Cause: "none"}}})
	for _, want := range []string{"| cause and guilty part right, where something is wrong | 0 of 1 (0 %) | 80 % |",
		"| false alarms for healthy services | 0 of 1 | 0 |", "median and most | 8, 9 | 10 |", "said was gc", "Not looked at yet: 1 service, such as `open`."} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}
