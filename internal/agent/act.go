package agent

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/unthrottle/unthrottle/internal/agent/spent"
	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/fix"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/cure/slo"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
)

// act looks after what is in force and, round by round, applies what the rules
// ask for. What takes long, such as a fix, runs beside it (meanwhile), so that
// newcomers are moved off exclusive CPUs all the time.
func (a *agent) act(ctx context.Context) error {
	if a.Rules.Mode == policy.Apply {
		a.recover(ctx)
		defer a.endTrials(ctx)
	}
	chooser := a.chooser
	if a.Rules.Mode == policy.Apply {
		past, err := apply.History(a.Env, 0)
		if err != nil {
			a.Log.Error("the journal cannot be read", "error", err)
		}
		chooser.rememberTrials(past, time.Now())
		a.rememberSpread()
		if !a.Reloaded {
			chooser.remember(past, time.Now())
		}
	}
	var nextChores time.Time
	for {
		a.resume(task{})
		select {
		case <-ctx.Done():
			return nil
		case <-a.wake:
		}
		a.busy("a round", roundLimit)
		a.spent.Do(spent.Acting, func() { a.actOnce(ctx, chooser, &nextChores) })
	}
}

// actOnce takes the newest round in.
func (a *agent) actOnce(ctx context.Context, chooser *chooser, nextChores *time.Time) {
	now := time.Now()
	round, fresh := a.take()
	newcomers := a.newcomersCame()
	if newcomers && a.budget.sheds(shedRate) {
		time.AfterFunc(a.Rules.Interval, a.signal) // newcomers do not wait for slow rounds
	}
	a.starts(ctx, newcomers)
	if newcomers || !now.Before(*nextChores) {
		*nextChores = now.Add(choreInterval)
		a.reconcile(ctx)
	}
	if !fresh {
		return
	}
	held, err := a.held()
	if err != nil {
		a.Log.Error("the journal cannot be read", "error", err)
		return
	}
	if a.Rules.Mode == policy.Apply {
		a.undoWorse(ctx, chooser, chooser.worsened(round.Observations, byTarget(held)))
	}
	findings := chooser.round(round.Observations, held, now)
	if a.Rules.Mode == policy.Apply {
		a.undoEnded(ctx, held, now)
	}
	for _, f := range findings {
		if a.finding(ctx, chooser, f, held) {
			*nextChores = now // a secondary gets what is lent, newcomers make way
		}
	}
	if a.Rules.Mode == policy.Apply {
		a.spreadOn(ctx, round.Observations, held, now)
	}
	a.lending(ctx, round.Observations, now)
}

// take gives the newest round, and whether it was not taken before.
func (a *agent) take() (round observe.Snapshot, fresh bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	round, fresh = a.latest, !a.latest.At.IsZero()
	a.latest = observe.Snapshot{}
	return round, fresh
}

// thousandths rounds a figure for the log: more digits tell nothing.
func thousandths(v float64) float64 { return math.Round(v*1000) / 1000 }

// finding acts on one container, or says why not. It tells whether something is in
// force for it now.
func (a *agent) finding(ctx context.Context, c *chooser, f finding, held []txn.InForce) bool {
	o := f.observation
	log := a.Log.With("container", text.Sanitize(o.Container.Name, 128), "cgroup", boundedPath(o.Container.Group.Path))
	low, high, _ := o.StoppedPerSecond()
	log = log.With("stopped_per_second_low", thousandths(low), "stopped_per_second_high", thousandths(high), "by",
		boundedPath(o.ThrottledBy))
	if f.rule != nil {
		log = log.With("rule_line", f.rule.Line)
	}
	switch reason, why := c.hindrance(f.rule, time.Now()); {
	case reason != "":
		log.Info(f.because() + "; " + why + wouldTry(f.rule, reason, time.Now()))
	case f.refused != "":
		log.Info(f.because()+"; not applied", "why", f.refused)
	default:
		err := a.fix(ctx, f, held)
		switch {
		case err == nil:
			c.tried(o.Container.Group.Path, time.Now(), 0)
			return !c.spread[o.Container.Group.Path].trying()
		case ctx.Err() != nil && !errors.As(err, new(*apply.NotRestored)):
		case errors.Is(err, fix.ErrObjectiveMet):
			log.Debug(f.because() + ", but its objective is met")
			c.later(o.Container.Group.Path, time.Now().Add(f.rule.SLOInterval))
		case errors.Is(err, errTrialsFull):
			log.Debug(f.because()+"; its trial waits", "why", err)
			c.later(o.Container.Group.Path, time.Now().Add(trialRetry))
		case apply.Passing(err):
			log.Info("the host changed before the plan was carried out, or it could not be written now: planned again", "why", err)
			c.later(o.Container.Group.Path, time.Now().Add(staleRetry))
		default:
			log.Warn("not fixed", "why", err)
			c.tried(o.Container.Group.Path, time.Now(), retryAfter)
		}
		c.attempted(o.Container.Group.Path, outcome(err))
	}
	return false
}

