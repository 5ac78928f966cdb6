package forecast

import (
	"slices"

	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

// leastAnswers is how many answers of other threads, and leastBetween which share of all, show that a thread waits for
// any of several things at once.
const (
	leastAnswers = 5
	leastBetween = 0.05
)

// eventLoop reports whether a thread takes whatever comes first: clients, timers, and answers of other threads. Its chain
// must not wait for one answer while a client's message is there, as the recorded order of its wake-ups would have it.
//
// An answer is a wake-up by a thread of another pool. It shows a loop if clients or timers woke the thread since it last
// woke a thread of that pool: it had handed work on, and did other work meanwhile. A thread that calls another one and
// blocks has no such wake-ups in between.
//
// Worked example: Node's main thread hands a login to a worker, says hello 20 times, and is then woken by the worker. With
// its wake-ups in the recorded order, a replay in which the worker is slower has all hellos behind it late.
func (b *builder) eventLoop(t *thread) bool {
	if b.goProgram(t.TGID) { // any of its threads does any work
		return false
	}
	outside, answers, between, awaits := 0, 0, 0, 0
	woke, at := map[*Pool]int{}, 0 // the number of sleeps that clients and timers ended before that
	for i := range t.steps {
		switch s := &t.steps[i]; s.Kind {
		case simulate.StepWake:
			woke[b.order[s.Thread].pool] = at
		case simulate.StepUntil, simulate.StepSleep:
			outside++
			at++
		case simulate.StepAwait:
			by := t.wakers[awaits]
			awaits++
			if by.pool == t.pool {
				continue
			}
			answers++
			if at > woke[by.pool] {
				between++
			}
		}
	}
	return outside >= minWakeups && between >= max(leastAnswers, int(leastBetween*float64(answers)))
}

// goProgram reports whether Go built the program of a process.
func (b *builder) goProgram(tgid uint32) bool {
	return slices.ContainsFunc(b.h.Processes, func(p recording.Process) bool { return p.TGID == tgid && p.Go != "" })
}
