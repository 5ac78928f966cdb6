package main

import (
	"strings"
	"testing"
)

func TestFollowedAdvice(t *testing.T) {
	c := nodeLogins()
	run := func(way string, round int, p99, login float64) oneRun {
		return oneRun{Variant: way, Round: round, P99: &p99, Beside: map[string]float64{"login": login}}
	}
	slower := []oneRun{
		run(asItWas, 1, 10, 100), run(adviceFollowed, 1, 20, 200),
		run(adviceFollowed, 2, 22, 220), run(asItWas, 2, 11, 110),
	}
	faster := []oneRun{run(asItWas, 1, 20, 100), run(adviceFollowed, 1, 10, 100)}
	even := []oneRun{run(asItWas, 1, 20, 100), run(asItWas, 2, 10, 100), run(adviceFollowed, 1, 15, 100)}
	advised := &look{Advice: []string{"node (workers): set UV_THREADPOOL_SIZE to 1 (default 4)"}}
	for name, test := range map[string]struct {
		c              testCase
		look           *look
		runs           []oneRun
		none           bool
		harmed, helped bool
	}{
		"slower":                     {c: c, look: advised, runs: slower, harmed: true},
		"faster":                     {c: c, look: advised, runs: faster, helped: true},
		"rounds overlap":             {c: c, look: advised, runs: even},
		"not measured":               {c: c, look: advised, none: true},
		"only one way measured":      {c: c, look: advised, runs: slower[:1], none: true},
		"no advice any more":         {c: c, look: &look{}, runs: slower, none: true},
		"advice for another setting": {c: mariadbSort(), look: advised, runs: slower, none: true},
		"a case without a setting":   {c: nginxGzip(), look: advised, runs: slower, none: true},
		"never looked at":            {c: c, runs: slower, none: true},
	} {
		f := followedOf(test.c, caseRun{Look: test.look, Followed: test.runs})
		if (f == nil) != test.none {
			t.Errorf("%s: %+v, want none: %v", name, f, test.none)
			continue
		}
		if f != nil && (f.harmed != test.harmed || f.helped != test.helped) {
			t.Errorf("%s: harmed %v, helped %v", name, f.harmed, f.helped)
		}
	}
	f := followedOf(c, caseRun{Look: advised, Followed: slower})
	if f.beside["login"] != [2]float64{105, 210} {
		t.Errorf("the other requests: %v", f.beside)
	}
	var p page
	p.followed(f)
	if got := p.String(); !strings.Contains(got, "`UV_THREADPOOL_SIZE=1`") || !strings.Contains(got, "**slower**") || !strings.Contains(got, "login: from 105 to 210 ms") {
		t.Errorf("the page has %q", got)
	}
}

// What a case says it can set is what its service is started with, in both ways.
func TestSettingsDiffer(t *testing.T) {
	for _, c := range cases() {
		of := c.setting
		if of.name == "" {
			continue
		}
		was, advised := (&stage{}).value(of), (&stage{follow: true}).value(of)
		if strings.Join(was, " ") == strings.Join(advised, " ") {
			t.Errorf("%s: %s is started with %v in both ways", c.name, of.name, was)
		}
	}
}