// errBudget vetoes a plan before anything is written.
var errBudget = errors.New("over the budget")

// fixOf is what a fix of a finding is asked for.
func (a *agent) fixOf(f finding, held []txn.InForce) (fix.Env, fix.Options, error) {
	containers, err := a.List()
	if err != nil {
		return fix.Env{}, fix.Options{}, err
	}
	wish := f.rule.Wish(a.Rules.Bound)
	wish.Request.Room = f.resized && (a.NRI == nil || !a.NRI.Figures().Live) // with NRI the burst is lowered first
	var latencies slo.Source
	if f.rule.SLOCommand != "" {
		latencies = a.Latencies(f.rule.SLOCommand)
	}
	if f.rule.IRQs {
		found, err := a.Interrupts()
		if err != nil {
			return fix.Env{}, fix.Options{}, fmt.Errorf("interrupts: %w", err)
		}
		wish.Request.Interrupts = &found
	}
	// There is no user to ask, and an unverified remedy is not kept, except a secondary:
	// its rule wants it whatever it brings, unless its slo gets worse. What it is
	// lent, where there is no slo to judge it by, comes with upkeep and on trial.
	second := secondary(f.rule)
	wish.Request.GrantLater = second && latencies == nil
	env, online := a.Fix(latencies), 0
	gather := env.Facts
	env.Facts = func(ctx context.Context, containers []container.Container, used map[string]float64) (hoststate.Facts, error) {
		facts, err := gather(ctx, containers, used)
		online = facts.Machine.Online().Size()
		return facts, err
	}
	if a.recorder != nil {
		env.Earlier = func(ctx context.Context) (fix.Learned, string) {
			return a.recorder.recordedOf(ctx, f.observation.CgroupID, f.observation.Container)
		}
	}
	options := fix.Options{
		Target: f.observation.Container, All: containers, Tries: tries, Both: f.rule.Verify == policy.VerifyBoth,
		Wish:      wish,
		Objective: f.rule.Objective, LookBack: f.rule.SLOLookBack, OnlyIfMissed: !second,
		Window: max(a.Rules.Interval, window(second && latencies == nil)), Settle: settle,
		Budget: f.rule.Trial.Most, Pause: pause,
		Say: func(text string) {
			a.Log.Debug("a fix", "container", boundedPath(f.observation.Container.Group.Path), "says", text)
		},
		Ask: func(question string) (bool, error) {
			return question == fix.QuestionApply || question == fix.QuestionTry, nil
		},
		Allowed: func(plan remedy.Plan) error { return withinShare(a.Rules.Budget, plan, held, online) },
		Shown: func(p policy.Proposal, _ apply.Result) error {
			if err := errors.Join(judgeable(f.rule, p), withinShare(a.Rules.Budget, *p.Plan, held, online)); err != nil {
				return err
			}
			a.Log.Info("applying", "container", text.Sanitize(f.observation.Container.Name, 128), "remedy",
				p.Plan.Remedy, "why", text.Shown(p.Why),
				"chosen_from", chosenFrom(p))
			return nil
		},
	}
	return env, options, nil
}

