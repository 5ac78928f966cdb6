package simulate

import (
	"cmp"
	"slices"
	"time"
)

// replayCrew is what threads that share their work have to do, and who of them sleeps.
type workQueue struct {
	order WakeOrder // NoCrew: each thread has its own work
	idle  ring[int]
	ready ring[replayReady] // has come, and nobody has taken it yet
	due   []replayReady     // comes at a moment of its own, in that order
}

// replayReady is a script that can be begun.
type replayReady struct {
	script int
	came   time.Duration
}

// replayShare takes apart at their idle sleeps what the threads of a workload do: what
// comes before the first one stays their own, the rest is the crew's.
func (h *host) shareSteps(i int, order WakeOrder) {
	r, w, crew := h.replay, &h.works[i], &h.replay.crews[i]
	crew.order = order
	for t := w.first; t < w.first+w.count; t++ {
		steps, from, into := r.Threads[t].Steps, 0, t
		r.items[t], r.scripts[t].again = len(r.scripts), false
		for at, step := range steps {
			if !step.idles() {
				continue
			}
			r.scripts[into].steps = steps[from : at+1]
			from, into = at+1, len(r.scripts)
			r.scripts = append(r.scripts, replayScript{of: t})
			if step.Kind == StepUntil {
				crew.due = append(crew.due, replayReady{into, step.For})
			}
		}
		r.scripts[into].steps = steps[from:]
	}
	slices.SortStableFunc(crew.due, func(a, b replayReady) int { return cmp.Compare(a.came, b.came) })
}

// idles says whether a thread sleeps for want of work.
func (s *ReplayStep) idles() bool { return s.Idle && s.Kind != StepWake }

// replayBring lets somebody of a workload's crew begin a script: who sleeps, or the
// next who is through.
func (h *host) bringWork(i, script int) {
	crew := &h.replay.crews[i]
	var t int
	switch {
	case crew.idle.n == 0:
		crew.ready.push(replayReady{script, h.now})
		return
	case crew.order == OldestFirst:
		t = crew.idle.pop()
	default:
		t = crew.idle.popLast()
	}
	h.replayBegin(t, replayReady{script, h.now})
}

// replayBegin gives a sleeping thread a script.
func (h *host) replayBegin(t int, next replayReady) {
	r := &h.replay.threads[t]
	r.script, r.at, r.came = next.script, 0, next.came
	h.replayWake(t)
}

// replayNext is what a thread of a crew does when it is through: what has come
// meanwhile, or it sleeps. True: it has a script to go on with.
func (h *host) nextWork(t int) bool {
	r, crew := &h.replay.threads[t], &h.replay.crews[h.threads[t].work]
	switch {
	case crew.ready.n > 0 && r.sleeps:
		h.replayBegin(t, crew.ready.pop())
	case crew.ready.n > 0:
		r.script, r.at = crew.ready.pop().script, 0
		return true
	default:
		h.replayEnd(t)
		crew.idle.push(t)
		h.replayRest(t)
	}
	return false
}

// replayDue brings what comes at a moment of its own.
func (h *host) bringDueWork(i int) {
	for crew := &h.replay.crews[i]; len(crew.due) > 0 && crew.due[0].came <= h.now; {
		next := crew.due[0].script
		crew.due = crew.due[1:]
		h.bringWork(i, next)
	}
	h.replayExpect(i)
}
