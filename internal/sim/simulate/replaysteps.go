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

// replayWake makes a sleeping thread do the next step of its script. Only a run takes time; the other steps
// happen as soon as it has a CPU.
func (h *host) replayWake(t int) {
	r, th := &h.replay.threads[t], &h.threads[t]
	r.sleeps, r.fresh, th.busy = false, true, r.came != never
	if th.left = h.mustWait(t); th.left == 0 {
		h.replayResume(t)
	}
}

// replayResume makes a thread that has no CPU do the next step of its script.
func (h *host) replayResume(t int) {
	r, th := &h.replay.threads[t], &h.threads[t]
	th.left = 0
	if steps := h.replay.scripts[r.script].steps; r.at < len(steps) && steps[r.at].Kind == StepRun {
		th.left = steps[r.at].For
		r.at++
	}
	if spec := &h.replay.Threads[t]; spec.Home && th.allowed.has(spec.CPU) && !h.stays(t, th.group, th.cpu) {
		th.cpu = spec.CPU
	}
	h.wake(t, false)
}

// replayWoken handles the cause that a sleeping thread waited for.
func (h *host) replayWoken(t int) {
	h.replay.threads[t].came = h.now
	h.replayWake(t)
}

// replayBegan handles a thread that gets a CPU.
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

// replayOn does the steps of a thread's script until one takes time: after a run, and at the beginning.
func (h *host) replayOn(t int) {
	r, th := &h.replay.threads[t], &h.threads[t]
	shared := h.replay.workQueues[th.work].order != NotShared
	for {
		s := &h.replay.scripts[r.script]
		if r.at >= len(s.steps) && !(s.again && h.rewind(t, s.steps)) {
			if !shared {
				h.replayIdle(t)
				return
			}
			r.came = never // the recording cut it off there
			if !h.nextWork(t) {
				return
			}
			continue
		}
		step := s.steps[r.at]
		r.at++
		switch {
		case step.Kind == StepRun:
			r.at--
			if d := h.mustWait(t); d > 0 {
				h.block(t)
				th.left = d
				return
			}
			r.at++
			h.goOn(t, step.For)
			return
		case step.Kind == StepWake:
			h.replayTell(t, step)
		case step.Kind == StepReply:
			h.replay.answer(int(step.Thread), h.now)
		case step.Kind == StepRead && step.For <= h.now:
		case step.Kind == StepTake:
			r.at--
			h.replayEnd(t)
			q := &h.replay.queues[th.work]
			if q.waiting.n == 0 {
				q.idle.push(t)
				h.replayIdle(t)
				return
			}
			run := q.waiting.pop()
			h.replayLate(t, run.At)
			r.taken = true
			h.goOn(t, run.For)
			return
		case shared && step.Idle:
			if !h.nextWork(t) {
				return
			}
		default:
			h.replayEnd(t)
			if came, due := h.replaySleep(t, step); !due {
				h.replayIdle(t)
				return
			} else if h.replayLate(t, came) {
				return
			}
		}
	}
}

// replaySleep begins a sleep within the script of a thread. due says that its cause came already, at time came.
func (h *host) replaySleep(t int, step ReplayStep) (came time.Duration, due bool) {
	switch step.Kind {
	case StepAwait:
		if h.sharesQueue(t) {
			return h.awaitInWork(t)
		}
		calls := &h.replay.calls[t]
		calls.passed++
		if j := calls.joins[calls.passed-1]; j != nil {
			came, due = calls.join(j)
			if !due {
				h.freeAllStuck()
			}
			return came, due
		}
		if calls.early.n > 0 {
			return calls.early.pop(), true
		}
		calls.waiter.push(t)
		h.freeAllStuck()
	case StepUntil, StepRead:
		if step.For <= h.now {
			return step.For, true
		}
		h.queue.set(h.slots.wake+t, step.For)
	case StepSleep:
		h.queue.set(h.slots.wake+t, h.now+step.For)
	default:
		h.replay.threads[t].at-- // it stays at this step
	}
	return 0, false
}

// rewind goes back to the first step that can repeat; false: there is none.
func (h *host) rewind(t int, steps []ReplayStep) bool {
	for i, step := range steps {
		if step.Kind == StepAwait || step.Kind == StepSleep {
			h.replay.threads[t].at, h.replay.calls[t].passed = i, 0
			return true
		}
	}
	return false
}

// replayLate handles a cause that came before the thread's sleep. It returns true if the thread had not begun
// to run, and wakes it.
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

// replayEnd ends the work of a thread.
func (h *host) replayEnd(t int) {
	r, th := &h.replay.threads[t], &h.threads[t]
	if th.busy && r.came != never {
		h.responded(th.work, r.came)
		h.measured(&h.works[th.work], h.now-r.came)
	}
	r.came, r.taken, th.busy = never, false, false
	h.letGo(t)
}