// fix runs one fix; nil only if the change helped and is in force, or a trial has begun that is spread over hours.
func (a *agent) fix(ctx context.Context, f finding, held []txn.InForce) error {
	env, options, err := a.fixOf(f, held)
	if err != nil {
		return err
	}
	if n, _ := trials(a.chooser.spread); f.rule.Trial.Over > 0 && n >= mostSpread { // before anything is taken back
		return errTrialsFull
	}
	if f.again != "" {
		a.Log.Info("other work came than at its last trial: remedies are tried anew", "container",
			text.Sanitize(f.observation.Container.Name, 128), "transaction", f.again)
		if _, err := a.takeBack(ctx, a.inForce(f.again)); err != nil {
			return fmt.Errorf("taking back what its last trial chose: %w", err)
		}
	}
	var result fix.Result
	do := fix.Run
	switch {
	case secondary(f.rule):
		do = fix.Apply
	case f.rule.Trial.Over > 0:
		do = func(ctx context.Context, env fix.Env, o fix.Options) (fix.Result, error) {
			return fix.Result{}, a.beginSpread(ctx, f, env, o)
		}
	}
	what := "a fix of " + boundedPath(f.observation.Container.Group.Path)
	a.meanwhile(ctx, what, options.Longest(), func() { result, err = do(ctx, env, options) })
	if t := result.Trial; t != nil {
		if err == nil { // one that measured nothing is none to wait after
			a.chooser.hadTrial(f.observation.Container.Group.Path, hadTrial{time.Now(), result.Before.Used()})
		}
		a.Log.Info("tried remedies in turns", "container", text.Sanitize(f.observation.Container.Name, 128), "rounds",
			t.Rounds, "seconds", thousandths(t.Seconds),
			"slow_requests", t.Slow, "requests", t.Requests, "kept", result.Kept, "why", text.Shown(result.Why))
	}
	switch {
	case err != nil:
		return err
	case a.chooser.spread[f.observation.Container.Group.Path].trying():
		return nil
	case !result.Kept:
		return &notKept{result.Verdict, result.Why, result.ID != ""}
	}
	a.Log.Info("applied", "container", text.Sanitize(f.observation.Container.Name, 128), "remedy", result.Remedy,
		"verdict", result.Verdict, "transaction", result.ID)
	return nil
}

// chosenFrom says which recording a choice rests on.
func chosenFrom(p policy.Proposal) string {
	switch k := p.Known; {
	case k == nil || k.Forecast == nil:
		return "no recording"
	case k.From != "":
		return text.Shown(k.From)
	case k.NotEarlier != "":
		return "a new recording: " + text.Shown(k.NotEarlier)
	}
	return "a new recording"
}

// errUnjudged vetoes a plan whose effect nothing could judge.
var errUnjudged = errors.New("not applied, because its effect could not be verified")

// judgeable returns an error where the recorded responses are to judge and nothing was recorded.
func judgeable(rule *policy.Rule, p policy.Proposal) error {
	if rule.Verify != policy.VerifyProbe && rule.Verify != policy.VerifyBoth || p.Known != nil && p.Known.Forecast != nil {
		return nil
	}
	return fmt.Errorf("%w (verify: %s): %s", errUnjudged, rule.Verify, p.Why)
}

// Windows of the agent's fixes.
const (
	fixWindow = 5 * time.Second
	settle    = time.Second
	// tries is how many remedies a fix tries until one helps.
	tries = 3
)

// window is how long a fix looks before and after. What is judged by nothing needs
// no more than a record.
func window(unjudged bool) time.Duration {
	if unjudged {
		return time.Second
	}
	return fixWindow
}

// withinShare: exclusive CPUs, those of this plan included, stay within the
// budget's part of the machine.
func withinShare(b policy.Budget, p remedy.Plan, held []txn.InForce, online int) error {
	if p.CPUs.IsEmpty() {
		return nil
	}
	exclusive := p.CPUs
	for _, h := range held {
		read, err := remedy.Decode(h, "")
		if err != nil {
			return err
		}
		exclusive = exclusive.Union(read.Withdrawn())
	}
	if most := b.CPUShare * float64(online); float64(exclusive.Size()) > most {
		return fmt.Errorf("%w: %d exclusive CPUs would be more than %.3g of %d", errBudget, exclusive.Size(), b.CPUShare, online)
	}
	return nil
}
