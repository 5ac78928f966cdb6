package simulate

import "time"

// startReplay begins a workload: its threads do their first steps.
func (h *host) startReplay(i int) {
	w := &h.works[i]
	for t := w.first; t < w.first+w.count; t++ {
		h.replay.threads[t].came = never
		if steps := h.replay.Threads[t].Steps; len(steps) > 0 && steps[0].Kind == StepRun {
			h.replayWake(t)
			continue
		}
		h.replay.threads[t].sleeps = true
		h.replayOn(t)
	}
	h.replayExpect(i)
}

// replayWake lets a sleeping thread run its next step: nothing but a run takes
// time, the others come about as soon as it has a CPU.
func (h *host) replayWake(t int) {
	r, th := &h.replay.threads[t], &h.threads[t]
	spec := &h.replay.Threads[t]
	th.left = 0
	if !r.taken && r.at < len(spec.Steps) && spec.Steps[r.at].Kind == StepRun {
		th.left = h.replayRun(t)
	}
	if spec.Home && th.allowed.has(spec.CPU) {
		th.cpu = spec.CPU
	}
	r.sleeps, r.fresh, th.busy = false, true, r.came != never
	h.wake(t, false)
}

// replayRun is the CPU time of the run that a thread is at, which it leaves
// behind.
func (h *host) replayRun(t int) time.Duration {
	r := &h.replay.threads[t]
	d := h.replay.Threads[t].Steps[r.at].For
	r.at++
	return d
}

// replayWoken is the cause that a sleeping thread waited for.
func (h *host) replayWoken(t int) {
	r := &h.replay.threads[t]
	r.came = h.now
	h.replayWake(t)
}

// replayBegan is called when a thread gets a CPU.
func (h *host) replayBegan(t int) {
	r := &h.replay.threads[t]
	if !r.fresh {
		return
	}
	r.fresh = false
	if r.came != never {
		h.replay.times[h.threads[t].work].Delay.Add(h.now - r.came)
	}
}

// replayOn goes on with a thread's steps until one takes time: after a run, and
// from the beginning.
func (h *host) replayOn(t int) {
	r, th := &h.replay.threads[t], &h.threads[t]
	spec := &h.replay.Threads[t]
	for {
		if r.at >= len(spec.Steps) {
			if !spec.Again || !h.replayRewind(t) {
				h.replayRest(t)
				return
			}
		}
		switch step := spec.Steps[r.at]; step.Kind {
		case StepRun:
			h.goOn(t, h.replayRun(t))
			return
		case StepWake:
			r.at++
			h.replayTell(t, int(step.Thread))
		case StepAwait:
			h.replayEnd(t)
			r.at++
			if r.tokens.n == 0 {
				h.replayRest(t)
				return
			}
			if h.replayLate(t, r.tokens.pop()) {
				return
			}
		case StepUntil:
			h.replayEnd(t)
			r.at++
			if step.For > h.now {
				h.queue.set(h.slots.wake+t, step.For)
				h.replayRest(t)
				return
			}
			if h.replayLate(t, step.For) {
				return
			}
		case StepSleep:
			h.replayEnd(t)
			r.at++
			h.queue.set(h.slots.wake+t, h.now+step.For)
			h.replayRest(t)
			return
		case StepTake:
			h.replayEnd(t)
			q := &h.replay.queues[th.work]
			if q.waiting.n == 0 {
				q.idle.push(t)
				h.replayRest(t)
				return
			}
			run := q.waiting.pop()
			h.replayLate(t, run.At)
			r.taken = true
			h.goOn(t, run.For)
			return
		default:
			h.replayEnd(t)
			h.replayRest(t)
			return
		}
	}
}

// replayRewind goes back to a thread's first sleep that can be slept again; false: it has none.
func (h *host) replayRewind(t int) bool {
	for i, step := range h.replay.Threads[t].Steps {
		if step.Kind == StepAwait || step.Kind == StepSleep {
			h.replay.threads[t].at = i
			return true
		}
	}
	return false
}

