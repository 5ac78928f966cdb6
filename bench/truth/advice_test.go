package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/bench/services"
)

func caseNamed(t *testing.T, name string) services.Case {
	t.Helper()
	c, err := choose(name)
	if err != nil {
		t.Fatal(err)
	}
	return c[0]
}

func TestFollowedAdvice(t *testing.T) {
	c := caseNamed(t, "node-logins")
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
		c      services.Case
		look   *look
		runs   []oneRun
		none   bool
		harmed bool
	}{
		"slower":                     {c: c, look: advised, runs: slower, harmed: true},
		"faster":                     {c: c, look: advised, runs: faster},
		"rounds overlap":             {c: c, look: advised, runs: even},
		"not measured":               {c: c, look: advised, none: true},
		"only one way measured":      {c: c, look: advised, runs: slower[:1], none: true},
		"no advice any more":         {c: c, look: &look{}, runs: slower, none: true},
		"advice for another setting": {c: caseNamed(t, "mariadb-sort"), look: advised, runs: slower, none: true},
		"a case without a setting":   {c: caseNamed(t, "nginx-gzip"), look: advised, runs: slower, none: true},
		"never looked at":            {c: c, runs: slower, none: true},
	} {
		measured, harmed := followed(test.c, caseRun{Look: test.look, Followed: test.runs})
		if measured == test.none || harmed != test.harmed {
			t.Errorf("%s: measured %v, harmed %v", name, measured, harmed)
		}
	}
}

// What a case says it can set is in what its service is started with, in both ways.
func TestSettingsDiffer(t *testing.T) {
	for _, c := range services.Cases() {
		if c.Setting.Name == "" {
			continue
		}
		if c.Setting.Was == c.Setting.Advised {
			t.Errorf("%s: %s is started with %q in both ways", c.Name, c.Setting.Name, c.Setting.Was)
		}
		if !slices.ContainsFunc(c.Programs, func(p services.Program) bool { return strings.Contains(p.Run, "{{.Setting}}") }) {
			t.Errorf("%s: no program gets %s", c.Name, c.Setting.Name)
		}
	}
}
