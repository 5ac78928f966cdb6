package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/unthrottle/unthrottle/bench/services"
	"github.com/unthrottle/unthrottle/internal/text"
)

// tally is the sum of all scores, for docs/results/truth.md.
type tally struct {
	Sick, Right, Healthy, Alarms int
	AlertSick, AlertHealthy      int
	Effects, Signs               int
	Followed, Harmed             int // advice that was followed for real, and where that made the part that waits slower
	Fair, Near, Within           int // rows with enough requests
	Judged, JudgedWithin         int // rows that can be judged
	Rounds, Agree                int // one round as the forecast of the others, in fair rows
	// Wrong has a line for each case that is missed, Open one for each without a result.
	Wrong, Open []string
}

// All and RightOfAll count healthy services too.
func (t tally) All() int        { return t.Sick + t.Healthy }
func (t tally) RightOfAll() int { return t.Right + t.Healthy - t.Alarms }

func tallyOf(testCases []services.Case, runs []caseRun) (t tally) {
	for i, c := range testCases {
		if k := runs[i]; k.Look == nil {
			t.Open = append(t.Open, fmt.Sprintf("`%s`: not measured yet", c.Name))
		} else {
			t.add(c, k)
			if line := wrong(c, k); line != "" {
				t.Wrong = append(t.Wrong, line)
			}
		}
	}
	return t
}

func (t *tally) add(c services.Case, k caseRun) {
	s := scoreOf(c, k)
	if c.Healthy {
		t.Healthy++
		t.Alarms += count(s.FalseAlarm)
		t.AlertHealthy += count(s.Alert)
		return
	}
	t.Sick++
	t.Right += count(s.Guilty)
	t.AlertSick += count(s.Alert)
	measured, harmed := followed(c, k)
	t.Followed += count(measured)
	t.Harmed += count(harmed)
	for _, e := range s.Effects {
		t.Effects += count(e.Real)
		t.Signs += count(e.Real && e.Sign)
		if !e.Fair {
			continue
		}
		t.Fair++
		t.Near += count(e.Close)
		t.Within += count(e.Within)
		t.Rounds, t.Agree = t.Rounds+e.Rounds, t.Agree+e.Agree
		if e.comparable() {
			t.Judged++
			t.JudgedWithin += count(e.Within)
		}
	}
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// share shows a part of a whole with its percentage.
func share(part, whole int) string {
	if whole == 0 {
		return "not measured"
	}
	return fmt.Sprintf("%d of %d (%.0f %%)", part, whole, 100*float64(part)/float64(whole))
}

// wrong says what is missed of a case and why; "": nothing is.
func wrong(c services.Case, k caseRun) string {
	what := missed(c, k)
	if what == "" {
		return ""
	}
	return fmt.Sprintf("`%s`: %s. Why: %s", c.Name, what, cmp.Or(c.Missed, "the reason is not known."))
}

// missed says what is missed of a case; "": nothing is.
func missed(c services.Case, k caseRun) string {
	var what []string
	s := scoreOf(c, k)
	add := func(format string, args ...any) { what = append(what, fmt.Sprintf(format, args...)) }
	l := k.Look
	switch {
	case c.Healthy && s.FalseAlarm:
		advised := l.Recommended
		if advised == "" {
			advised = orMissing(l.Answer)
		}
		add("nothing is wrong, and explain says %s, forecast %s", orMissing(l.Cause), advised)
	case !c.Healthy && !s.Cause:
		add("cause is %s, said was %s", c.Causes[0], orMissing(l.Cause))
	case !c.Healthy && !s.Guilty:
		add("guilty is %s, said was %s", strings.Join(c.Guilty, " or "), orMissing(text.Shown(strings.Join(l.Guilty, ", "))))
	}
	if !s.Suffers && s.Cause && !c.Healthy {
		add("%s waits, said was %s", strings.Join(c.Suffers, " or "), text.Shown(l.Suffers))
	}
	if !s.Judges {
		add("%s waits, forecast judges %s", strings.Join(c.Suffers, " or "), text.Shown(l.Judged))
	}
	for _, e := range s.Effects {
		if e.Real && !e.Sign {
			add("%s: forecast %.2f of p99, came %.2f", e.Variant, e.Forecast, e.Came)
		}
	}
	return strings.Join(what, "; ")
}
