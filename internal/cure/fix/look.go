package fix

import (
	"context"
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/podresize"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/stats"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
)

// Learned is what a recording tells.
type Learned struct {
	Explanation *diagnose.Explanation
	// Load replays the recording; nil: it cannot be replayed, and Missing says why.
	Load    *forecast.Load
	Missing string
	// Runs are the recorded runs of the thread pools; nil: nothing was recorded.
	Runs *forecast.Runs
	// Longest is how long a request of a client took at most, of whatever kind, answered or not yet; 0: not known.
	Longest time.Duration
	// From names the recording where it was not made for this fix; "": it was.
	From string
}

const (
	// enoughPeriods is how many throttled periods a recording needs: fewer show too few of the moments that matter.
	enoughPeriods = 20
	// enoughBacklogs is how many backlogs of the judged pool a recording needs before it is changed: fewer on each side show
	// only latencies that fall to less than half.
	enoughBacklogs = 40
	// enoughStalls is how many backlogs that make the tail of requests a recording needs before it is changed.
	enoughStalls = 20
	// someMore is how many more requests than its quantile needs a recording is made for: the next one has fewer by chance.
	someMore = 1.2
	// longestOfPool bounds how long the target is recorded where a pool is judged: its wake-ups come more often than requests
	// of a client, which stats.LongestLook bounds.
	longestOfPool = 20 * time.Second
	// mostPast bounds the past changes, of all containers, from which forecasts learn.
	mostPast = 1000
)

// look observes all containers, so that the neighbours' figures from before are there for every possible
// neighbour, and where learns is set records the target and forecasts. changed says that its limit changed meanwhile.
func (r *run) look(ctx context.Context, learns bool) (changed string, err error) {
	r.say("looking at %s for %s", text.Sanitize(r.o.Target.Name, 128), text.Duration(r.o.Window))
	r.looked = r.o.Window
	earlier := r.earlierRecording(ctx, learns)
	seen, learned, changed, err := r.watchOneLimit(ctx, r.o.All, learns, r.looked)
	if err != nil {
		return "", err
	}
	r.used, r.neighbour = map[string]float64{}, map[string]hoststate.Observed{}
	found := false
	for i := range seen {
		path := seen[i].Container.Group.Path
		if seen[i].UsedCPUs != nil {
			r.used[path] = *seen[i].UsedCPUs
		}
		r.neighbour[path] = policy.Observed(seen[i])
		if path == r.o.Target.Group.Path {
			r.own, found = seen[i], true
		}
	}
	if !found {
		return "", fmt.Errorf("cgroup %q: vanished while it was looked at", r.o.Target.Group.Path)
	}
	r.res.Before = figures(r.neighbour[r.o.Target.Group.Path])
	r.res.StoppedAbove = r.above(r.res.Before)
	if changed != "" {
		r.res.Before = nil // of two limits
	} else if learns {
		if err := r.learn(ctx, r.chosenFrom(learned, earlier)); err != nil {
			return "", err
		}
	}
	return changed, r.lookAround(ctx)
}

// lookAndLearn looks for a choice. A remedy that is asked for by name is judged by the recording, unless the user's own latency judges it.
func (r *run) lookAndLearn(ctx context.Context) error {
	changed, err := r.look(ctx, r.env.Learn != nil && (r.o.Wish.Auto || r.env.Latencies == nil))
	if err == nil && changed != "" {
		return &NotMeasured{fmt.Errorf("%s: %s, twice: try again when it stays as it is for %s",
			text.Sanitize(r.o.Target.Name, 128), changed, text.Duration(r.o.Window))}
	}
	return err
}

// lookAround gathers what a plan rests on.
func (r *run) lookAround(ctx context.Context) (err error) {
	if r.facts, err = r.env.Facts(ctx, r.o.All, r.used); err == nil {
		r.facts.Pod = PodOf(ctx, r.env.Apply.Pods, r.o.Target)
	}
	return err
}

// PodOf reads what the spec of the target's pod has; nil: it is in no pod, or pods cannot be resized from here.
func PodOf(ctx context.Context, pods podresize.FS, target container.Container) *hoststate.Pod {
	if pods == nil || target.PodUID == "" {
		return nil
	}
	pod := &hoststate.Pod{Name: podresize.Name(target.Namespace, target.Pod, target.ContainerName)}
	if !podresize.IsName(pod.Name) {
		pod.Unread = "its name is not known"
		return pod
	}
	var err error
	if pod.CPU, err = pods.Read(ctx, pod.Name); err != nil {
		pod.Unread = err.Error()
	}
	return pod
}

// watch observes containers and, where it is to, records the target at the same time for so long. If the
// observation fails it ends the recording, which nothing needs then.
func (r *run) watch(ctx context.Context, containers []container.Container, record bool,
	length time.Duration) ([]observe.Observation, Learned, error) {
	if !record {
		seen, err := r.env.Observe(ctx, containers, r.o.Window)
		return seen, Learned{}, err
	}
	return r.watchWith(ctx, containers, r.o.Window, func(ctx context.Context) (Learned, bool, error) {
		learned, err := r.env.Learn(ctx, r.o.Target, length)
		return learned, false, err
	})
}

