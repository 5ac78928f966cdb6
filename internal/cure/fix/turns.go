package fix

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/slo"
	"github.com/unthrottle/unthrottle/internal/cure/trial"
	"github.com/unthrottle/unthrottle/internal/cure/verdict"
	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/stats"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

const (
	// leastTurn is how long a turn is measured at least, and leastPeriods how many periods of the quota it has; of a longer period
	// that the remedy brings it has forecast.MeasuredPeriods.
	leastTurn, leastPeriods = 6 * time.Second, 40
	// forecast.LongestTurn bounds a turn that waits for requests, of which it should have leastOfTurn.
	leastOfTurn = 40
	// longestDrain bounds the wait for a queue that the variant before has left.
	longestDrain = 3 * time.Second
	// leastTurns is how many turns of each variant the budget must have room for, leastVariants of how many: leaving it and one remedy.
	leastTurns, leastVariants = 2, 2
	// firstLook is how long a variant is looked at first that is forecast no better than leaving it.
	firstLook = 2 * time.Second
	// leastSeen is how many requests or runs a look needs for a trial to be worth its time.
	leastSeen = 20
)

// VerdictTurn is the outcome of a remedy that was in force for a turn of a trial.
const VerdictTurn = "tried in turns"

// VerdictCannotTell is the verdict of a trial whose turns differ by more than remedies do, or had too few requests.
const VerdictCannotTell = "cannot tell"

// QuestionTry is asked before a trial.
const QuestionTry = "try these in turns, and keep the best?"

// Trial is what a trial measured: the contract of `fix --json`.
type Trial struct {
	Rounds  int     `json:"rounds"`
	Seconds float64 `json:"seconds"`
	// Quantile is the one that Rows have, Of what it is of: "requests", "pool" (the runs of the judged thread pool) or
	// "latencies" (the user's own).
	Quantile float64 `json:"quantile"`
	Of       string  `json:"of"`
	// ForecastQuantile is the one of the rows' forecast_ms, which a recording of another length may tell; null: nothing was forecast.
	ForecastQuantile *float64   `json:"forecast_quantile"`
	Rows             []TrialRow `json:"rows"`
	// Kept is the name of the row that is in force; null: none is.
	Kept *string `json:"kept"`
	// Slow is how many of the Requests took longer than twice the judged quantile when it was left as it is.
	Slow     int `json:"slow_requests"`
	Requests int `json:"requests"`
}

// TrialRow is one variant.
type TrialRow struct {
	Name       string            `json:"name"`
	Remedy     string            `json:"remedy"` // "none": left as it is
	Parameters map[string]string `json:"parameters"`
	ForecastMs *float64          `json:"forecast_ms"` // null: nothing was forecast of it
	MeasuredMs *float64          `json:"measured_ms"` // null: too few requests
	LowMs      *float64          `json:"low_ms"`
	HighMs     *float64          `json:"high_ms"`
	P50Ms      *float64          `json:"p50_ms"`
	P90Ms      *float64          `json:"p90_ms"`
	Rounds     int               `json:"rounds"`
	Requests   int               `json:"requests"`
	Others     []OtherRequests   `json:"other_requests"`
	// StoppedMs is for how long quotas stopped the container, in ms a second, by the kernel's counters; null: not measured.
	StoppedMs *float64 `json:"stopped_ms_per_second"`
	// OthersWaitMs is for how long threads of other containers waited for a CPU, in ms a second, all together; null: not measured.
	OthersWaitMs *float64 `json:"others_wait_ms_per_second"`
	// SiblingCPUs is what the container used that cap holds; null: there is none, or it was not measured.
	SiblingCPUs *float64 `json:"sibling_cpus"`
	Ended       *string  `json:"ended"` // "harm", "clear"; null: it was in the trial to the end
	Why         string   `json:"why"`
	Kept        bool     `json:"kept"`
}

// OtherRequests are those of a kind that is not judged.
type OtherRequests struct {
	Kind     string   `json:"kind"`
	Requests int      `json:"requests"`
	Quantile *float64 `json:"quantile"` // of MS; null: so few tell none
	MS       *float64 `json:"ms"`
}

// turns is a trial under way.
type turns struct {
	r          *run
	candidates []policy.Candidate // of variant 1 and on
	others     []policy.Candidate // that may be tried where one beside them does well
	of         *trial.Trial
	quantile   float64
	length     time.Duration
	drain      time.Duration // before the next turn is measured
	rounds     int
	unanswered int  // calls of the latency source that failed, one after the other
	spread     bool // its turns are blocks, of which another one comes later
	used       time.Duration
	looked     time.Duration                  // once more, before the trial: it is of the budget, so that fix ends as soon
	before     map[string]observe.Observation // of neighbours, when it was left
	seen       [][]observe.Observation        // of the target, by variant
	sibling    [][]float64                    // CPUs that the sibling used which cap holds, by variant
	longest    time.Duration                  // request when it was left
	answer     []float64                      // of the latency source, the last time
	last       trial.Measured                 // what the last turn showed
	saidOut    []int                          // variants that were told not to be tried again
}

