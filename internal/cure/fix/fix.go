package fix

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/cure/slo"
	"github.com/unthrottle/unthrottle/internal/cure/verdict"
	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
)

// Env is what a fix touches; tests put a model of the kernel behind it.
type Env struct {
	Apply apply.Env
	// Observe looks at containers for a window.
	Observe func(ctx context.Context, containers []container.Container, window time.Duration) ([]observe.Observation, error)
	// Facts gathers what a plan rests on; used is the CPU use by path as just
	// observed.
	Facts func(ctx context.Context, containers []container.Container, used map[string]float64) (hoststate.Facts, error)
	// Learn records the target for a while; nil: this host cannot record.
	Learn func(ctx context.Context, target container.Container, length time.Duration) (Learned, error)
	// LearnUntil is Learn, but ends at once when a request of a client takes longer than a bound: late is how long it took, 0: none did.
	// nil: that cannot be seen while it is recorded.
	LearnUntil func(ctx context.Context, target container.Container, length, bound time.Duration) (learned Learned,
		late time.Duration, err error)
	// Earlier gives a recording of the target that exists already, after waiting for one that is under way. The text says why none
	// may be chosen from; "": one may. nil: none are kept.
	Earlier func(ctx context.Context) (Learned, string)
	// Waited is for how long each thread in these cgroups has waited for a CPU since it began, by its id; nil: that cannot be read.
	Waited func(paths []string) map[int]time.Duration
	// SchedExt says that this host can narrow by sched_ext.
	SchedExt bool
	// Each begins a forecast and returns what runs its replays: see forecast.Options.Each. nil: one after the other.
	Each func() func(n int, do func(i int) error) error
	// Latencies gives the user's own latencies; nil: there is no source.
	Latencies slo.Source
	// Wait waits between applying and looking again.
	Wait func(ctx context.Context, d time.Duration) error
}

// Options of a fix.
type Options struct {
	Target container.Container
	// All are the containers of the host, the target among them.
	All  []container.Container
	Wish policy.Wish
	// Objective is the bound to keep, and says which quantile is judged; zero: none. Without Env.Latencies it is
	// one on the responses of all thread pools, by the probe.
	Objective objective.Objective
	// Both: with Env.Latencies the recorded responses judge too, and the worse verdict counts.
	Both bool
	// Budget is for how long remedies are tried in turns, so that what was measured chooses; 0: the forecast chooses one, which is tried
	// once.
	Budget time.Duration
	// Neighbours is the share by which a remedy may make the threads of other containers wait longer for a CPU; 0: trial.DefaultNeighbours.
	Neighbours float64
	// Pause is how long the container is left alone between two rounds of a trial.
	Pause time.Duration
	// Tries is how many remedies are tried, one after the other; 0: one.
	Tries int
	// LookBack is how far Env.Latencies looks back, whatever it is asked for: so
	// long is waited after the change. 0: that is not known.
	LookBack time.Duration
	// OnlyIfMissed: where the objective is met beforehand nothing is written and
	// the error is ErrObjectiveMet.
	OnlyIfMissed bool
	// Window is how long to look before and after, Settle how long to wait in
	// between.
	Window, Settle time.Duration
	// DryRun ends with the plan; nothing is written, not even what an
	// interrupted writer left is put back.
	DryRun bool
	// Ask is asked before writing and before keeping what is unverified; nil:
	// there is no user to ask, and Yes stands for the answer.
	Ask func(question string) (bool, error)
	Yes bool
	// Explained gets what the recording says, as soon as it is there; stoppedAbove: the container is stopped above the bound.
	Explained func(e diagnose.Explanation, stoppedAbove bool) error
	// Found gets what was found and is recommended, also where nothing is to be written.
	Found func(policy.Proposal) error
	// Allowed says of a plan of a trial why it must not be tried, beyond what Wish says; nil: all may be.
	Allowed func(remedy.Plan) error
	// Shown gets the proposal and the exact writes before anything is asked.
	Shown func(policy.Proposal, apply.Result) error
	// Say tells people what is going on; nil: silence.
	Say func(text string)
}

// Questions that are asked before anything is written. QuestionMoreCPU is never answered by Options.Yes.
const (
	QuestionApply   = "apply this?"
	QuestionMoreCPU = "this grants more CPU than the limit: apply it?"
)

// The verdicts beside those of verdict and apply. Where a forecast recommends no remedy, its policy.Answer is the
// verdict.
const (
	verdictNothing    = "nothing to fix"
	VerdictNotApplied = "not applied"
)