// watchWith observes containers for a window while learn records. enough: what was recorded ends the observation too, which then has
// seen nothing.
func (r *run) watchWith(ctx context.Context, containers []container.Container, window time.Duration,
	learn func(context.Context) (_ Learned, enough bool, _ error)) ([]observe.Observation, Learned, error) {
	type outcome struct {
		learned Learned
		enough  bool
		err     error
	}
	recorded := make(chan outcome, 1)
	recording, end := context.WithCancel(ctx)
	defer end()
	observing, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		learned, enough, err := learn(recording)
		if enough {
			stop()
		}
		recorded <- outcome{learned, enough, err}
	}()
	seen, err := r.env.Observe(observing, containers, window)
	if err != nil {
		end()
	}
	of := <-recorded
	if of.enough {
		err = nil
	}
	if err == nil {
		err = ctx.Err()
	}
	if of.err != nil && of.learned.Missing == "" {
		of.learned.Missing = of.err.Error()
	}
	return seen, of.learned, err
}

// watchOneLimit watches once more where a limit of the target changed meanwhile. changed says that it changed both times.
func (r *run) watchOneLimit(ctx context.Context, containers []container.Container, record bool,
	length time.Duration) (seen []observe.Observation, learned Learned, changed string, err error) {
	for again := true; ; again = false {
		seen, learned, err = r.watch(ctx, containers, record, length)
		if err != nil {
			return seen, learned, "", err
		}
		if changed = r.limitChanged(seen, learned); changed == "" || !again {
			return seen, learned, changed, nil
		}
		r.say("%s: looking again for %s", changed, text.Duration(length))
	}
}

// limitChanged says which limit of the target changed while it was looked at; "": none did.
func (r *run) limitChanged(seen []observe.Observation, learned Learned) string {
	own := r.o.Target.Group.Path
	if e := learned.Explanation; e != nil && len(e.LimitChanges) > 0 {
		return recording.LimitsChanged(own, e.LimitChanges)
	}
	for i := range seen {
		if seen[i].Container.Group.Path == own {
			return recording.LimitsChanged(own, seen[i].LimitChanges)
		}
	}
	return ""
}

// learn forecasts from a recording, or from a longer one where that one shows too little.
func (r *run) learn(ctx context.Context, learned Learned) error {
	if e := learned.Explanation; learned.Load != nil && e != nil && e.ThrottledPeriods != nil {
		over := r.looked
		if learned.From != "" {
			over = e.Window.Round(time.Second)
		}
		more, again, err := r.morePeriods(ctx, learned, over)
		if err != nil {
			return err
		}
		if again && learned.From != "" {
			r.notEarlier = "it shows too few throttled periods, and a longer one was made"
		}
		learned = more
		r.seenLonger(learned)
	}
	if err := r.explained(learned.Explanation); err != nil {
		return err
	}
	if err := r.forecast(learned); err != nil || r.known.Forecast == nil || !r.judgedByRuns() || !r.res.StoppedAbove &&
		!policy.SlowsRequests(r.known, r.o.Wish) {
		return err
	}
	if r.trials() {
		return nil // turns show what is enough
	}
	more, again, err := r.enough(ctx, learned)
	if err != nil || !again {
		return err
	}
	if learned.From != "" {
		r.runs, r.longest = more.Runs, max(r.longest, more.Longest) // of the time before the change; the choice stands
		return nil
	}
	learned = more
	if err := r.explained(learned.Explanation); err != nil {
		return err
	}
	return r.forecast(learned)
}

// morePeriods records once more where a recording shows too few throttled periods. Where it shows none it is a calm time, or a container
// that is never stopped: the counters since the cgroup was made tell.
func (r *run) morePeriods(ctx context.Context, learned Learned, over time.Duration) (_ Learned, again bool, err error) {
	e, before := learned.Explanation, r.own.ThrottledBefore
	seen := int(*e.ThrottledPeriods)
	if seen > 0 || e.Periods == nil || before == nil {
		return r.longer(ctx, learned, over, longestOfPool, seen, enoughPeriods, "throttled period")
	}
	if expected := *before * float64(*e.Periods) * longestOfPool.Seconds() / over.Seconds(); expected < 1 {
		return learned, false, nil
	}
	why := fmt.Sprintf("no throttled period in %s, but %.2g %% of those before", text.Duration(over), 100**before)
	return r.again(ctx, learned, over, longestOfPool, why)
}