// trials reports whether remedies are tried in turns: it was asked for, and there is something to judge by.
func (r *run) trials() bool {
	switch {
	case r.o.Budget <= 0 || !r.o.Wish.Auto:
		return false
	case !r.res.StoppedAbove && (r.known == nil || !policy.SlowsRequests(r.known, r.o.Wish)):
		return false
	case r.env.Latencies != nil:
		return leastTurns*leastVariants*(r.turnLength()+r.o.Settle) <= r.o.Budget
	}
	return r.env.Learn != nil && r.runs != nil && r.known != nil && len(r.sample(r.runs).TookMs) >= leastSeen
}

// sample are the judged requests of a recording, or the runs of the judged pool.
func (r *run) sample(of *forecast.Runs) verdict.Requests {
	if of == nil {
		return verdict.Requests{}
	}
	judged := r.judged()
	if judged.Of == forecast.OfRequests {
		return requestsOf(of, judged.Kind)
	}
	runs := runsOf(of, judged.Pool)
	return verdict.Requests{Window: runs.Window, BeganMs: runs.WokenMs, TookMs: runs.ResponseMs,
		CPUs: of.CPU().Seconds() / of.Window.Seconds()}
}

// others are the requests of the kinds that are not judged.
func (r *run) others(runs *forecast.Runs) (all []verdict.Requests) {
	if runs == nil {
		return nil
	}
	for _, kind := range r.otherKinds() {
		all = append(all, requestsOf(runs, kind))
	}
	return all
}

// otherKinds are the kinds of requests that are not judged.
func (r *run) otherKinds() (kinds []forecast.Kind) {
	if r.made() == nil {
		return nil
	}
	for _, seen := range r.made().Kinds {
		if seen.Kind != r.judged().Kind {
			kinds = append(kinds, seen.Kind)
		}
	}
	return kinds
}

// otherRequests are what a trial measured of these kinds; with the user's own latencies (Both) what was recorded of the judged kind is
// the last.
func (r *run) otherRequests(measured []trial.Other) []OtherRequests {
	kinds := append(r.otherKinds(), r.judged().Kind)
	all := []OtherRequests{}
	for i, m := range measured[:min(len(measured), len(kinds))] {
		other := OtherRequests{Kind: cmp.Or(kinds[i].String(), "recorded"), Requests: m.Requests}
		if m.Quantile > 0 {
			other.Quantile, other.MS = &m.Quantile, &m.MS
		}
		all = append(all, other)
	}
	return all
}

// inTurns tries the remedies that keep the limit in turns, measures each, and leaves the best one in force. done: it did; else nothing can
// be tried, and what the forecast says goes on.
func (r *run) inTurns(ctx context.Context) (done bool, err error) {
	t, _, err := r.planTurns()
	if err != nil || t == nil {
		return false, err
	}
	if agreed, err := r.agree(QuestionTry); err != nil || !agreed {
		r.res.Verdict = VerdictNotApplied
		return true, err
	}
	if err := r.latenciesBefore(ctx); err != nil {
		return true, err
	}
	defer t.forget(ctx)
	draw := rand.New(rand.NewPCG(uint64(len(t.candidates)), uint64(r.own.Start.UnixNano())))
	for t.of.More(t.looked+t.used, t.meanTurn(), r.o.Budget) {
		if t.rounds > 0 {
			if err := r.env.Wait(ctx, r.o.Pause); err != nil {
				return true, errors.Join(err, t.show(0))
			}
		}
		t.rounds++
		order := t.of.Order(draw)
		if t.rounds == 1 { // all others are compared with leaving it, from their first moment on
			at := slices.Index(order, 0)
			order[0], order[at] = order[at], order[0]
		}
		for _, v := range order {
			if err := t.turn(ctx, v); err != nil {
				return true, errors.Join(err, t.show(0))
			}
		}
		t.sayOut(order)
		if t.rounds == 1 {
			t.lengthen()
		}
		t.enterBeside()
	}
	return true, t.conclude(ctx)
}

// showTurns shows what each remedy of a trial would write; planned: there are some.
func (r *run) showTurns() (planned bool, err error) {
	t, _, err := r.planTurns()
	if err != nil || t == nil {
		return false, err
	}
	for _, c := range t.candidates {
		r.plan = *c.Plan
		shown, err := apply.Plan(r.env.Apply, r.plan.Purpose(), r.plan.Changes)
		if err != nil {
			return true, err
		}
		r.take(shown)
		r.res.Remedy = string(r.plan.Remedy)
		if r.o.Shown != nil {
			r.say("%s, for %s at a time", c.Name, text.Duration(t.length))
			if err := r.o.Shown(r.res.Proposal, r.res.Result); err != nil {
				return true, err
			}
		}
	}
	return true, nil
}