// Result is what came of it.
type Result struct {
	apply.Result
	// Target is the container's name, Cause what the explanation says of it in a sentence; "": not known.
	Target string `json:"target"`
	Cause  string `json:"cause"`
	// Remedy is what was proposed; "": nothing.
	Remedy string `json:"remedy"`
	// Why is the reason for the choice, and for the verdict where there is one.
	Why string `json:"why"`
	// Not are the remedies that were not chosen.
	Not []policy.Rejected `json:"not_chosen"`
	// Kept: the change is in force.
	Kept bool `json:"kept"`
	// Before and After were measured over WindowSeconds; null: not measured.
	Before        *txn.Figures `json:"before"`
	After         *txn.Figures `json:"after"`
	WindowSeconds float64      `json:"window_seconds"`
	// Judgement has the latencies' quantiles and the neighbours' figures.
	Judgement *verdict.Judgement `json:"judgement"`
	// Trial is what was measured of each remedy in turns; null: the forecast chose.
	Trial *Trial `json:"trial"`
	// Tries are the remedies that were applied, in order; the last one is the one above.
	Tries []Try `json:"tries"`
	// ObjectiveMet is about the last measurement; null: there is no objective, or nothing was measured.
	ObjectiveMet *bool `json:"objective_met"`
	// Proposal is the last one made.
	Proposal policy.Proposal `json:"-"`
	// StoppedAbove: as last seen, the container is stopped above the bound.
	StoppedAbove bool `json:"stopped_above_bound"`
}

// NoRemedy says that there is a finding and nothing that may be done about it.
type NoRemedy struct {
	Target, Why string
	Not         []policy.Rejected
}

func (e *NoRemedy) Error() string {
	text := fmt.Sprintf("%q: %s", e.Target, e.Why)
	for _, n := range e.Not {
		text += fmt.Sprintf("\n  not %s: %s", n.Remedy, n.Why)
	}
	return text
}

// NotMeasured is the error of a fix that lacks a measurement: of stopped time or latencies before the change, so that
// nothing was written, or of its effect, so that it was undone.
type NotMeasured struct{ Err error }

func (e *NotMeasured) Error() string { return e.Err.Error() }

// Unwrap gives what went wrong.
func (e *NotMeasured) Unwrap() error { return e.Err }

// errNoTerminal: a question came up, there is no terminal, and --yes was not
// given.
var errNoTerminal = errors.New("this must be confirmed and there is no terminal to ask on: look at the plan and say --yes")

// ErrObjectiveMet: the user's latency is fine as it is, whatever the counters
// say.
var ErrObjectiveMet = errors.New("the objective is met as it is")

// Run does one fix. An error leaves nothing half done: what was applied is rolled
// back first, also when ctx ends; where this process is killed, by the next writer.
func Run(ctx context.Context, env Env, o Options) (Result, error) {
	r := newRun(env, o)
	r.onTrial = true
	if o.DryRun {
		err := r.alone()
		if err == nil {
			err = r.lookAndLearn(ctx)
		}
		planned := false
		if err == nil && r.trials() {
			planned, err = r.showTurns()
		}
		if err == nil && !planned {
			err = r.propose()
		}
		return r.res, err
	}
	if err := r.recover(ctx); err != nil {
		return r.res, err
	}
	if err := r.alone(); err != nil {
		return r.res, err
	}
	err := r.do(ctx)
	if r.res.ID == "" && !r.noFinding {
		r.res.Verdict = VerdictNotApplied
	}
	return r.res, err
}

func newRun(env Env, o Options) *run {
	return &run{env: env, o: o, res: Result{
		Result:        apply.Result{Writes: []apply.Write{}, Skipped: []txn.Skip{}},
		Not:           []policy.Rejected{},
		Tries:         []Try{},
		Target:        text.EscapePath(o.Target.Name),
		WindowSeconds: o.Window.Seconds(),
	}}
}

// recover puts back what an interrupted writer left.
func (r *run) recover(ctx context.Context) error {
	recovered, err := apply.Recover(ctx, r.env.Apply)
	if err != nil {
		return err
	}
	for _, text := range recovered.Warnings {
		r.say("%s", text)
	}
	if len(recovered.Writes) > 0 {
		r.say("an interrupted change was put back first")
	}
	return nil
}