// seenLonger counts what a recording saw of the container's stops where it is longer than the look at the counters, and that look saw less.
func (r *run) seenLonger(learned Learned) {
	e := learned.Explanation
	if learned.From != "" || e == nil || e.Stopped == nil || r.own.StoppedHigh == nil || e.Window <= r.own.Window {
		return
	}
	stopped := time.Duration(float64(*e.Stopped) * r.own.Window.Seconds() / e.Window.Seconds())
	if r.res.StoppedAbove || stopped <= *r.own.StoppedHigh {
		return
	}
	r.own.StoppedLow, r.own.StoppedHigh = &stopped, &stopped
	seen := policy.Observed(r.own)
	r.neighbour[r.o.Target.Group.Path], r.res.Before = seen, figures(seen)
	r.res.StoppedAbove = r.above(r.res.Before)
}

// enough records once more where the recording has too few of what is judged for the verdict to come: requests for the
// promised quantile, or backlogs of the pool.
func (r *run) enough(ctx context.Context, learned Learned) (_ Learned, again bool, err error) {
	judged := r.judged()
	if judged.Of == forecast.OfRequests {
		seen := requestsOf(r.runs, judged.Kind)
		need := int(someMore * float64(stats.Need(judged.Quantile)))
		requests, stalls := len(seen.TookMs), seen.Stalls(judged.Quantile)
		if requests*enoughStalls < stalls*need { // requests take longer to come
			return r.longer(ctx, learned, r.looked, stats.LongestLook, requests, need, "request")
		}
		return r.longer(ctx, learned, r.looked, stats.LongestLook, stalls, enoughStalls, "stall")
	}
	runs := runsOf(r.runs, judged.Pool)
	return r.longer(ctx, learned, r.looked, longestOfPool, runs.Backlogs(), enoughBacklogs, "backlog")
}

// explained tells the cause before anything is forecast, and once more only if a longer recording has another one.
func (r *run) explained(e *diagnose.Explanation) error {
	if e == nil || r.o.Explained == nil || r.cause != nil && *r.cause == e.Cause {
		return nil
	}
	r.cause = &e.Cause
	return r.o.Explained(*e, r.res.StoppedAbove)
}

// longer records once more, for as long as enough of something take of which too few were seen over a time, at most for
// a most. again: it did.
func (r *run) longer(ctx context.Context, learned Learned, over, most time.Duration, seen, enough int,
	of string) (_ Learned, again bool, err error) {
	if seen == 0 || seen >= enough {
		return learned, false, nil
	}
	length := min(most, over*time.Duration(enough)/time.Duration(seen)).Round(time.Second)
	return r.again(ctx, learned, over, length, text.Count(seen, of)+" in "+text.Duration(over))
}

// again records once more for longer than the last time, if length is longer. why says what that one lacks.
func (r *run) again(ctx context.Context, learned Learned, over, length time.Duration, why string) (_ Learned, again bool, err error) {
	if length <= over {
		return learned, false, nil
	}
	r.say("%s: looking for %s more", why, text.Duration(length))
	more, err := r.env.Learn(ctx, r.o.Target, length)
	changed := r.limitChanged(nil, more)
	switch {
	case ctx.Err() != nil:
		return learned, false, ctx.Err()
	case err == nil && changed != "":
		return learned, false, &NotMeasured{fmt.Errorf("%s: try again when it stays as it is for %s", changed, text.Duration(length))}
	case err != nil || more.Load == nil:
		return learned, false, nil // the shorter recording is sound
	}
	r.looked = length
	return more, true, nil
}

// forecast replays the recording under every remedy.
func (r *run) forecast(learned Learned) error {
	r.known = &policy.Known{Explanation: learned.Explanation, Missing: learned.Missing, From: learned.From, Tried: map[int]string{}}
	if r.known.From == "" {
		r.known.NotEarlier = r.notEarlier
	}
	if e := learned.Explanation; e != nil {
		r.res.Cause = text.Sanitize(e.Verdict, 0)
	}
	r.longest = max(r.longest, learned.Longest)
	if r.runs = learned.Runs; learned.Load == nil {
		return nil
	}
	var bound *forecast.Objective
	// The user's own latency is measured elsewhere than a thread pool's: its bound says nothing about theirs.
	if r.o.Objective != (objective.Objective{}) && r.env.Latencies == nil {
		bound = &forecast.Objective{Objective: r.o.Objective}
	}
	past, err := apply.History(r.env.Apply, mostPast)
	if err != nil {
		return err
	}
	r.known.Corrections = policy.Corrections(r.o.Target.Group.Path, past)
	var each func(n int, do func(i int) error) error
	if r.env.Each != nil {
		each = r.env.Each()
	}
	var made *forecast.Forecast
	if r.o.Wish.Auto {
		made, err = policy.Forecast(learned.Load, bound, r.env.SchedExt, each)
	} else {
		made, err = policy.ForecastAsked(learned.Load, r.o.Wish.Request, bound, r.env.SchedExt, each)
	}
	if err != nil {
		return err
	}
	for _, what := range made.LeftOut {
		r.say("%s", what)
	}
	r.known.Forecast = made
	return nil
}