// planTurns makes a trial of what may be tried; nil: there is nothing, and why says so.
func (r *run) planTurns() (t *turns, why string, err error) {
	proposal, err := policy.Propose(r.own, r.facts, r.o.Wish, r.known)
	if err != nil || proposal.NotMeasured || proposal.Plan == nil && proposal.Choice == nil {
		return nil, proposal.Why, err
	}
	candidates, others, err := policy.Candidates(r.own, r.facts, r.o.Wish, r.known)
	notAllowed := func(c policy.Candidate) bool {
		if r.o.Allowed == nil {
			return false
		}
		why := r.o.Allowed(*c.Plan)
		if why != nil {
			r.say("%s is not tried: %v", c.Name, why)
		}
		return why != nil
	}
	candidates, others = slices.DeleteFunc(candidates, notAllowed), slices.DeleteFunc(others, notAllowed)
	if err != nil || len(candidates) == 0 {
		return nil, "nothing that keeps the limit can be tried: " + proposal.Why, err
	}
	proposal.Turns = true
	r.res.Proposal, r.res.Not = proposal, append([]policy.Rejected{}, proposal.Not...)
	if r.o.Found != nil {
		if err := r.o.Found(proposal); err != nil {
			return nil, "", err
		}
	}
	t = &turns{r: r, length: r.turnLength(), others: others}
	if r.looked > r.o.Window {
		t.looked = r.looked
	}
	room := r.o.Budget/leastTurns - t.length - r.o.Settle
	for _, c := range candidates {
		if room -= t.lasts(c); room < 0 && len(t.candidates) > 0 {
			r.say("%s is not tried: %s have no room for it; give a longer --budget", c.Name, text.Duration(r.o.Budget))
			continue
		}
		t.candidates = append(t.candidates, c)
	}
	candidates = t.candidates
	variants := []trial.Variant{{Name: "leave it"}}
	names := []string{}
	for _, c := range candidates {
		variants = append(variants, r.variant(c))
		names = append(names, c.Name)
	}
	sample := r.sample(r.runs)
	t.quantile = r.judged().Quantile
	if r.by != nil {
		t.quantile = r.by.Quantile
	} else if r.o.Objective != (objective.Objective{}) {
		t.quantile = r.o.Objective.Quantile
	} else if n := int(float64(len(sample.TookMs)) * leastTurns * t.length.Seconds() /
		sample.Window.Seconds()); n < stats.Need(t.quantile) {
		if q, ok := stats.Tells(n, t.quantile); ok {
			t.quantile = q // what two turns tell
		}
	}
	t.longest = r.longest
	for _, ms := range sample.TookMs {
		t.longest = max(t.longest, time.Duration(ms*float64(time.Millisecond)))
	}
	t.of = trial.New(variants, t.quantile, r.o.Objective != (objective.Objective{}))
	if r.o.Neighbours > 0 {
		t.of.Neighbours = r.o.Neighbours
	}
	t.seen, t.sibling = make([][]observe.Observation, len(variants)), make([][]float64, len(variants))
	r.say("the forecast says in which order; a trial of up to %s chooses: left as it is, %s, in turns of %s", text.Duration(r.o.Budget),
		text.Names(names), text.Duration(t.length))
	return t, "", nil
}

// variant is a candidate as the trial knows it.
func (r *run) variant(c policy.Candidate) trial.Variant {
	return trial.Variant{Name: c.Name, Remedy: string(c.Plan.Remedy), Change: c.Change, Expected: r.expects(r.res.Proposal.Choice, c.Row)}
}

// enterBeside takes in the candidates beside the one that is lowest so far, if there is room for two turns of each.
func (t *turns) enterBeside() {
	v := t.of.Lowest()
	if v == 0 {
		return
	}
	for _, c := range t.candidates[v-1].Beside(t.others) {
		if room := t.r.o.Budget - t.looked - t.used; room < leastTurns*(time.Duration(t.of.Left())*t.meanTurn()+t.lasts(c)) {
			return
		}
		t.r.say("%s does well: %s is tried too", t.name(v), c.Name)
		t.others = slices.DeleteFunc(t.others, func(o policy.Candidate) bool { return o.Row == c.Row })
		t.candidates = append(t.candidates, c)
		t.of.Enter(t.r.variant(c))
		t.seen, t.sibling = append(t.seen, nil), append(t.sibling, nil)
	}
}

// settling is how long a variant is in force before it is measured, measured for how long it is then. A longer period has had what the
// write gave by then, or a tenth of the turn at most.
func (t *turns) settling(v int) time.Duration {
	return max(t.r.o.Settle, t.drain, forecast.SettlePeriods*t.period(v))
}

func (t *turns) measured(v int) time.Duration {
	return max(t.length, forecast.MeasuredPeriods*t.period(v))
}

// period is the one that a variant brings; 0: the period stays.
func (t *turns) period(v int) time.Duration {
	if v == 0 {
		return 0
	}
	return t.candidates[v-1].Request.Period
}

// lasts is how long a turn of a candidate takes where no queue has to drain before, meanTurn how long one takes on average.
func (t *turns) lasts(c policy.Candidate) time.Duration {
	return max(t.length, forecast.MeasuredPeriods*c.Request.Period) + max(t.r.o.Settle, forecast.SettlePeriods*c.Request.Period)
}