// alone is an error while another process tries remedies on the target: neither would measure what it thinks it does.
func (r *run) alone() error {
	held, err := apply.Status(r.env.Apply)
	if err != nil {
		return err
	}
	for _, f := range held {
		if judged := f.Judged(); judged != "" && f.Target == r.o.Target.Group.Path {
			return fmt.Errorf("%s: %s; %s", text.Sanitize(r.o.Target.Name, 128), judged, txn.AwaitTrial)
		}
	}
	return nil
}

// run is one fix under way.
type run struct {
	env        Env
	o          Options
	res        Result
	plan       remedy.Plan
	own        observe.Observation
	used       map[string]float64
	facts      hoststate.Facts
	neighbour  map[string]hoststate.Observed
	known      *policy.Known // nil: nothing was recorded
	runs       *forecast.Runs
	longest    time.Duration // request in the recordings before a change: Learned.Longest
	before     slo.Answer
	last       apply.Result    // of the try before
	looked     time.Duration   // how long the target was recorded
	notEarlier string          // why no earlier recording was chosen from; "": there is none, or it was
	pools      []Pool          // of the try under way
	asked      bool            // the latency source, before
	cause      *diagnose.Cause // as told; nil: it was not
	noFinding  bool
	// onTrial: the change may be undone after it is looked at. If this process ends before that, the next command that writes undoes it.
	onTrial bool
	// by is what judges where somebody gave it; nil: what the forecast says.
	by *Measure
}

func (r *run) say(format string, args ...any) {
	if r.o.Say != nil {
		r.o.Say(fmt.Sprintf(format, args...))
	}
}

// do looks, and tries remedies until one is kept.
func (r *run) do(ctx context.Context) error {
	if err := r.lookAndLearn(ctx); err != nil {
		return err
	}
	if r.trials() {
		if done, err := r.inTurns(ctx); done || err != nil {
			return err
		}
	}
	for try := 1; ; try++ {
		again, err := r.try(ctx)
		if r.res.ID == "" && try > 1 {
			// Nothing more was applied: what came of the last try stands.
			why := r.res.Why
			r.res.Result, r.res.Why = r.last, r.res.Tries[try-2].Why
			if err == nil {
				r.res.Why += "; then: " + why
			}
		}
		if err != nil || !again || try >= r.o.Tries {
			return err
		}
		r.last = r.res.Result
		if err := r.lookAround(ctx); err != nil {
			return err
		}
	}
}

// try proposes, applies and judges one remedy. again: it did not help and was undone, and another one may.
func (r *run) try(ctx context.Context) (again bool, err error) {
	if err := r.propose(); err != nil || r.noFinding {
		return false, err
	}
	if agreed, err := r.agreeToApply(); err != nil || !agreed {
		return false, err
	}
	if written, err := r.write(ctx); err != nil || !written {
		return false, err
	}
	if err := r.judge(ctx); err != nil {
		if !r.res.Kept { // taken back to look at it as it was
			return false, err
		}
		return false, r.undoUnmeasured(ctx, err)
	}
	r.record()
	err = r.decide(ctx)
	if err == nil && r.res.Kept {
		err = r.keep(ctx)
	}
	return r.tried() && err == nil, err
}

// write applies the plan. written is false where every setting was as it should be.
func (r *run) write(ctx context.Context) (written bool, err error) {
	if err := r.latenciesBefore(ctx); err != nil {
		return false, err
	}
	if err := r.sameLimit(ctx); err != nil {
		return false, err
	}
	done, err := apply.Apply(ctx, r.env.Apply, r.purpose(), r.plan.Changes)
	r.take(done)
	if err != nil || done.ID == "" {
		return false, err
	}
	r.res.Kept, r.pools = true, []Pool{}
	return true, nil
}

// undoUnmeasured takes back a change whose effect could not be measured.
func (r *run) undoUnmeasured(ctx context.Context, err error) error {
	why := "its effect could not be measured: " + err.Error()
	if ctx.Err() != nil {
		why = "interrupted"
	} else {
		err = &NotMeasured{err}
	}
	return errors.Join(err, r.undo(ctx, why))
}

// take puts the result of applying over what was planned.
func (r *run) take(done apply.Result) {
	done.Skipped = append(done.Skipped, r.plan.Skipped...)
	done.Warnings = append(done.Warnings, r.plan.Warnings...)
	r.res.Result = done
}

