package forecast

import (
	"math"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

// timerSleep is a sleep that a timer ended.
type timerSleep struct {
	step      int // index of the step that ended it
	slept, at int64
}

const (
	// Two sleeps have the same length if they differ by no more than a timer's slack (50 us) and a little
	// more, or by 1 %.
	sameSleep = 80 * time.Microsecond
	samePart  = 100
	// leastSleep is the shortest that a thread is replayed with: a timer takes that long, and a recording that says less could keep a
	// replay at one moment for ever.
	leastSleep = 10 * time.Microsecond
	// minSimilar is how many sleeps of one length make it a common duration.
	minSimilar = 3
)

// detectPeriodicTimer makes a thread's timer sleeps relative if most of them have a common duration; the
// others were late. A timer that fires at regular moments shows in the distances of the wake-ups instead. If
// these are as regular as the durations, the sleeps stay absolute.
func (t *thread) detectPeriodicTimer() {
	slept, every := make([]int64, len(t.timerSleeps)), make([]int64, 0, len(t.timerSleeps))
	for i, n := range t.timerSleeps {
		slept[i] = n.slept
		if i > 0 {
			every = append(every, n.at-t.timerSleeps[i-1].at)
		}
	}
	same, regular := commonDurations(slept), commonDurations(every)
	t.timerKnown = 2*max(same, regular) > len(t.timerSleeps)
	if 2*same > len(t.timerSleeps) && same > regular+1 {
		t.makeRelative()
	}
}

// makeRelative makes all timer sleeps of a thread relative to the moment at which it goes to sleep.
func (t *thread) makeRelative() {
	for _, n := range t.timerSleeps {
		t.steps[n.step] = simulate.ReplayStep{Kind: simulate.StepSleep, For: max(leastSleep, time.Duration(n.slept))}
	}
}

// makeAbsolute makes all timer sleeps of a thread end when they ended in the recording.
func (t *thread) makeAbsolute() {
	for _, n := range t.timerSleeps {
		t.steps[n.step] = simulate.ReplayStep{Kind: simulate.StepUntil, For: time.Duration(n.at)}
	}
}

// commonDurations counts the times that have minSimilar of the same length.
func commonDurations(times []int64) (n int) {
	slices.Sort(times)
	counted := 0 // how many of the first times are already in n
	for i := 0; i+minSimilar <= len(times); i++ {
		last := i + minSimilar - 1
		if times[last]-times[i] <= max(sameSleep.Nanoseconds(), times[i]/samePart) {
			n += last + 1 - max(i, counted)
			counted = last + 1
		}
	}
	return n
}

// cycle is the time from one timer wake-up to the next sleep (took) and to the next wake-up (every), in
// nanoseconds.
type cycle struct{ took, every float64 }

// cycles returns the cycles of a thread without any other sleep in them.
func (t *thread) cycles() (all []cycle) {
	for i := 1; i < len(t.timerSleeps); i++ {
		last, next := t.timerSleeps[i-1], t.timerSleeps[i]
		if slices.ContainsFunc(t.steps[last.step+1:next.step], func(s simulate.ReplayStep) bool { return s.Kind >= simulate.StepAwait }) {
			continue
		}
		every := float64(next.at - last.at)
		all = append(all, cycle{every - float64(next.slept), every})
	}
	return all
}

// minCycles is the number of cycles from which on their slope counts.
const minCycles = 20

// sleepsAfterWork reports whether threads sleep for random times that begin when their work is done, rather
// than until fixed moments. In the first case a longer cycle delays the next wake-up by as much (a slope of
// 1), in the second by nothing (0).
func sleepsAfterWork(threads [][]cycle) bool {
	n, xx, xy, yy := 0, 0.0, 0.0, 0.0
	for _, cycles := range threads {
		var took, every float64
		for _, t := range cycles {
			took += t.took / float64(len(cycles))
			every += t.every / float64(len(cycles))
		}
		for _, t := range cycles {
			n++
			xx += (t.took - took) * (t.took - took)
			xy += (t.took - took) * (t.every - every)
			yy += (t.every - every) * (t.every - every)
		}
	}
	if n < minCycles || xx == 0 {
		return false
	}
	slope := xy / xx
	stdError := math.Sqrt(math.Max(0, yy-slope*xy) / float64(n-1) / xx) // of the slope
	return slope > 0.5+stdError
}

// detectPeriodicTimers decides for each thread by its own timer sleeps whether these are relative. For the
// other threads it decides by the cycles of their whole pool.
func (b *builder) detectPeriodicTimers() {
	cycles := map[*Pool][][]cycle{}
	for _, t := range b.order {
		if t.detectPeriodicTimer(); !t.timerKnown {
			cycles[t.pool] = append(cycles[t.pool], t.cycles())
		}
	}
	b.joinPolls()
	afterWork := map[*Pool]bool{}
	for p, all := range cycles {
		afterWork[p] = sleepsAfterWork(all)
	}
	for _, t := range b.order {
		if t.timerKnown || !afterWork[t.pool] {
			continue
		}
		t.makeRelative()
	}
}