func (t *turns) meanTurn() time.Duration {
	sum := t.length + t.r.o.Settle
	for _, c := range t.candidates {
		sum += t.lasts(c)
	}
	return sum / time.Duration(1+len(t.candidates))
}

// expects reports whether the forecast would choose a row, or one that differs from it by a number alone.
func (r *run) expects(c *policy.Choice, row int) bool {
	if c == nil || c.Answer != policy.AnswerRemedy || row < 0 {
		return false
	}
	rows := r.made().Rows
	return policy.FamilyOf(rows[c.Row].Remedy) == policy.FamilyOf(rows[row].Remedy)
}

// turnLength is how long each turn is measured: enough periods, and enough requests if they come.
func (r *run) turnLength() time.Duration {
	length := leastTurn
	for _, l := range r.own.Levels {
		if l.Limit.Limited() {
			length = max(length, leastPeriods*l.Limit.Period)
		}
	}
	if r.env.Latencies != nil {
		return max(length, r.o.LookBack)
	}
	sample := r.sample(r.runs)
	enough := time.Duration(leastOfTurn / max(1, float64(len(sample.TookMs))) * float64(sample.Window)).Round(time.Second)
	return max(length, min(enough, forecast.LongestTurn))
}

// lengthen makes turns longer where too few requests came in that of leaving the container, and has those measured again that had too few:
// the first look may have met a backlog that a quota had just let go.
func (t *turns) lengthen() {
	came := t.of.Row(0).Requests
	if t.r.env.Latencies != nil || came >= leastSeen {
		return
	}
	longer := min(t.length*leastOfTurn/time.Duration(max(1, came)), forecast.LongestTurn).Round(time.Second)
	if longer <= t.length {
		return
	}
	t.length = longer
	t.of.ForgetFew()
	t.r.say("%s came in the turn of leaving it as it is, and a turn needs %d: each takes %s from now on", text.Count(came, "request"),
		leastSeen, text.Duration(longer))
}

// turn measures one variant once, and takes it back.
func (t *turns) turn(ctx context.Context, v int) (err error) {
	r := t.r
	if err := r.sameLimit(ctx); err != nil {
		return err
	}
	watched := []string{}
	if v > 0 {
		plan := t.candidates[v-1].Plan
		r.plan = *plan
		watched = slices.Concat(plan.Moved, plan.Lenders, t.siblings())
		purpose := plan.Purpose()
		purpose.Trial = planning + longestDrain + t.settling(v) + t.measured(v)
		if r.env.Latencies != nil {
			purpose.Trial += slo.Limit
		}
		done, failed := t.apply(ctx, purpose, plan.Changes)
		if failed != nil && ctx.Err() == nil && !errors.As(failed, new(*apply.NotRestored)) && !(t.spread && apply.Passing(failed)) {
			t.of.Drop(v, "it cannot be applied: "+failed.Error())
			return nil
		}
		if failed != nil {
			return failed
		}
		if done.ID != "" {
			r.res.ID, r.res.Kept = done.ID, true
			defer func() { err = errors.Join(err, t.takeBack(ctx)) }()
		}
	} else {
		for _, c := range t.candidates {
			watched = append(watched, slices.Concat(c.Plan.Moved, c.Plan.Lenders)...)
		}
		watched = append(watched, t.siblings()...)
	}
	settle := t.settling(v)
	t.used += settle
	if err := r.env.Wait(ctx, settle); err != nil {
		return err
	}
	if t.doubted(v) {
		m, err := t.measure(ctx, v, watched, firstLook)
		if err != nil {
			return err
		}
		if why := t.of.Glance(v, m); why != "" {
			t.last = m
			t.last.Ended = why
			t.say(v, m, why)
			return nil
		}
	}
	m, err := t.measure(ctx, v, watched, t.measured(v))
	if err != nil {
		return err
	}
	t.of.Add(v, m)
	t.last = m
	t.record(v, t.say(v, m, ""))
	return nil
}

// apply applies changes. Where another moment may take what this one does not, it tries again a few times: another variant would win else.
// Blocks are tried again by themselves.
func (t *turns) apply(ctx context.Context, purpose txn.Purpose, changes []change.Change) (done apply.Result, err error) {
	const tries, between = 5, 2 * time.Second
	for try := 1; ; try++ {
		done, err = apply.Apply(ctx, t.r.env.Apply, purpose, changes)
		if err == nil || t.spread || try == tries || !apply.Passing(err) {
			return done, err
		}
		if err := t.r.env.Wait(ctx, between); err != nil {
			return done, err
		}
	}
}

// record puts into the journal what came of a turn of a remedy, beside what was used and stopped when the container was left.
func (t *turns) record(v int, note string) {
	if v == 0 || t.r.res.ID == "" {
		return
	}
	row := t.of.Row(v)
	o := txn.Outcome{Verdict: VerdictTurn, Before: t.figures(0), After: t.figures(v), Note: note}
	if row.Measured != nil && o.After != nil {
		t.judgedFigure(o.After, *row.Measured)
	}
	if err := apply.Record(t.r.env.Apply, t.r.res.ID, o); err != nil {
		t.r.res.Warnings = append(t.r.res.Warnings, "the outcome of a turn could not be recorded: "+err.Error())
	}
}

