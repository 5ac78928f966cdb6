package canary

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/text"
)

// Next is the state after a decision by what was seen. The same state is returned where nothing is decided. What differs in Phase,
// Why or Drawn is to be told. tried names what is tried.
func Next(p Plan, s State, tried string, seen Seen) State {
	now := seen.now()
	switch {
	case s.Tried != tried || s.Phase == "":
		return State{Tried: tried}.anew(now.Add(p.Watch), "nothing is in force for one watch, so that it is known how it was before")
	case !s.Looks(tried, now):
		return s
	case s.Trying():
		return s.watched(p, seen, now)
	}
	return s.begin(p, seen, now)
}

// now is the time as it is kept.
func (s Seen) now() time.Time { return s.Now.UTC().Truncate(time.Second) }

// Looks tells whether Next looks at what was seen of pods and guard, beside the time.
func (s State) Looks(tried string, now time.Time) bool {
	return s.Tried == tried && s.Phase != "" && s.Phase != Kept && !now.Before(s.Again)
}

// waits is the state with nothing in force.
func (s State) waits(format string, args ...any) State {
	return s.anew(s.Again, fmt.Sprintf(format, args...))
}

// running is how many pods run.
func (s Seen) running() (n int) {
	for _, pod := range s.Pods {
		if !pod.Pending {
			n++
		}
	}
	return n
}

// unfit is why the pods are no canary's, whatever its share is; "": they are.
func (s Seen) unfit() string {
	var workloads []string
	for _, pod := range s.Pods {
		if !slices.Contains(workloads, pod.Workload) {
			workloads = append(workloads, pod.Workload)
		}
	}
	slices.Sort(workloads)
	switch n := s.running(); {
	case n < LeastPods:
		return fmt.Sprintf("too few pods: %s, and a canary needs %d; leave out rollout, or run more", text.Count(n, "pod"), LeastPods)
	case len(workloads) > 1:
		return fmt.Sprintf("its rules match pods of %s, such as %s: give each a policy of its own", text.Count(len(workloads), "workload"),
			text.Sanitize(strings.Join(workloads[:2], " and "), 200))
	}
	return ""
}

// treats is how many of so many pods a step treats.
func (p Plan) treats(step int64, running int) int {
	return int(min(p.Share*math.Exp2(float64(step)), MostShare)*float64(running) + 1e-9)
}

// begin draws the first pods.
func (s State) begin(p Plan, seen Seen, now time.Time) State {
	n, first := seen.running(), p.treats(0, seen.running())
	unfit := seen.unfit()
	switch {
	case unfit != "":
		return s.waits("%s", unfit)
	case first < 1:
		return s.waits("too few pods: %.3g %% of %d are less than one; give a share of %.0f %% or more",
			100*p.Share, n, math.Ceil(100/float64(n)))
	case !known(seen.Guard):
		return s.waits("the guard cannot be read")
	case *seen.Guard > p.Bound:
		return s.waits("the guard is above its bound of %v before anything is treated", p.Bound)
	}
	next := State{Tried: s.Tried, Phase: Watches, Seed: seen.Chance & (places - 1), Begun: now}
	d := next.draw(p, seen, first)
	if d.treated == 0 {
		return s.waits("no pod can be drawn: %s", d.held)
	}
	next.Why = fmt.Sprintf("%d of %d pods are treated at first", d.treated, len(seen.Pods))
	return next.with(p, seen, d, now)
}

// with is the state after a draw.
func (s State) with(p Plan, seen Seen, d drawn, now time.Time) State {
	s.Below, s.Newest, s.Drawn = d.below, d.newest, now
	s.Pods, s.Treated, s.Until = int64(len(seen.Pods)), int64(d.treated), now.Add(lasts(p.Watch))
	return s
}

// known tells whether a guard's value was read.
func known(guard *float64) bool { return guard != nil && !math.IsNaN(*guard) }

// reverted is the state after the remedy was taken back from all.
func (s State) reverted(now time.Time, format string, args ...any) State {
	return State{Tried: s.Tried, Phase: Reverted, Step: s.Step, Pods: s.Pods, Treated: s.Treated, Again: now.Add(Cooldown),
		Why: fmt.Sprintf(format, args...)}
}

// watched is the state while and after a step is watched.
func (s State) watched(p Plan, seen Seen, now time.Time) State {
	if stopped := s.Stopped(p, seen); stopped != s {
		return stopped
	}
	if s.treated(seen.Pods) == 0 {
		if next := s.replaced(p, seen, now); next != s {
			return next
		}
	}
	drawnPending := slices.ContainsFunc(seen.Pods, func(p Pod) bool { return p.Pending && s.Treats(p) }) // they may run soon
	if s.Phase == Watches && !drawnPending && !enough(s.old(seen.Pods)) {
		return s.anew(now.Add(p.Watch), "most pods were replaced, so that nothing can be compared: others are drawn after one watch with "+
			"nothing in force")
	}
	if !s.Due(p, now) {
		return s
	}
	late := !now.Before(s.Drawn.Add(2 * s.watch(p)))
	switch {
	case known(seen.Guard):
		return s.judged(p, seen, now, late)
	case late:
		return s.reverted(now, "taken back: the guard could not be read in two watches")
	}
	return s
}

