package agent

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/unthrottle/unthrottle/internal/agent/lendingtrial"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/cure/slo"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
)

var (
	lentDesc    = prometheus.NewDesc("unthrottle_lent_cpus", "Exclusive CPUs that secondary containers may use now.", nil, nil)
	lendersDesc = prometheus.NewDesc("unthrottle_lenders", "Containers that lend their CPUs, by what is done with "+
		"them: unused (there is no secondary), "+
		"lent, taken_back (revoked for a trial), harmful (revoked because sharing slowed the owner).", []string{"state"}, nil)
	trialsDesc = prometheus.NewDesc("unthrottle_lending_trials_total",
		"Trials of what lending costs an owner, by what came of them.", []string{"outcome"}, nil)
)

// The states of a lender, as exported.
const (
	lenderUnused  = "unused"
	lenderLends   = "lent"
	lenderOnTrial = "taken_back"
	lenderHarmed  = "harmful"
)

// trialSlack is by how much an interval of a trial may be late before another process takes the trial for lost: a busy host
// delays rounds, and the latency source takes its time.
const trialSlack = 2 * time.Minute

// lender watches what lending costs those who lend. Of the acting goroutine
// alone, but for what is exported.
type lender struct {
	trials map[string]*lendingtrial.Trial // by the owner's path

	mu               sync.Mutex
	judged           bool
	lent             int
	states           map[string]int
	harmed, harmless int
}

// lending takes a round in: what owners used with their CPUs lent and without.
// Where sharing costs an owner something, the CPUs are revoked.
func (a *agent) lending(ctx context.Context, round []observe.Observation, now time.Time) {
	held, err := a.held()
	if err != nil {
		return // said where findings are
	}
	sharings, err := remedy.Sharings(held)
	if err != nil {
		a.Log.Warn("what is shared cannot be told, so that nothing is revoked", "error", err)
		return
	}
	seen := map[string]*observe.Observation{}
	for i := range round {
		seen[round[i].Container.Group.Path] = &round[i]
	}
	l, trials := &a.lender, map[string]*lendingtrial.Trial{}
	lent, states := 0, map[string]int{}
	for _, lend := range sharings {
		out := lend.Revoked != ""
		switch {
		case len(lend.To) == 0 && !out:
			states[lenderUnused]++
			continue
		case a.Rules.Mode == policy.Apply:
			t := l.trials[lend.Target]
			if t == nil {
				t = &lendingtrial.Trial{}
			}
			trials[lend.Target] = t
			if out = a.trialRound(ctx, lend, t, seen[lend.Target], revocation(held, lend), now); t.Harmed {
				states[lenderHarmed]++
				continue
			}
		}
		if out {
			states[lenderOnTrial]++
			continue
		}
		states[lenderLends]++
		lent += lend.CPUs.Size()
	}
	l.trials = trials
	l.mu.Lock()
	defer l.mu.Unlock()
	l.judged, l.lent, l.states = true, lent, states
}

// trialRound takes a round into the trial of an owner, does what it wants, and reports whether the CPUs are revoked then. revoked is what
// revokes them so far; nil: nothing does.
func (a *agent) trialRound(ctx context.Context, lend remedy.Sharing, t *lendingtrial.Trial, seen *observe.Observation, revoked *txn.InForce,
	now time.Time) (out bool) {
	look, was := a.look(ctx, lend, seen), t.Running
	if revoked != nil && revoked.Trial == nil {
		look.Kept = earlier(revoked.Since, now)
	}
	want := t.Round(look, now)
	if was && !t.Running {
		a.tried(lend, t)
	}
	if t.Harmed && revoked != nil && revoked.Trial != nil {
		a.keepRevoked(ctx, lend)
	}
	if out = a.lend(ctx, lend, want, look.Lasts); want != lendingtrial.Nothing {
		t.Written(time.Now())
	}
	return out
}

// look is what the trial of an owner is told of it. Its latencies are those of the slo
// of the rule in force for it, by its pod's labels and annotations.
func (a *agent) look(ctx context.Context, lend remedy.Sharing, seen *observe.Observation) lendingtrial.Look {
	l := lendingtrial.Look{CPUs: lend.CPUs.String(), Out: lend.Revoked != "", Seen: seen,
		Lasts: lendingtrial.Rounds * a.Rules.Interval, Again: retryAfter}
	if seen == nil {
		return l
	}
	rule := a.Rules.Effective(seen.Container, a.chooser.pods.pod(seen.Container.ID)).Rule
	if rule == nil || rule.SLOCommand == "" || a.Untrusted != "" {
		return l
	}
	l.Quantile = rule.Objective.Quantile
	// What the source looks back on lies within one interval.
	l.Lasts = max(l.Lasts, rule.SLOLookBack+a.Rules.Interval)
	l.Latencies = func(since time.Time) []float64 {
		var answer slo.Answer
		var err error
		a.meanwhile(ctx, "asking the latency source of "+boundedPath(lend.Target), slo.Limit+roundLimit, func() {
			answer, err = a.Latencies(rule.SLOCommand)(ctx, since)
		})
		if err != nil {
			a.Log.Warn("what lending costs cannot be told from its slo", "owner", boundedPath(lend.Target), "error", err)
			return nil
		}
		return answer.MS
	}
	return l
}