// judgedFigure puts the judged quantile where the journal has it: what was forecast of the same stands beside it.
func (t *turns) judgedFigure(to *txn.Figures, from verdict.Spread) {
	switch {
	case t.r.env.Latencies != nil:
		t.r.latencyFigure(to, from)
	case t.quantile != objective.P99:
	case t.r.judged().Of == forecast.OfRequests:
		to.RequestsP99Ms = new(from.Value)
	default:
		to.PoolP99Ms = new(from.Value)
	}
}

// sayOut tells which variants of a round are not tried again, and which of those are after all. Those of a short look, and those that did
// harm, were told.
func (t *turns) sayOut(order []int) {
	for _, v := range order {
		if row := t.of.Row(v); t.of.Out(v) != "" && row.Measured != nil && !row.Harm {
			t.r.say("%s is not tried again: %s", t.name(v), t.of.Out(v))
			t.saidOut = append(t.saidOut, v)
		}
	}
	t.saidOut = slices.DeleteFunc(t.saidOut, func(v int) bool {
		again := t.of.Out(v) == ""
		if again {
			t.r.say("%s is tried again: %s", t.name(v), text.Either(t.of.Again(v), "what it lost to has been no better since",
				"requests took as long when it was left as it is"))
		}
		return again
	})
}

// doubted reports whether a variant that was not measured yet is forecast no better than leaving it: then a short look comes first, so that
// what is as bad as forecast harms few requests.
func (t *turns) doubted(v int) bool {
	if v == 0 || t.of.Turns(v) > 0 || t.r.env.Latencies != nil {
		return false
	}
	left, is := t.r.forecastLeft(), t.candidates[v-1].ForecastMs
	return left != nil && is != nil && *is >= *left
}

// forecastLeft is the forecast of leaving the container as it is; nil: there is none.
func (r *run) forecastLeft() *float64 {
	if f := r.made(); f != nil {
		if none := f.Left(); none != nil {
			return none.Judged
		}
	}
	return nil
}

// measure observes and records for a while.
func (t *turns) measure(ctx context.Context, v int, watched []string, length time.Duration) (trial.Measured, error) {
	r := t.r
	since := r.now()
	bound := t.bound()
	if v == 0 {
		bound = 0 // how long requests take there is what a bound is made of
	}
	waited := r.othersWaited(t.siblings())
	seen, learned, late, err := r.watchTurn(ctx, watched, length, bound)
	t.used += length
	if err != nil {
		return trial.Measured{}, err
	}
	if changed := r.limitChanged(seen, learned); changed != "" {
		return trial.Measured{}, &NotMeasured{fmt.Errorf("%s: the trial is ended, and nothing was kept", changed)}
	}
	if learned.Runs != nil && learned.Runs.Lost > mostLost {
		r.say("round %d, %s: the recording lost %.2g events for each one that it has, so that the turn does not count", t.rounds, t.name(v),
			learned.Runs.Lost)
		learned.Runs = nil
	}
	m := trial.Measured{Judged: r.sample(learned.Runs), Others: r.others(learned.Runs), Work: t.work(learned.Runs), Late: late,
		OthersWaitMS: waited()}
	switch {
	case late > 0:
		m.Ended = fmt.Sprintf("stopped at once: a request took %s, and none more than %s when it was left",
			text.Duration(late.Round(time.Millisecond)), text.Duration(trial.LongestOf(bound).Round(time.Millisecond)))
	case v == 0:
		t.longest = max(t.longest, learned.Longest)
		t.of.Readmit(t.bound())
	}
	if r.env.Latencies != nil {
		if m, err = t.asked(ctx, since, m); err != nil {
			return m, err
		}
	}
	t.take(v, seen, &m)
	return m, nil
}

// othersWaited begins to measure for how long the threads of other containers wait for a CPU. What it gives ends that: ms a second, of
// all together; nil: it cannot be read. Those in siblings, which a quota of their own stops, are left out.
func (r *run) othersWaited(siblings []string) (end func() *float64) {
	if r.env.Waited == nil {
		return func() *float64 { return nil }
	}
	var others []string
	for _, c := range r.o.All {
		if own := r.o.Target.Group.Path; !cgroup.Below(c.Group.Path, own) && !cgroup.Below(own, c.Group.Path) &&
			!slices.ContainsFunc(siblings, func(s string) bool { return cgroup.Below(c.Group.Path, s) }) {
			others = append(others, c.Group.Path)
		}
	}
	began, before := r.now(), r.env.Waited(others)
	return func() *float64 {
		after, lasted := r.env.Waited(others), r.now().Sub(began)
		if before == nil || after == nil || lasted <= 0 {
			return nil
		}
		sum := time.Duration(0)
		for tid, waited := range after {
			sum += max(0, waited-before[tid])
		}
		return new(ms(sum) / lasted.Seconds())
	}
}