// Stopped is the state after what takes a remedy back without a look at pods: nobody judged it in time, or the guard is above its
// bound. The same state is returned where neither is so, and where no step is being watched.
func (s State) Stopped(p Plan, seen Seen) State {
	now := seen.now()
	switch {
	case !s.Trying():
	case !now.Before(s.Until):
		return s.reverted(now, "taken back: nobody judged it in time")
	case known(seen.Guard) && *seen.Guard > p.Bound:
		return s.reverted(now, "taken back: the guard is %.4g, above its bound of %v", *seen.Guard, p.Bound)
	}
	return s
}

// judged is the state after a step's watch. late: it is not waited for figures any longer.
func (s State) judged(p Plan, seen Seen, now time.Time, late bool) State {
	_, control := s.old(seen.Pods)
	d, measured := Compare(seen.Pods, s.Treats)
	measured = measured && (late || s.whole(d, seen.Pods))
	switch {
	case measured && d.worse():
		return s.reverted(now, "taken back: %s", d)
	case s.Phase == Finishes && (measured || control < 2 || late):
		return s.finish(p, seen, now) // it was judged: those that are left are no control
	case !measured && late:
		return s.reverted(now, "taken back: %d treated and %d other pods could be compared in two watches, too few", d.Treated, d.Control)
	case !measured:
		return s
	}
	return s.stepped(p, seen, now, d)
}

// treated is how many pods have the remedy.
func (s State) treated(pods []Pod) (n int) {
	for _, pod := range pods {
		if s.Treats(pod) {
			n++
		}
	}
	return n
}

// old counts the pods, treated and not, of which it is known how they were before.
func (s State) old(pods []Pod) (treated, others int) {
	there := slices.DeleteFunc(slices.Clone(pods), func(p Pod) bool { return p.Pending || p.Created.After(s.Begun) })
	treated = s.treated(there)
	return treated, len(there) - treated
}

// whole tells whether a difference is of half of the pods at least, on either side: where a Prometheus has begun anew, or a part of it
// does not answer, the figures of a few pods come first.
func (s State) whole(d Difference, pods []Pod) bool {
	treated, others := s.old(pods)
	return 2*d.Treated >= treated && 2*d.Control >= others
}

// anew is the state in which others are drawn at a time.
func (s State) anew(at time.Time, why string) State {
	return State{Tried: s.Tried, Phase: Waits, Again: at, Why: why}
}

// stepped is the state after a share did no harm.
func (s State) stepped(p Plan, seen Seen, now time.Time, d Difference) State {
	share := func(step int64) int { return p.treats(step, seen.running()) }
	full := s.treated(seen.Pods) >= share(s.Step)
	half := full && share(s.Step) >= share(math.MaxInt32)
	unfit := seen.unfit()
	next := s
	switch {
	case half && !d.better():
		return s.reverted(now, "taken back: with half of the pods treated nothing was gained beyond chance: %s", d)
	case unfit != "":
		return s.again(p, now, "no more pods are drawn: "+unfit)
	case half:
		next.Phase, next.Why = Finishes, fmt.Sprintf("better, so that the other pods get it: %s", d)
		return next.finish(p, seen, now)
	case full:
		next.Step++
	}
	switch drawn := next.draw(p, seen, share(next.Step)); {
	case drawn.fresh > 0:
		next = next.with(p, seen, drawn, now)
		next.Why = fmt.Sprintf("no harm, so that %d of %d pods are treated: %s", drawn.treated, len(seen.Pods), d)
		return next
	case drawn.held != "":
		return s.again(p, now, "no more pods are drawn: "+drawn.held)
	}
	return next.again(p, now, next.Why)
}

// again is the state in which the same pods are watched once more.
func (s State) again(p Plan, now time.Time, why string) State {
	s.Drawn, s.Until, s.Why = now, now.Add(lasts(p.Watch)), why
	return s
}

// has stands in Why between the reason why a remedy is kept, and how many pods have it by now.
const has = "; "

// finish treats the remaining pods, and keeps the remedy where the last draw left none: pods that were made since do not delay it, or
// it would never end where one comes with each watch.
func (s State) finish(p Plan, seen Seen, now time.Time) State {
	reason, _, _ := strings.Cut(s.Why, has)
	if s.Treated < s.Pods {
		d := s.draw(p, seen, len(seen.Pods))
		s.Why = fmt.Sprintf("%s%s%d of %d pods have it", reason, has, d.treated, len(seen.Pods))
		if d.held != "" {
			s.Why += ": " + d.held
		}
		switch {
		case d.fresh > 0:
			return s.with(p, seen, d, now)
		case d.held != "":
			return s.again(p, now, s.Why)
		}
	}
	all := int64(len(seen.Pods))
	return State{Tried: s.Tried, Phase: Kept, Step: s.Step, Pods: all, Treated: all, Begun: s.Begun, Why: reason}
}

// replaced is the state where all treated pods are gone. If it was shown to be better already, those that came for them get it.
func (s State) replaced(p Plan, seen Seen, now time.Time) State {
	if s.Phase == Watches {
		return s.anew(now, "all treated pods are gone: others are drawn")
	}
	if known(seen.Guard) && s.draw(p, seen, len(seen.Pods)).fresh > 0 {
		s.Treated = 0 // the last draw's are gone
		return s.finish(p, seen, now)
	}
	return s
}
