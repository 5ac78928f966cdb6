package simulate

import (
	"cmp"
	"slices"
	"time"
)

// workQueue has the work that the threads of a workload share, and the threads that sleep.
type workQueue struct {
	order WakeOrder // NotShared: each thread has its own work
	idle  ring[int]
	ready ring[replayReady] // work that has come, and that no thread has taken yet
	due   []replayReady     // work that comes at a moment of its own, in that order
}

// replayReady is a script that can begin.
type replayReady struct {
	script int
	came   time.Duration
}

// shareSteps splits the steps of a workload's threads at their idle sleeps. Steps before the first idle sleep
// stay the thread's own; the queue gets the others.
func (h *host) shareSteps(i int, order WakeOrder) {
	r, w, shared := h.replay, &h.works[i], &h.replay.workQueues[i]
	shared.order = order
	for t := w.first; t < w.first+w.count; t++ {
		steps, from, into := r.Threads[t].Steps, 0, t
		r.items[t], r.scripts[t].again = len(r.scripts), false
		for at, step := range steps {
			if !step.idles() {
				continue
			}
			r.scripts[into].steps = steps[from : at+1]
			from, into = at+1, len(r.scripts)
			r.scripts = append(r.scripts, replayScript{of: t, from: -1})
			if step.Kind == StepUntil {
				shared.due = append(shared.due, replayReady{into, step.For})
			}
		}
		r.scripts[into].steps = steps[from:]
	}
	slices.SortStableFunc(shared.due, func(a, b replayReady) int { return cmp.Compare(a.came, b.came) })
}

// idles reports whether a thread sleeps in this step because it has no work.
func (s *ReplayStep) idles() bool { return s.Idle && s.Kind != StepWake }

// bringWork gives a script to a thread of the workload: to a sleeping one, or to the next one that is
// through. Each is done once: a thread that repeats its steps brings nothing again.
func (h *host) bringWork(i, script int) {
	shared := &h.replay.workQueues[i]
	if h.replay.scripts[script].came {
		return
	}
	h.replay.scripts[script].came = true
	var t int
	switch {
	case shared.idle.n == 0:
		shared.ready.push(replayReady{script, h.now})
		h.freeStuck(i)
		return
	case shared.order == OldestFirst:
		t = shared.idle.pop()
	default:
		t = shared.idle.popLast()
	}
	h.replayBegin(t, replayReady{script, h.now})
}

// replayBegin gives a sleeping thread a script.
func (h *host) replayBegin(t int, next replayReady) {
	r := &h.replay.threads[t]
	r.script, r.at, r.came = next.script, 0, next.came
	h.replay.scripts[r.script].begun = true
	h.replayWake(t)
}

// nextWork gives a thread that is through the next work, or puts it to sleep. It returns true if the thread
// has a script to go on with.
func (h *host) nextWork(t int) bool {
	r, shared := &h.replay.threads[t], &h.replay.workQueues[h.threads[t].work]
	switch {
	case shared.ready.n > 0 && r.sleeps:
		h.replayBegin(t, shared.ready.pop())
	case shared.ready.n > 0:
		h.letGo(t)
		r.script, r.at = shared.ready.pop().script, 0
		h.replay.scripts[r.script].begun = true
		return true
	default:
		h.replayEnd(t)
		shared.idle.push(t)
		h.replayIdle(t)
	}
	return false
}

// bringDueWork brings work whose moment has come.
func (h *host) bringDueWork(i int) {
	for shared := &h.replay.workQueues[i]; len(shared.due) > 0 && shared.due[0].came <= h.now; {
		next := shared.due[0].script
		shared.due = shared.due[1:]
		h.bringWork(i, next)
	}
	h.replayExpect(i)
}
