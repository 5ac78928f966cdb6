package agent

import (
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/txn"
)

// What the agent applied by a rule is taken back when the rule ends, and nothing else is: not what people applied, what is on trial, or
// what another rule asks for.
func TestRuleEnds(t *testing.T) {
	for name, c := range map[string]struct {
		until time.Time
		by    string
		trial *txn.Trial
		left  int
	}{
		"no end":          {by: "test", left: 1},
		"not yet":         {until: start.Add(time.Second), by: "test", left: 1},
		"ended":           {until: start, by: "test"},
		"somebody else's": {until: start, by: "unthrottle fix, user root", left: 1},
		"on trial":        {until: start, by: "test", trial: &txn.Trial{}, left: 1},
	} {
		p := newPlacing(t, 1)
		p.give(0, remedy.Request{Kind: remedy.Pin}, "2-3")
		p.chooser.by = "test"
		p.chooser.standings["/a/0"] = &standing{effective: policy.Effective{Rule: &policy.Rule{Auto: true, Until: c.until}}}
		held, err := p.held()
		p.must(err)
		held[0].By, held[0].Trial = c.by, c.trial
		p.undoEnded(t.Context(), held, start)
		if after, err := p.held(); err != nil || len(after) != c.left || c.left == 0 &&
			!strings.Contains(p.log.String(), "its rule has ended") {
			t.Errorf("%s: %v, %d in force\n%s", name, err, len(after), p.log.String())
		}
		if at := p.at(0); (at == "2-3") != (c.left == 1) {
			t.Errorf("%s: the container is on %s", name, at)
		}
	}
}

// What keeps newcomers off the CPUs of a pin that somebody made by hand is not taken back by a rule that ended.
func TestRuleEndsBesideAHandMadePin(t *testing.T) {
	p := newPlacing(t, 1)
	p.give(0, remedy.Request{Kind: remedy.Pin}, "2-3")
	p.chooser.by = "test"
	p.chooser.standings["/a/0"] = &standing{effective: policy.Effective{Rule: &policy.Rule{Auto: true, Until: start}}}
	held, err := p.held()
	p.must(err)
	held[0].Parameters = map[string]string{remedy.ParamUpkeep: "hand-made"}
	byHand := txn.InForce{ID: "hand-made", Target: "/a/0", By: "unthrottle apply, user root"}
	p.undoEnded(t.Context(), append([]txn.InForce{byHand}, held...), start)
	if after, err := p.held(); err != nil || len(after) != 1 {
		t.Errorf("%v, %d in force\n%s", err, len(after), p.log.String())
	}
}

// A rule that has ended applies nothing.
func TestEndedRuleObserves(t *testing.T) {
	c := newChooser(policy.Rules{Mode: policy.Apply}, "")
	rule := policy.Rule{Auto: true, Verify: policy.VerifyProbe, Until: start}
	if reason, _ := c.hindrance(&rule, start); reason != policy.ReasonObserving {
		t.Errorf("at its end: %q", reason)
	}
	if reason, _ := c.hindrance(&rule, start.Add(-time.Second)); reason != "" {
		t.Errorf("before its end: %q", reason)
	}
}
