package agent

import (
	"fmt"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/fix"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/cure/verdict"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/txn"
)

// trying is a chooser whose only rule has a trial.
func trying(t policy.Trial) *chooser {
	c := newChooser(policy.Rules{Mode: policy.Apply, Bound: 0.01, Budget: policy.DefaultBudget(),
		Rules: []policy.Rule{{Auto: true, Verify: policy.VerifyProbe, Trial: t}}}, "")
	c.by = "agent"
	return c
}

// An agent that only observes says what it would try, and when.
func TestWouldTry(t *testing.T) {
	quiet := policy.Quiet{From: 3 * time.Hour, To: 5 * time.Hour} // start is 03:04:05
	for want, r := range map[string]*policy.Rule{
		"": nil,
		"; it would try remedies in turns of at most 2 min in all, now": {Trial: policy.Trial{Most: 2 * time.Minute}},
		"; it would try remedies in turns of at most 40 min in all spread over 8 h, from 05:00 UTC on": {Trial: policy.Trial{
			Most: 40 * time.Minute, Over: 8 * time.Hour, Quiet: quiet}},
	} {
		if got := wouldTry(r, policy.ReasonObserving, start); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if got := wouldTry(r, policy.ReasonNoRule, start); got != "" {
			t.Errorf("%q", got)
		}
	}
}

// A container has one trial within the time that its rule says, and none that would meet its quiet time. Nothing else
// is tried meanwhile, and why
// it waits is said. Without a trial in the rule nothing waits.
func TestTrialsAreBounded(t *testing.T) {
	observations := []observe.Observation{limited("/a", 0.5)}
	daily := policy.Trial{Most: 2 * time.Minute, Per: 24 * time.Hour}
	quiet := daily
	quiet.Quiet = policy.Quiet{From: 3 * time.Hour, To: 5 * time.Hour} // start is 03:04:05
	for name, c := range map[string]struct {
		trial policy.Trial
		had   time.Duration // before start; 0: none
		waits time.Duration // from start on; 0: it does not
	}{
		"the first":              {daily, 0, 0},
		"an hour after one":      {daily, time.Hour, 23 * time.Hour},
		"a day after one":        {daily, 24 * time.Hour, 0},
		"in the quiet time":      {quiet, 0, 5*time.Hour - 3*time.Hour - 4*time.Minute - 5*time.Second},
		"no trial in its rule":   {policy.Trial{}, time.Hour, 0},
		"the clock was set back": {daily, -time.Hour, 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			chooser := trying(c.trial)
			if c.had != 0 {
				chooser.hadTrial("/a", hadTrial{at: start.Add(-c.had)})
			}
			found := persisted(chooser, observations, nil)
			if (len(found) == 0) != (c.waits > 0) {
				t.Fatalf("found %v", paths(found))
			}
			if c.waits == 0 {
				return
			}
			now := start.Add(persist * time.Second)
			got, want := chooser.standings["/a"].treatment, start.Add(c.waits)
			if c.had < 0 {
				want = now.Add(c.waits)
			}
			if got.Reason != policy.ReasonCooldown || got.Until.Sub(want).Abs() > time.Minute || got.Detail == "" {
				t.Errorf("%+v, want until %v", got, want)
			}
		})
	}
	c := trying(daily)
	for i := range 2 * mostTrials {
		c.hadTrial(fmt.Sprint("/", i), hadTrial{at: start.Add(time.Duration(i))})
	}
	if _, last := c.trials[fmt.Sprint("/", 2*mostTrials-1)]; len(c.trials) > mostTrials || !last {
		t.Errorf("%d trials are remembered, the last one %v", len(c.trials), last)
	}
}

// A restart of the agent forgets no trial of its own, by the turns in the journal; what people tried does not count.
func TestTrialsAreRemembered(t *testing.T) {
	turn := func(path, by, verdict string, ago time.Duration) txn.Past {
		return txn.Past{InForce: txn.InForce{Target: path, By: by,
			Outcome: &txn.Outcome{Verdict: verdict, Before: &txn.Figures{UsedCPUs: new(0.25)}}}, Until: start.Add(-ago)}
	}
	c := trying(policy.Trial{Most: time.Minute, Per: time.Hour})
	c.rememberTrials([]txn.Past{turn("/a", "agent", fix.VerdictTurn, time.Minute), turn("/a", "agent", fix.VerdictTurn, 2*time.Minute),
		turn("/b", "unthrottle fix", fix.VerdictTurn, 0), turn("/c", "agent", verdict.Better, 0)}, start)
	if got := c.trials["/a"]; len(c.trials) != 1 || !got.at.Equal(start.Add(-time.Minute)) || got.usedCPUs != 0.25 {
		t.Errorf("%+v", c.trials)
	}
	if at := c.nextTrial(&c.rules.Rules[0], "/a", start); !at.Equal(start.Add(59 * time.Minute)) {
		t.Errorf("the next one at %v", at)
	}
}

// What a trial chose is taken back for another one only when the container has done other work for a while, is stopped,
// and the rule allows a trial.
func TestTriedAnewForOtherWork(t *testing.T) {
	for name, c := range map[string]struct {
		used, stopped float64
		had           time.Duration
		by            string
		again         bool
	}{
		"more work":              {0.4, 0.5, 25 * time.Hour, "agent", true},
		"less work":              {0.1, 0.5, 25 * time.Hour, "agent", true},
		"the same work":          {0.22, 0.5, 25 * time.Hour, "agent", false},
		"it is not stopped":      {0.4, 0, 25 * time.Hour, "agent", false},
		"it had one today":       {0.4, 0.5, time.Hour, "agent", false},
		"a person applied it":    {0.4, 0.5, 25 * time.Hour, "unthrottle fix", false},
		"nothing is known of it": {0.4, 0.5, 0, "agent", false},
	} {
		t.Run(name, func(t *testing.T) {
			chooser := trying(policy.Trial{Most: 2 * time.Minute, Per: 24 * time.Hour})
			if c.had > 0 {
				chooser.hadTrial("/a", hadTrial{at: start.Add(-c.had), usedCPUs: 0.2})
			}
			o := limited("/a", c.stopped)
			o.UsedCPUs = &c.used
			held := []txn.InForce{{ID: "1", Target: "/a", By: c.by},
				{ID: "2", Target: "/a", By: "agent", Parameters: map[string]string{remedy.ParamUpkeep: "1"}}}
			chooser.rules.Budget.Containers = 1 // which the remedy in force has used up
			for i := range changedRounds - 1 {
				if found := chooser.round([]observe.Observation{o}, held, start.Add(time.Duration(i)*time.Second)); len(found) > 0 {
					t.Fatalf("round %d: %v", i, paths(found))
				}
			}
			found := chooser.round([]observe.Observation{o}, held, start.Add(changedRounds*time.Second))
			if again := len(found) == 1 && found[0].again == "1" && found[0].refused == ""; again != c.again {
				t.Errorf("found %+v", found)
			}
		})
	}
}