// mostOfWork bounds the pools whose CPU time is a figure of a turn's work: with more of them chance finds one that seems to explain
// anything.
const mostOfWork = 3

// work is the CPU time per second of the pools that used most of it in the look before the trial.
func (t *turns) work(runs *forecast.Runs) (cpus []float64) {
	if runs == nil || t.r.runs == nil {
		return nil
	}
	for _, name := range byUse(t.r.runs, t.r.runs.Pools(), mostOfWork) {
		cpus = append(cpus, usedBy(runs, name).Seconds()/runs.Window.Seconds())
	}
	return cpus
}

// bound is from how long on a request is a harm.
func (t *turns) bound() time.Duration { return max(t.of.Bound(), trial.BoundOf(t.longest)) }

// take keeps what was observed, and compares neighbours with when the container was left.
func (t *turns) take(v int, seen []observe.Observation, m *trial.Measured) {
	if t.before == nil {
		t.before = map[string]observe.Observation{}
	}
	longest := ms(m.Late) // it was not answered
	for _, ms := range m.Judged.TookMs {
		longest = max(longest, ms)
	}
	t.drain = min(longestDrain, time.Duration(longest*float64(time.Millisecond)))
	for i := range seen {
		path := seen[i].Container.Group.Path
		switch before, known := t.before[path]; {
		case path == t.r.o.Target.Group.Path:
			t.seen[v] = append(t.seen[v], seen[i])
			if low, high, ok := seen[i].StoppedPerSecond(); ok {
				m.Stopped = new((low + high) / 2)
			}
			m.Unsteady = t.unsteady(v, seen[i])
		case slices.Contains(t.siblings(), path) && !t.takesFrom(v, path): // what it loses is shown, and no harm by itself
			t.ofSibling(v, path, seen[i])
			if v == 0 {
				t.before[path] = seen[i]
			}
		case v == 0:
			t.before[path] = seen[i]
		case known:
			t.ofSibling(v, path, seen[i])
			m.Neighbours = append(m.Neighbours,
				verdict.Neighbour{Name: seen[i].Container.Name, Before: policy.Observed(before), After: policy.Observed(seen[i]),
					Lends: slices.Contains(t.candidates[v-1].Plan.Lenders, path)})
		}
	}
}

// takesFrom tells whether a variant takes CPUs from a container, which is not harmed by a cap alone then.
func (t *turns) takesFrom(v int, path string) bool {
	if v == 0 {
		return false
	}
	plan := t.candidates[v-1].Plan
	return slices.Contains(plan.Moved, path) || slices.Contains(plan.Lenders, path)
}

// ofSibling keeps what a container used, if a candidate caps it.
func (t *turns) ofSibling(v int, path string, seen observe.Observation) {
	if used := seen.UsedCPUs; used != nil && slices.Contains(t.siblings(), path) {
		t.sibling[v] = append(t.sibling[v], *used)
	}
}

// siblings are the paths of the cgroups that a candidate caps.
func (t *turns) siblings() (paths []string) {
	for _, c := range t.candidates {
		if c.Plan.Sibling != "" {
			paths = append(paths, c.Plan.Sibling)
		}
	}
	return paths
}

// steadyUse is the share of its limit up to which all that a container used in a turn would have come without the quota that writing a
// longer period gave: that is one in forecast.MeasuredPeriods.
const steadyUse = 1 - 1.0/forecast.MeasuredPeriods

// unsteady says of a longer period why a turn does not tell how it goes on: the kernel gives a quota at each write, and a container that
// uses nearly all of its limit may live on it for minutes. "": it tells.
func (t *turns) unsteady(v int, o observe.Observation) string {
	limit, limited, _ := cgroup.Effective(t.r.own.Levels)
	if v == 0 || t.candidates[v-1].Request.Period <= bandwidth.DefaultPeriod || !limited || o.UsedCPUs == nil ||
		*o.UsedCPUs < steadyUse*limit {
		return ""
	}
	return fmt.Sprintf("not in its steady state: it used %.0f %% of its limit, and may live on the quota that writing a longer period gives",
		100**o.UsedCPUs/limit)
}

func (t *turns) name(v int) string {
	if v == 0 {
		return "left as it is"
	}
	return t.candidates[v-1].Name
}

// say tells what a turn showed, and gives it back.
func (t *turns) say(v int, m trial.Measured, out string) (told string) {
	q := objective.InWords(t.quantile)
	what := "too few requests"
	if n := len(m.Judged.TookMs); n >= leastSeen {
		what = fmt.Sprintf("%s %s ms of %d", q, text.Milliseconds(stats.Rank(slices.Sorted(slices.Values(m.Judged.TookMs)), t.quantile)), n)
	}
	if why := cmp.Or(out, m.Ended); why != "" {
		what += "; " + why
	}
	told = fmt.Sprintf("round %d, %s: %s", t.rounds, t.name(v), what)
	t.r.say("%s", told)
	return told
}