// replayLate: what the thread would have slept for has come already. True: it
// had not begun to run, and is woken.
func (h *host) replayLate(t int, came time.Duration) bool {
	r := &h.replay.threads[t]
	r.came = came
	if r.sleeps {
		h.replayWake(t)
		return true
	}
	h.threads[t].busy = true
	h.replay.times[h.threads[t].work].Delay.Add(h.now - came)
	return false
}

// replayEnd is the end of what a thread did.
func (h *host) replayEnd(t int) {
	r, th := &h.replay.threads[t], &h.threads[t]
	if th.busy && r.came != never {
		h.replay.times[th.work].Response.Add(h.now - r.came)
		h.measured(&h.works[th.work], h.now-r.came)
	}
	r.came, r.taken, th.busy = never, false, false
}

func (h *host) replayRest(t int) {
	h.replay.threads[t].sleeps = true
	h.block(t)
}

// replayTell wakes another thread, or notes that it need not sleep next time.
func (h *host) replayTell(from, to int) {
	th := &h.threads[from]
	if h.cpus[th.cpu].cur == from {
		h.update(th.cpu, true)
	}
	r := &h.replay.threads[to]
	steps := h.replay.Threads[to].Steps
	if r.sleeps && r.at > 0 && steps[r.at-1].Kind == StepAwait {
		h.replayWoken(to)
		return
	}
	r.tokens.push(h.now)
}

// replayExpect makes a workload's next queued run due.
func (h *host) replayExpect(i int) {
	if i >= len(h.replay.Queues) {
		return
	}
	if q := &h.replay.queues[i]; q.next < len(h.replay.Queues[i]) {
		h.queue.set(h.slots.work+i, max(h.now, h.replay.Queues[i][q.next].At))
	}
}

// replayArrived brings a queued run to an idle thread, or lets it wait.
func (h *host) replayArrived(i int) {
	q := &h.replay.queues[i]
	run := h.replay.Queues[i][q.next]
	q.next++
	if q.idle.n > 0 {
		t := q.idle.pop()
		r := &h.replay.threads[t]
		r.came, r.taken, r.sleeps, r.fresh = h.now, true, false, true
		h.threads[t].left, h.threads[t].busy = run.For, true
		h.wake(t, false)
	} else {
		q.waiting.push(run)
	}
	h.replayExpect(i)
}

// replayUnfinished counts at the end what should have been done by then, with
// the time that it has had. What the recording itself cut off is not counted.
func (h *host) replayUnfinished(t int) {
	r, th := &h.replay.threads[t], &h.threads[t]
	times := &h.replay.times[th.work]
	spec := &h.replay.Threads[t]
	count := func(came, left time.Duration) {
		times.Response.Add(h.now - came)
		times.Unfinished += max(0, left)
	}
	if t == h.works[th.work].first {
		q := &h.replay.queues[th.work]
		for q.waiting.n > 0 {
			if run := q.waiting.pop(); run.For < endless {
				count(run.At, run.For)
			}
		}
	}
	if r.sleeps {
		return
	}
	if th.busy && (r.taken && th.left < endless/2 || !r.taken && spec.endsAfter(r.at)) {
		count(r.came, th.left)
	}
	for i := r.at; i < len(spec.Steps); i++ {
		step := spec.Steps[i]
		switch {
		case step.Kind <= StepWake:
			continue
		case !spec.endsAfter(i + 1):
			return
		case step.Kind == StepUntil && step.For < h.now:
			count(step.For, spec.demand(i+1))
		case step.Kind == StepAwait && r.tokens.n > 0:
			count(r.tokens.pop(), spec.demand(i+1))
		default:
			return
		}
	}
}

// endsAfter says whether what is done at a step comes to an end that was seen.
func (t *ReplayThread) endsAfter(at int) bool {
	for _, step := range t.Steps[at:] {
		if step.Kind >= StepAwait {
			return true
		}
	}
	return false
}

// demand is the CPU time from a step to the next sleep.
func (t *ReplayThread) demand(at int) time.Duration {
	sum := time.Duration(0)
	for _, step := range t.Steps[at:] {
		if step.Kind >= StepAwait {
			break
		}
		if step.Kind == StepRun {
			sum += step.For
		}
	}
	return sum
}
