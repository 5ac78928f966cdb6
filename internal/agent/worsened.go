package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/verdict"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
)

// watchedFor is over how long stops are summed up before they are compared with those before the remedy.
const watchedFor = 10 * time.Minute

// watch sums up the stops of a container with a remedy.
type watch struct {
	id            string // of the transaction
	stopped, over time.Duration
	used          float64 // CPU-seconds
}

// lately is the watch without its oldest part, a twentieth: it is judged again soon.
func (w *watch) lately() *watch {
	const part = 0.95
	return &watch{w.id, time.Duration(part * float64(w.stopped)), time.Duration(part * float64(w.over)), part * w.used}
}

// worse is a remedy in force with which its container is stopped longer than before.
type worse struct {
	watch   *watch
	held    *txn.InForce
	after   txn.Figures
	because string
}

// worsened are the agent's own remedies, kept after a verdict, with which containers were stopped for longer in the last ten minutes
// than before.
// A longer period keeps requests from stops as long as demand stays below the limit, and makes each stop longer where it does not: a
// load that grows turns the remedy into a harm.
func (c *chooser) worsened(observations []observe.Observation, inForce map[string]*txn.InForce) (all []worse) {
	next := map[string]*watch{}
	for i := range observations {
		o := &observations[i]
		path := o.Container.Group.Path
		held := inForce[path]
		if held == nil || held.By != c.by || held.Trial != nil || held.Outcome == nil || held.Outcome.Before == nil ||
			held.Outcome.Before.StoppedPerSecondHigh == nil || o.StoppedLow == nil || o.UsedCPUs == nil {
			continue
		}
		w := c.watches[path]
		if w == nil || w.id != held.ID {
			w = &watch{id: held.ID}
		}
		w.stopped, w.over, w.used = w.stopped+*o.StoppedLow, w.over+o.Window, w.used+*o.UsedCPUs*o.Window.Seconds()
		if w.over < watchedFor {
			next[path] = w
			continue
		}
		was, is := *held.Outcome.Before.StoppedPerSecondHigh, w.stopped.Seconds()/w.over.Seconds()
		if !verdict.StoppedLonger(held.Outcome.Before, is) {
			delete(c.harmed, path)
			continue // it is watched anew
		}
		all = append(all, worse{w, held, txn.Figures{StoppedPerSecondLow: &is, UsedCPUs: new(w.used / w.over.Seconds())},
			fmt.Sprintf("stopped for %.0f ms/s over %s, and for at most %.0f before it", 1000*is, text.Duration(w.over.Round(time.Second)), 1000*was)})
	}
	c.watches = next
	return all
}

// undoWorse takes back what makes its container worse off than before, and says so in the journal. It is tried again after a while, and
// each time that it does harm again after twice as long.
func (a *agent) undoWorse(ctx context.Context, c *chooser, all []worse) {
	for _, w := range all {
		log := a.Log.With("container", text.Sanitize(w.held.Name, 128), "remedy", w.held.Remedy, "transaction", w.held.ID, "why", w.because)
		if !a.mayTakeBack(*w.held) {
			c.watches[w.held.Target] = w.watch.lately()
			continue
		}
		if _, err := a.takeBack(ctx, *w.held); err != nil {
			log.Error("a remedy that harms could not be undone", "error", err)
			c.watches[w.held.Target] = w.watch.lately()
			continue
		}
		log.Warn("undone: it is stopped longer with its remedy than before")
		if err := apply.Record(a.Env, w.held.ID, txn.Outcome{Verdict: verdict.Worse, Before: w.held.Outcome.Before, After: &w.after,
			Note: w.because}); err != nil {
			log.Warn("what came of a remedy could not be recorded", "error", err)
		}
		c.tried(w.held.Target, time.Now(), retryAfter<<min(c.harmed[w.held.Target], mostDoublings))
		c.harmed[w.held.Target]++
	}
}
