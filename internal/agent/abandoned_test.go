package agent

import (
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/agent/lendingtrial"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
)

// The CPUs that a trial of lending revoked are shared again when the agent ends
// in the middle of it, and by the next one when it is killed.
func TestAgentEndsInATrial(t *testing.T) {
	p := newPlacing(t, 2)
	p.give(0, remedy.Request{Kind: remedy.Pin, Shares: true}, "2-3")
	p.secondary(remedy.Request{})
	for _, killed := range []bool{false, true} {
		p.lender = lender{}
		p.rounds(lendingtrial.Rounds+1, time.Now().Add(time.Minute), 2, 0.5)
		held := p.facts().Held
		if last := held[len(held)-1]; p.at(1) != "0-1,4-7" || last.Trial == nil || last.Trial.State != txn.TrialRunning {
			t.Fatalf("no trial under way: %s, %+v\n%s", p.at(1), last, p.log.String())
		}
		if killed {
			p.gone = true // the process of the trial
			p.reconcile(t.Context())
		} else {
			p.endTrials(t.Context())
		}
		if p.at(1) != "0-7" {
			t.Errorf("killed %v: the secondary is on %s\n%s", killed, p.at(1), p.log.String())
		}
		p.gone = false
	}
}

// A fix of another process that was killed on trial is rolled back by an agent
// that may write, and by no other.
func TestAgentRollsBackAbandonedTrials(t *testing.T) {
	p := newPlacing(t, 1)
	before := p.k.Snapshot()
	plan, err := remedy.Make(p.facts(), p.all[0], remedy.Request{Kind: remedy.Pin, CPUs: 2})
	p.must(err)
	purpose := plan.Purpose()
	purpose.Trial = time.Minute
	_, err = apply.Apply(t.Context(), p.Env, purpose, plan.Changes)
	p.must(err)
	for _, tc := range []struct {
		mode policy.Mode
		gone bool
	}{{policy.Apply, false}, {policy.Observe, true}, {policy.Apply, true}} {
		p.Rules.Mode, p.gone = tc.mode, tc.gone
		p.reconcile(t.Context())
		back := len(before.Settings().Diff(p.k.Snapshot().Settings())) == 0
		if back != (tc.gone && tc.mode == policy.Apply) {
			t.Errorf("%+v: rolled back %v\n%s", tc, back, p.log.String())
		}
	}
	if !strings.Contains(p.log.String(), "which was to judge it, has ended") {
		t.Error(p.log.String())
	}
}
