package agent

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/cure/verdict"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/txn"
)

// chooser remembers, over rounds, who was stopped and what was tried. Its
// memory is bounded by the containers of the last round.
type chooser struct {
	rules policy.Rules
	// untrusted says why slo commands must not be run: a rule with one applies nothing then.
	untrusted string
	by        string // the agent's name in the journal
	pods      pods
	// age is for how long a container's oldest process has run; nil, or false: that is not known.
	age func(container.Container) (time.Duration, bool)
	// tell is told of annotations that do not count; nil: none is.
	tell func(container.Container, policy.Refusal)

	// mu guards standings, which others read. All else is of the acting goroutine alone.
	mu        sync.Mutex
	standings map[string]*standing
	waits     map[string]policy.Treatment // of those in retry

	stopped map[string]stoppedRounds // of those that were stopped above the bound lately
	calm    map[string]int           // rounds in a row in which it was there to become secondary
	said    map[string]time.Time     // when a finding was last given
	retry   map[string]time.Time     // not before this
	applied []time.Time              // of the last minute
	misses  map[string]int           // attempts in a row that did not help
	trials  map[string]hadTrial      // a container's last trial
	// spread are the trials that are spread over hours, by path.
	spread  map[string]*spreading
	changed map[string]int    // rounds in a row in which other work came than at its last trial
	watches map[string]*watch // stops with a remedy that was kept
	harmed  map[string]int    // how often in a row a remedy that was kept did harm later
}

func newChooser(r policy.Rules, untrusted string) *chooser {
	return &chooser{rules: r, untrusted: untrusted, stopped: map[string]stoppedRounds{}, said: map[string]time.Time{},
		retry: map[string]time.Time{}, misses: map[string]int{}, trials: map[string]hadTrial{}, changed: map[string]int{},
		harmed: map[string]int{}, watches: map[string]*watch{},
		spread:    map[string]*spreading{},
		standings: map[string]*standing{}, waits: map[string]policy.Treatment{}}
}

// finding is a container that is stopped above the bound for long enough, or one
// that its rule makes secondary however calm it is.
type finding struct {
	observation observe.Observation
	rule        *policy.Rule // nil: none matches
	refused     string       // why nothing is done now although the rule asks for it
	resized     bool         // others change its limit
	again       string       // the transaction to take back before remedies are tried anew; "": none
}

// secondary tells whether a rule makes a container secondary.
func secondary(r *policy.Rule) bool {
	if r == nil || r.Auto {
		return false
	}
	found, _ := remedy.Find(r.Remedy)
	return found.ForOthers
}

// because says what makes it one, for people.
func (f finding) because() string {
	if secondary(f.rule) {
		return "secondary by its rule"
	}
	return "stopped above the bound"
}

// round gives the findings of one round, worst first and secondaries last, at most
// one of which may be acted on. A container that has a remedy in force is none; nor is one that
// was given within retryAfter, so that the log has it once.
func (c *chooser) round(observations []observe.Observation, held []txn.InForce, now time.Time) []finding {
	c.mu.Lock()
	defer c.mu.Unlock()
	inForce := byTarget(held)
	c.takeIn(observations)
	stopped := make(map[string]stoppedRounds, len(c.stopped))
	var found []finding
	calm := c.secondaries(observations, inForce, now)
	for i := range observations {
		o := &observations[i]
		path := o.Container.Group.Path
		s := c.standings[path]
		s.resized = s.resized || inForce[path] == nil &&
			slices.ContainsFunc(o.LimitChanges, func(l recording.LimitChange) bool { return l.Before.Path == path })
		above, ok := o.Above(c.rules.Bound)
		above = ok && above && c.calm[path] == 0
		starting := time.Time{}
		if above {
			starting = c.starting(s, now)
		}
		lately := c.stopped[path]
		counts := (above || lately.seen()) && starting.IsZero() && o.Inside() == ""
		if counts {
			_, high, _ := o.StoppedPerSecond() // 0 where it was not measured, which is not above
			if lately = lately.with(high, above); lately.seen() {
				stopped[path] = lately
			}
		}
		persistent := counts && lately.persistent(c.rules.Bound)
		s.treatment = c.treat(s, o, inForce[path], starting, persistent, now)
		if !above || !counts {
			continue
		}
		again := c.anew(s.effective.Rule, o, inForce[path], now)
		if c.spread[path].trying() || !persistent || inForce[path] != nil && again == "" || now.Before(c.retry[path]) ||
			now.Before(c.nextTrial(s.effective.Rule, path, now)) {
			continue
		}
		found = append(found, finding{observation: *o, rule: s.effective.Rule, resized: s.resized, again: again})
	}
	c.forget(stopped, now)
	slices.SortStableFunc(found, func(a, b finding) int {
		return cmp.Compare(*b.observation.StoppedHigh, *a.observation.StoppedHigh)
	})
	used := len(inForce)
	for path, s := range c.spread {
		if s.trying() && inForce[path] == nil {
			used++ // it may keep one
		}
	}
	return c.budgeted(append(found, calm...), used, now)
}