// agreeToApply asks whether to write. More CPU than the limit that was not asked for needs a person's own yes.
func (r *run) agreeToApply() (bool, error) {
	c := r.res.Proposal.Choice
	if c == nil || c.Answer != policy.AnswerMoreCPU {
		return r.agree(QuestionApply)
	}
	if r.o.Yes || r.o.Ask == nil {
		r.res.Why += "; say --may " + r.res.Remedy
		return false, nil
	}
	return r.o.Ask(QuestionMoreCPU)
}

// agree asks whether to go on.
func (r *run) agree(question string) (bool, error) {
	if r.o.Yes {
		return true, nil
	}
	if r.o.Ask == nil {
		return false, errNoTerminal
	}
	return r.o.Ask(question)
}

// record takes down the judgement.
func (r *run) record() {
	j := r.res.Judgement
	outcome := txn.Outcome{Verdict: j.Verdict, Before: r.res.Before, After: r.res.After, Note: j.Why,
		Counted: apply.Count(r.env.Apply, r.o.Target.Group.Path)}
	if r.known != nil && r.known.From != "" {
		outcome.Note += "; chosen from " + r.known.From
	}
	if err := apply.Record(r.env.Apply, r.res.ID, outcome); err != nil {
		r.res.Warnings = append(r.res.Warnings, "the outcome could not be recorded: "+err.Error())
	}
	r.res.Verdict = j.Verdict
}

// decide keeps or undoes, after the judgement.
func (r *run) decide(ctx context.Context) error {
	j := r.res.Judgement
	switch {
	case j.Verdict == verdict.Worse, j.Verdict == verdict.NoChange:
		return r.undo(ctx, j.Verdict+": "+j.Why)
	case len(j.Harmed) > 0:
		return r.undo(ctx, fmt.Sprintf("containers whose CPUs shrank or are lent are stopped longer or use less than "+
			"before: %.400q", j.Harmed))
	case j.Verdict == verdict.Unverified && r.noEffect():
		return r.undo(ctx, "it is stopped as long as before")
	case j.Verdict == verdict.Better:
		return nil
	}
	keep, err := r.agree("the effect is unverified (" + j.Why + "): keep it?")
	if err != nil || !keep {
		return errors.Join(err, r.undo(ctx, "not confirmed: "+j.Why))
	}
	return nil
}

// noEffect: even the least that it can be stopped now is no less than the most
// that it was. Without both figures nothing can be said.
func (r *run) noEffect() bool {
	b, a := r.res.Before, r.res.After
	return b != nil && a != nil && b.StoppedPerSecondLow != nil && a.StoppedPerSecondLow != nil &&
		*a.StoppedPerSecondLow > 0 && *a.StoppedPerSecondLow >= *b.StoppedPerSecondLow
}

// undo takes the change back, also after ctx has ended.
func (r *run) undo(ctx context.Context, why string) error {
	r.say("undoing it: %s", why)
	back, err := r.restore(ctx, false)
	r.res.Writes = append(r.res.Writes, back.Writes...)
	r.res.Skipped = append(r.res.Skipped, back.Skipped...)
	r.res.Warnings = append(r.res.Warnings, back.Warnings...)
	r.res.Why = why
	if err != nil {
		return fmt.Errorf("%s: %w", why, err)
	}
	r.res.Kept = false
	r.res.StoppedAbove = r.above(r.res.Before)
	if back.Verdict != apply.VerdictRestored {
		r.res.Warnings = append(r.res.Warnings, "undone, but "+back.Verdict)
	}
	return nil
}

// undoTime bounds how long a change is taken back, also where the lock is another writer's meanwhile.
const undoTime = time.Minute

// restore takes back what is in force of this fix, also after ctx has ended. again: the same may be set again soon.
func (r *run) restore(ctx context.Context, again bool) (apply.Result, error) {
	purpose := r.plan.Purpose()
	r.env.Apply.TellUndoing(ctx, purpose.Remedy, purpose.Target.Path)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	env := r.env.Apply
	env.LockWait = max(env.LockWait, undoTime)
	back, err := apply.Restore(ctx, env, apply.Selector{IDs: []string{r.res.ID}, Again: again})
	switch {
	case errors.As(err, new(*apply.NotRestored)):
		return back, fmt.Errorf("undoing %s: %w", r.plan.Remedy, err)
	case err != nil:
		return back, fmt.Errorf("%s is in force and could not be undone: %w; run unthrottle restore", r.plan.Remedy, err)
	}
	return back, nil
}
