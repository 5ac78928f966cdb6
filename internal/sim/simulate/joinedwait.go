package simulate

import "time"

// A thread gives parts of a task to several others, and goes on when all of them are through, as the virtual machine's
// thread does with the threads of its collector. The last one wakes it. Which one is the last depends on who gets a CPU: in
// a replay it may be another one than in the recording, and the wake-up of the recorded one comes too early.
//
// So each of the others has a StepWake where its part ends, and the StepAwait counts them. Wake-ups that name another
// StepAwait do not count.

// replayJoin is a StepAwait that waits for several threads.
type replayJoin struct {
	need, got int
	last      time.Duration // of the wake-ups so far
}

// findJoins finds the StepAwait of a thread that wait for several.
func (c *replayCalls) findJoins(steps []ReplayStep) {
	nth := 0
	for i := range steps {
		if steps[i].Kind != StepAwait {
			continue
		}
		if more := int(steps[i].Thread); more > 0 {
			if c.joins == nil {
				c.joins = map[int]*replayJoin{}
			}
			c.joins[nth] = &replayJoin{need: 1 + more}
		}
		nth++
	}
}

// join begins a StepAwait that waits for several threads; due: all of them came already, the last one at time came.
func (c *replayCalls) join(j *replayJoin) (came time.Duration, due bool) {
	if j.got < j.need {
		c.joining = j
		return 0, false
	}
	j.got = 0
	return j.last, true
}

// joined counts a wake-up for a StepAwait that waits for several threads; true: it is the last one, and the thread waits.
func (c *replayCalls) joined(j *replayJoin, now time.Duration) bool {
	j.got++
	j.last = now
	if c.joining != j || j.got < j.need {
		return false
	}
	j.got, c.joining = 0, nil
	return true
}