// revocation is the transaction that revokes what an owner lends; nil: nothing is revoked.
func revocation(held []txn.InForce, lend remedy.Sharing) *txn.InForce {
	if i := slices.IndexFunc(held, func(f txn.InForce) bool { return f.ID == lend.Revoked }); i >= 0 {
		return &held[i]
	}
	return nil
}

// keepRevoked ends the trial in which an owner's CPUs were revoked, as sharing them harms it. Each round tries it until it is done: on
// trial it would be undone, and the CPUs lent again.
func (a *agent) keepRevoked(ctx context.Context, lend remedy.Sharing) {
	if _, err := apply.Keep(ctx, a.Env, lend.Revoked); err != nil && !errors.As(err, new(*apply.NotOnTrial)) {
		a.Log.Warn("its CPUs are revoked on trial still", "owner", boundedPath(lend.Target), "error", err)
	}
}

// tried counts a trial that has ended.
func (a *agent) tried(lend remedy.Sharing, t *lendingtrial.Trial) {
	l := &a.lender
	l.mu.Lock()
	defer l.mu.Unlock()
	log := a.Log.With("owner", boundedPath(lend.Target), "cpus", lend.CPUs.String(), "used_lent", t.With, "used_alone",
		t.Without, "slower", t.Slower)
	if t.Unjudged != "" {
		log.Warn("what lending costs was told by its CPU use alone, not by its slo", "why", t.Unjudged)
	}
	if !t.Harmed {
		l.harmless++
		log.Debug("lending its CPUs costs it nothing")
		return
	}
	l.harmed++
	log.Warn("sharing its CPUs slows it: they stay revoked from the secondaries", "again_in", retryAfter)
}

// lend does what a trial wants, whose intervals last so long, and reports whether
// the CPUs are revoked then.
func (a *agent) lend(ctx context.Context, lend remedy.Sharing, want lendingtrial.Order, lasts time.Duration) (out bool) {
	out = lend.Revoked != ""
	log := a.Log.With("owner", boundedPath(lend.Target), "cpus", lend.CPUs.String())
	switch want {
	case lendingtrial.Revoke:
		if err := a.revoke(ctx, lend, lasts); err != nil {
			log.Warn("its shared CPUs could not be revoked", "error", err)
			return out
		}
		log.Debug("its shared CPUs are revoked, to measure the effect")
		return true
	case lendingtrial.Grant:
		if lend.Revoked == "" {
			return false
		}
		back, err := apply.Restore(ctx, a.Env, apply.Selector{IDs: []string{lend.Revoked}})
		if err != nil {
			log.Warn("what it lends could not be given to the secondaries again", "error", err)
			return out
		}
		for _, text := range back.Warnings {
			log.Warn("lending", "note", text)
		}
		log.Debug("its CPUs are shared with the secondaries again")
		return false
	}
	return out
}

func (a *agent) revoke(ctx context.Context, lend remedy.Sharing, lasts time.Duration) error {
	containers, err := a.List()
	if err != nil {
		return err
	}
	facts, err := a.Facts(ctx, containers, map[string]float64{})
	if err != nil {
		return err
	}
	plan, err := remedy.Revoke(facts, lend.ID)
	if err != nil {
		return err
	}
	if len(plan.Changes) == 0 {
		return nil // no secondary has them any more; the next round sees that
	}
	purpose := plan.Purpose()
	purpose.Trial = lasts + trialSlack
	done, err := apply.Apply(ctx, a.Env, purpose, plan.Changes)
	for _, text := range done.Warnings {
		a.Log.Warn("lending", "transaction", done.ID, "note", text)
	}
	return err
}

// Describe implements prometheus.Collector.
func (l *lender) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{lentDesc, lendersDesc, trialsDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (l *lender) Collect(ch chan<- prometheus.Metric) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for outcome, n := range map[string]int{"harmful": l.harmed, "harmless": l.harmless} {
		ch <- prometheus.MustNewConstMetric(trialsDesc, prometheus.CounterValue, float64(n), outcome)
	}
	if !l.judged {
		return
	}
	ch <- prometheus.MustNewConstMetric(lentDesc, prometheus.GaugeValue, float64(l.lent))
	for _, state := range []string{lenderUnused, lenderLends, lenderOnTrial, lenderHarmed} {
		ch <- prometheus.MustNewConstMetric(lendersDesc, prometheus.GaugeValue, float64(l.states[state]), state)
	}
}