// takeBack undoes a turn, also after ctx has ended. Where that fails the change is still in force, and the result says so.
func (t *turns) takeBack(ctx context.Context) error {
	r := t.r
	back, err := r.restore(ctx, true)
	if err != nil {
		r.res.Verdict, r.res.Remedy = verdict.Unverified, string(r.plan.Remedy)
		return err
	}
	r.res.ID, r.res.Kept = "", false
	if own := r.o.Target.Group.Path; back.Verdict != apply.VerdictRestored && r.gone() {
		return &NotMeasured{fmt.Errorf("%s ended: its cgroup %.200q is gone", text.Sanitize(r.o.Target.Name, 128), own)}
	}
	if back.Verdict != apply.VerdictRestored {
		return fmt.Errorf("%s was taken back, but %s", r.plan.Remedy, back.Verdict)
	}
	return nil
}

// gone reports whether the target's cgroup no longer exists.
func (r *run) gone() bool {
	_, err := r.env.Apply.FS.ID(cgroup.CPU, r.o.Target.Group.Path)
	return errors.Is(err, cgroup.ErrNoCgroup)
}

// forget ends what systemd keeps of the turns, also after ctx has ended.
func (t *turns) forget(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	var all []change.Change
	for _, c := range t.candidates {
		all = append(all, c.Plan.Changes...)
	}
	if !slices.ContainsFunc(all, func(c change.Change) bool { return c.Kind == change.KindSystemd }) {
		return
	}
	if err := apply.Forget(ctx, t.r.env.Apply, all); err != nil {
		t.r.res.Warnings = append(t.r.res.Warnings, err.Error())
	}
}

// conclude leaves the best variant in force.
func (t *turns) conclude(ctx context.Context) error {
	r := t.r
	if err := r.sameLimit(ctx); err != nil {
		return errors.Join(err, t.show(0))
	}
	choice := t.of.Choice()
	v, why := choice.Variant, choice.Why
	r.res.Why, r.res.Before = why, t.figures(0)
	j := verdict.Judgement{Verdict: verdict.NoChange, Why: why, Quantile: t.quantile, Neighbours: []string{}, Harmed: []string{}}
	switch choice.Answer {
	case trial.TooFew:
		return errors.Join(&NotMeasured{errors.New(why)}, t.show(0))
	case trial.Undecided:
		r.res.Why += t.longer(choice.Rounds)
		r.res.Verdict, j.Verdict = VerdictCannotTell, verdict.Unverified
	case trial.NoneBetter:
		r.res.Why += t.instead()
		r.res.Verdict = string(policy.AnswerLeave)
	}
	if v == 0 {
		r.noFinding = true
		r.res.Judgement = &j
		r.res.StoppedAbove = r.above(r.res.Before)
		return t.show(0)
	}
	if limit, limited, _ := cgroup.Effective(r.own.Levels); limited && r.res.Before.Used() > nearLimit*limit {
		why += fmt.Sprintf("; it uses %.0f %% of its limit%s", 100*r.res.Before.Used()/limit, t.instead())
		r.res.Why = why
	}
	return t.keep(ctx, v, why)
}

// keep leaves a variant in force, for a reason that has its figures.
func (t *turns) keep(ctx context.Context, v int, why string) error {
	r := t.r
	r.res.Why = why
	r.plan = *t.candidates[v-1].Plan
	r.res.Remedy = string(r.plan.Remedy)
	j := verdict.Judgement{Why: why, Quantile: t.quantile, Neighbours: []string{}, Harmed: []string{}}
	done, err := t.apply(ctx, r.purpose(), r.plan.Changes)
	r.take(done)
	if err != nil || done.ID == "" {
		return errors.Join(err, t.show(0))
	}
	r.res.Kept, r.pools = true, []Pool{}
	was, is := t.of.Row(0), t.of.Row(v)
	j.Verdict, j.Before, j.After = verdict.Better, was.Measured, is.Measured
	r.res.Judgement, r.res.Verdict, r.res.After = &j, j.Verdict, t.figures(v)
	r.eachSide(j, t.judgedFigure)
	r.res.ObjectiveMet = r.objectiveMet(j)
	r.res.StoppedAbove = r.above(r.res.After)
	outcome := txn.Outcome{Verdict: j.Verdict, Before: r.res.Before, After: r.res.After, Note: why,
		Counted: apply.Count(r.env.Apply, r.o.Target.Group.Path)}
	if err := apply.Record(r.env.Apply, r.res.ID, outcome); err != nil {
		r.res.Warnings = append(r.res.Warnings, "the outcome could not be recorded: "+err.Error())
	}
	err = r.keep(ctx)
	r.tried()
	return errors.Join(err, t.show(v))
}

// nearLimit is the share of its limit from which on a container is told what more CPU would bring, whatever remedy it got.
const nearLimit = 0.85