// isUpkeep tells of a transaction that only looks after another one, such as one that keeps newcomers off a pin's CPUs.
func isUpkeep(f txn.InForce) bool { return f.Parameters[remedy.ParamUpkeep] != "" }

// byTarget are transactions in force by the cgroup that they are for, without upkeep.
func byTarget(held []txn.InForce) map[string]*txn.InForce {
	inForce := map[string]*txn.InForce{}
	for i := range held {
		if !isUpkeep(held[i]) {
			inForce[held[i].Target] = &held[i]
		}
	}
	return inForce
}

// secondaries are the containers that their rules make secondary and that have
// been there for some rounds: a runtime sets a new one up first.
func (c *chooser) secondaries(observations []observe.Observation, inForce map[string]*txn.InForce, now time.Time) []finding {
	calm := map[string]int{}
	var found []finding
	for i := range observations {
		o := &observations[i]
		path := o.Container.Group.Path
		rule := c.rule(path)
		if !secondary(rule) {
			continue
		}
		calm[path] = c.calm[path] + 1
		if calm[path] >= persist && inForce[path] == nil && !now.Before(c.retry[path]) {
			found = append(found, finding{observation: *o, rule: rule})
		}
	}
	c.calm = calm
	return found
}

// forget drops what is known of containers that are not stopped any more.
func (c *chooser) forget(stopped map[string]stoppedRounds, now time.Time) {
	c.stopped = stopped
	for path := range c.changed {
		if stopped[path].above&1 == 0 {
			delete(c.changed, path)
		}
	}
	for path := range c.harmed {
		if c.standings[path] == nil {
			delete(c.harmed, path)
		}
	}
	for path, until := range c.retry {
		if _, is := stopped[path]; !is && c.calm[path] == 0 && now.After(until) {
			delete(c.retry, path)
			delete(c.misses, path)
			delete(c.waits, path)
		}
	}
}

// budgeted lets one finding through to be acted on and names the bound for the
// others that could be. used is how many containers count for the budget already.
func (c *chooser) budgeted(found []finding, used int, now time.Time) []finding {
	c.applied = slices.DeleteFunc(c.applied, func(t time.Time) bool { return now.Sub(t) >= time.Minute })
	var out []finding
	acted := false
	for _, f := range found {
		path := f.observation.Container.Group.Path
		switch reason, _ := c.hindrance(f.rule, now); {
		case reason != "":
		case used >= c.rules.Budget.Containers && f.again == "": // one that is tried anew counts already
			f.refused = fmt.Sprintf("%d containers have a remedy in force or a trial, the budget's bound", used)
			c.set(path, policy.Treatment{Reason: policy.ReasonBudgetContainers})
		case len(c.applied) >= c.rules.Budget.MovesPerMinute:
			f.refused = fmt.Sprintf("%d changes in the last minute, the budget's bound", len(c.applied))
			c.set(path, policy.Treatment{Reason: policy.ReasonBudgetMoves})
		case acted:
			// Its turn comes with a later round: one change at a time.
			continue
		default:
			acted = true
			c.set(path, policy.Treatment{Reason: policy.ReasonTrying})
			out = append(out, f)
			continue
		}
		if last, ok := c.said[path]; ok && now.Sub(last) < retryAfter {
			continue
		}
		if len(c.said) < maxContainers {
			c.said[path] = now
		}
		out = append(out, f)
	}
	for path, last := range c.said {
		if now.Sub(last) >= retryAfter {
			delete(c.said, path)
		}
	}
	return out
}