func (h *host) replayIdle(t int) {
	h.replay.threads[t].sleeps = true
	h.block(t)
}

// replayTell wakes another thread, or notes that it need not sleep next time. With a shared queue it wakes
// any sleeping thread.
func (h *host) replayTell(from int, step ReplayStep) {
	th := &h.threads[from]
	if h.cpus[th.cpu].cur == from {
		h.update(th.cpu, true)
	}
	to := int(step.Thread)
	if h.sharesQueue(to) {
		h.endAwait(to, &step)
		return
	}
	calls := &h.replay.calls[to]
	calls.came(int(step.For))
	if j := calls.joins[int(step.For)]; j != nil {
		if calls.joined(j, h.now) {
			h.replayWoken(to)
		}
		return
	}
	if calls.waiter.n > 0 {
		h.replayWoken(calls.waiter.pop())
	} else {
		calls.early.push(h.now)
	}
}

// replayExpect makes a workload's next queued run due.
func (h *host) replayExpect(i int) {
	if shared := &h.replay.workQueues[i]; len(shared.due) > 0 {
		h.queue.set(h.slots.work+i, max(h.now, shared.due[0].came))
	}
	if i >= len(h.replay.Queues) {
		return
	}
	if q := &h.replay.queues[i]; q.next < len(h.replay.Queues[i]) {
		h.queue.set(h.slots.work+i, max(h.now, h.replay.Queues[i][q.next].At))
	}
}

// replayArrived brings a queued run to an idle thread, or leaves it in the queue.
func (h *host) replayArrived(i int) {
	if len(h.replay.workQueues[i].due) > 0 {
		h.bringDueWork(i)
		return
	}
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

// replayUnfinished counts at the end what should be done by then, with its time so far. It leaves out work
// that the recording itself cut off.
func (h *host) replayUnfinished(t int) {
	r, th := &h.replay.threads[t], &h.threads[t]
	if t == h.works[th.work].first {
		q := &h.replay.queues[th.work]
		for q.waiting.n > 0 {
			if run := q.waiting.pop(); run.For < endless {
				h.replayUndone(t, run.At, run.For)
			}
		}
		for ready := &h.replay.workQueues[th.work].ready; ready.n > 0; {
			next := ready.pop()
			if s := &h.replay.scripts[next.script]; endsAfter(s.steps) {
				h.replayUndone(t, next.came, demand(s.steps))
			}
		}
	}
	if r.sleeps {
		return
	}
	s := &h.replay.scripts[r.script]
	if th.busy && (r.taken && th.left < endless/2 || !r.taken && endsAfter(s.steps[r.at:])) {
		h.replayUndone(t, r.came, th.left)
	}
	calls, next := &h.replay.calls[t], s.next
	early := func() (came time.Duration, ok bool) {
		if h.sharesQueue(t) {
			next++
			return s.waits[next-1].came, s.waits[next-1].came >= 0
		}
		calls.passed++
		switch j := calls.joins[calls.passed-1]; {
		case j != nil:
			return j.last, j.got >= j.need
		case calls.early.n == 0:
			return 0, false
		}
		return calls.early.pop(), true
	}
	for i := r.at; i < len(s.steps); i++ {
		step := s.steps[i]
		switch {
		case step.Kind < StepAwait:
			continue
		case !endsAfter(s.steps[i+1:]):
			return
		case step.Kind == StepUntil && step.For < h.now:
			h.replayUndone(t, step.For, demand(s.steps[i+1:]))
		case step.Kind == StepAwait && !step.idlesIn(h, t):
			came, ok := early()
			if !ok {
				return
			}
			h.replayUndone(t, came, demand(s.steps[i+1:]))
		default:
			return
		}
	}
}

// replayUndone counts a run of a thread's workload that is not done.
func (h *host) replayUndone(t int, came, left time.Duration) {
	work := h.threads[t].work
	h.responded(work, came)
	h.replay.times[work].Unfinished += max(0, left)
}

// responded counts the response of a workload, which ends now, to a cause.
func (h *host) responded(work int, came time.Duration) {
	h.replay.times[work].Response.Add(h.now - came)
	if h.replay.responses != nil {
		h.replay.responses(work, came, h.now-came)
	}
}

// endsAfter reports whether the current work ends within the recording.
func endsAfter(steps []ReplayStep) bool {
	for _, step := range steps {
		if step.Kind >= StepAwait {
			return true
		}
	}
	return false
}

// demand is the CPU time up to the next sleep.
func demand(steps []ReplayStep) time.Duration {
	sum := time.Duration(0)
	for _, step := range steps {
		if step.Kind >= StepAwait {
			break
		}
		if step.Kind == StepRun {
			sum += step.For
		}
	}
	return sum
}