// longer says for how long remedies would have to be tried to tell; rounds: that many, 0: it cannot be foreseen.
func (t *turns) longer(rounds int) string {
	if rounds == 0 {
		return ""
	}
	needs := t.of.Lasts(rounds, t.meanTurn()).Truncate(time.Minute) + time.Minute
	if needs > policy.LongestTrial {
		return fmt.Sprintf("; not even %s of turns would tell", text.Duration(policy.LongestTrial))
	}
	return fmt.Sprintf("; %s of turns would tell: --budget %s", text.Duration(needs), strings.TrimSuffix(needs.String(), "0s"))
}

// instead says what else would help, where no remedy that keeps the limit does.
func (t *turns) instead() string {
	c := t.r.res.Proposal.Choice
	if k := t.r.known; k != nil && k.Explanation != nil && k.Explanation.Cause == diagnose.Neighbours {
		return "; " + k.Explanation.Verdict
	}
	switch {
	case c == nil:
		return ""
	case c.Answer == policy.AnswerMoreCPU || c.Answer == policy.AnswerSetting:
		return "; forecast: " + c.Why
	}
	if row, name := policy.MoreCPU(t.r.made()); row != nil {
		return fmt.Sprintf("; forecast: %s: %s ms (--may %s)", name, text.Milliseconds(*row.Judged), row.Remedy.Name)
	}
	return ""
}

// figures are the counters' over all turns of a variant; nil: they were not measured.
func (t *turns) figures(v int) *txn.Figures {
	var low, high, used float64
	n := 0
	for _, o := range t.seen[v] {
		l, h, ok := o.StoppedPerSecond()
		if !ok || o.UsedCPUs == nil {
			continue
		}
		low, high, used, n = low+l, high+h, used+*o.UsedCPUs, n+1
	}
	if n == 0 {
		return nil
	}
	by := float64(n)
	return &txn.Figures{StoppedPerSecondLow: new(low / by), StoppedPerSecondHigh: new(high / by), UsedCPUs: new(used / by)}
}

// show puts what was measured into the result.
func (t *turns) show(kept int) error {
	r := t.r
	slow, all := t.of.Cost()
	shown := &Trial{Rounds: t.rounds, Seconds: t.used.Seconds(), Quantile: t.quantile, Of: r.judged().Of,
		Rows: []TrialRow{}, Slow: slow, Requests: all}
	if r.env.Latencies != nil {
		shown.Of = OfLatencies
	} else if r.made() != nil {
		shown.ForecastQuantile = new(r.judged().Quantile)
	}
	for v := range t.seen {
		measured := t.of.Row(v)
		row := TrialRow{Name: t.name(v), Remedy: forecast.None, Parameters: map[string]string{}, P50Ms: measured.P50Ms,
			P90Ms: measured.P90Ms, OthersWaitMs: measured.OthersWaitMS,
			Rounds: measured.Rounds, Requests: measured.Requests, Why: measured.Why, Kept: v == kept && v > 0 && r.res.Kept}
		if v > 0 {
			c := t.candidates[v-1]
			row.Remedy, row.ForecastMs, row.Parameters = string(c.Plan.Remedy), c.ForecastMs, c.Plan.Shown()
		} else {
			row.ForecastMs = r.forecastLeft()
		}
		if r.env.Latencies != nil {
			row.ForecastMs = nil // what the forecast judged is not what the user measures
		}
		if measured.Stopped != nil {
			row.StoppedMs = new(1000 * *measured.Stopped)
		}
		if len(t.sibling[v]) > 0 {
			mean, _ := stats.MeanDeviation(t.sibling[v])
			row.SiblingCPUs = &mean
		}
		row.Others = r.otherRequests(measured.Others)
		if s := measured.Measured; s != nil {
			row.MeasuredMs, row.LowMs, row.HighMs = &s.Value, &s.Low, &s.High
		}
		switch {
		case measured.Harm && measured.Why != "":
			row.Ended = new("harm")
		case measured.Why != "":
			row.Ended = new("clear")
		}
		shown.Rows = append(shown.Rows, row)
		if row.Kept {
			shown.Kept = &row.Name
		}
	}
	r.res.Trial = shown
	return nil
}

// watchTurn observes containers and records the target for a turn, which ends at once when a request takes longer than
// a bound above 0: late is
// how long it took then.
func (r *run) watchTurn(ctx context.Context, paths []string, length, bound time.Duration) (seen []observe.Observation,
	learned Learned, late time.Duration, err error) {
	of := append([]string{r.o.Target.Group.Path}, paths...)
	containers := slices.DeleteFunc(slices.Clone(r.o.All), func(c container.Container) bool { return !slices.Contains(of, c.Group.Path) })
	if !r.judgedByRuns() {
		seen, err = r.env.Observe(ctx, containers, length)
		return seen, Learned{}, 0, err
	}
	seen, learned, err = r.watchWith(ctx, containers, length, func(ctx context.Context) (learned Learned, ended bool, err error) {
		if r.env.LearnUntil == nil || bound <= 0 {
			learned, err = r.env.Learn(ctx, r.o.Target, length)
			return learned, false, err
		}
		learned, late, err = r.env.LearnUntil(ctx, r.o.Target, length, bound)
		return learned, late > 0, err
	})
	return seen, learned, late, err
}