// hindrance says why the rules do not let anything be done, also in words; "": they do. A secondary uses only idle CPUs, so
// that it needs no slo: what lending costs an owner is found out by trial.
func (c *chooser) hindrance(rule *policy.Rule, now time.Time) (policy.Reason, string) {
	switch {
	case c.rules.Mode != policy.Apply:
		return policy.ReasonObserving, "observing only"
	case rule == nil:
		return policy.ReasonNoRule, "no rule asks for a remedy"
	case rule.Leave:
		return policy.ReasonRuleNone, "no rule asks for a remedy"
	case rule.Observes(now):
		return policy.ReasonObserving, "observing only, by its rule"
	case !rule.Judged():
		return policy.ReasonUnjudged, "not applied: the rule has neither an slo nor verify: probe, so the effect could not be verified"
	case rule.SLOCommand != "" && c.untrusted != "":
		return policy.ReasonUntrusted, "not applied: its slo command must not be run: " + c.untrusted
	}
	return "", ""
}

// mostDoublings bounds the wait after attempts that did not help, to a bit less than a day.
const mostDoublings = 4

// tried remembers an attempt, which counts against the budget. It is not made
// again for a while if it did not help, and each time for twice as long; 0: it did.
func (c *chooser) tried(path string, now time.Time, wait time.Duration) {
	c.applied = append(c.applied, now)
	if wait == 0 {
		delete(c.misses, path)
		delete(c.waits, path)
		return
	}
	c.later(path, now.Add(wait<<min(c.misses[path], mostDoublings)))
	c.missed(path)
}

// remember takes in what an agent before this one tried in vain, so that a restart ends no wait. past are the changes in
// the journal that ended, newest first.
func (c *chooser) remember(past []txn.Past, now time.Time) {
	failed := map[string]time.Time{}
	for _, p := range slices.Backward(past) {
		if p.By != c.by || p.Outcome == nil {
			continue
		}
		switch p.Outcome.Verdict {
		case verdict.Better:
			delete(failed, p.Target)
			delete(c.misses, p.Target)
		case verdict.Worse, verdict.NoChange:
			// The tries of one attempt follow each other, the next attempt comes after a wait.
			if last, ok := failed[p.Target]; !ok || p.Until.Sub(last) >= retryAfter {
				c.missed(p.Target)
			}
			failed[p.Target] = p.Until
		}
	}
	for path, at := range failed {
		if until := earlier(at, now).Add(retryAfter << min(max(c.misses[path]-1, 0), mostDoublings)); now.Before(until) {
			c.later(path, until)
		} else {
			delete(c.misses, path)
		}
	}
}

// earlier is when something ended that is over by now: the clock may have been set back since.
func earlier(at, now time.Time) time.Time {
	if at.After(now) {
		return now
	}
	return at
}

// missed counts an attempt that did not help.
func (c *chooser) missed(path string) {
	if _, known := c.misses[path]; known || len(c.misses) < maxContainers {
		c.misses[path]++
	}
}

// later leaves a container alone until then. Where that many are waiting, the one whose wait ends first waits no more: else
// a container beyond the bound would be tried in each round.
func (c *chooser) later(path string, until time.Time) {
	if _, known := c.retry[path]; !known && len(c.retry) >= maxContainers {
		first := ""
		for waiting, at := range c.retry {
			if first == "" || at.Before(c.retry[first]) {
				first = waiting
			}
		}
		delete(c.retry, first)
		delete(c.misses, first)
		delete(c.waits, first)
	}
	c.retry[path] = until
}
