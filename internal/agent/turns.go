package agent

import (
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/fix"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn"
)

const (
	// mostTrials bounds the containers whose last trial is remembered; of more the oldest are forgotten.
	mostTrials = 4096
	// pause is how long a container is left alone between two rounds of a trial, so that its work is of several minutes.
	pause = time.Minute
	// otherWork is from which factor on a container does other work than at its last trial, by the CPU time that it uses. It must do so for
	// changedRounds in a row: a service of bursts uses twice as much in one second as in the next.
	otherWork, changedRounds = 1.5, 30
)

// hadTrial is what is known of a container's last trial.
type hadTrial struct {
	at time.Time // its end
	// usedCPUs is what the container used when it was left as it is; 0: not known.
	usedCPUs float64
}

// hadTrial notes that a container had a trial.
func (c *chooser) hadTrial(path string, had hadTrial) {
	c.trials[path] = had
	if len(c.trials) <= mostTrials {
		return
	}
	oldest := path
	for at, other := range c.trials {
		if other.at.Before(c.trials[oldest].at) {
			oldest = at
		}
	}
	delete(c.trials, oldest)
}

// rememberTrials takes in the trials of agents before this one. past are the changes in the journal that ended.
func (c *chooser) rememberTrials(past []txn.Past, now time.Time) {
	for _, p := range past {
		if p.By != c.by || p.Outcome == nil || p.Outcome.Verdict != fix.VerdictTurn {
			continue
		}
		if at := earlier(p.Until, now); !at.Before(c.trials[p.Target].at) {
			c.hadTrial(p.Target, hadTrial{at: at, usedCPUs: p.Outcome.Before.Used()})
		}
	}
}

// nextTrial is when remedies may be tried in turns on a container again, as its rule says; zero: at once, or the rule
// has no trial. Until then
// nothing is tried: what a trial left alone is not tried by a forecast.
func (c *chooser) nextTrial(r *policy.Rule, path string, now time.Time) (at time.Time) {
	if r == nil || r.Trial.Most == 0 {
		return time.Time{}
	}
	if had, ok := c.trials[path]; ok {
		at = earlier(had.at, now).Add(r.Trial.Per)
	}
	if at.Before(now) {
		at = now
	}
	if until := r.Trial.Quiet.Until(at, inOnePiece(r.Trial)); !until.IsZero() {
		at = until
	}
	if !at.After(now) {
		return time.Time{}
	}
	return at
}

// wouldTry says of a rule that only observes what its trial would do, and when; "": it has none, or does not only observe.
func wouldTry(r *policy.Rule, reason policy.Reason, now time.Time) string {
	if r == nil || r.Trial.Most == 0 || reason != policy.ReasonObserving {
		return ""
	}
	when := "now"
	if until := r.Trial.Quiet.Until(now, inOnePiece(r.Trial)); !until.IsZero() {
		when = "from " + until.UTC().Format("15:04 UTC") + " on"
	}
	spread := ""
	if r.Trial.Over > 0 {
		spread = " spread over " + text.Duration(r.Trial.Over)
	}
	return fmt.Sprintf("; it would try remedies in turns of at most %s in all%s, %s", text.Duration(r.Trial.Most), spread, when)
}

// inOnePiece is for how long a trial may not meet a quiet time once it began: one that is spread only looks, and each block waits by
// itself.
func inOnePiece(t policy.Trial) time.Duration {
	if t.Over > 0 {
		return spreadLook
	}
	return trialOptions(t).Longest()
}

// trialOptions are those of a fix that a rule's trial sets.
func trialOptions(t policy.Trial) fix.Options {
	return fix.Options{Budget: t.Most, Pause: pause, Tries: tries, Window: fixWindow, Settle: settle}
}

// anew is the transaction of a remedy that a trial chose for other work than the container does now, so that remedies
// may be tried anew; "":
// there is none. It is asked once a round of a container that is stopped above the bound.
func (c *chooser) anew(r *policy.Rule, o *observe.Observation, held *txn.InForce, now time.Time) string {
	if r == nil || r.Trial.Most == 0 || held == nil || held.Trial != nil || held.By != c.by || o.UsedCPUs == nil {
		return ""
	}
	path := o.Container.Group.Path
	was, is := c.trials[path].usedCPUs, *o.UsedCPUs
	if was == 0 || is < was*otherWork && is*otherWork > was {
		delete(c.changed, path)
		return ""
	}
	c.changed[path]++
	if c.changed[path] < changedRounds || !c.nextTrial(r, path, now).IsZero() {
		return ""
	}
	return held.ID
}
