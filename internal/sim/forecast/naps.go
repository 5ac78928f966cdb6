package forecast

import (
	"math"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

// nap is a sleep that a timer ended.
type nap struct {
	step      int // that ended it
	slept, at int64
}

const (
	// Two sleeps are of one length if they differ by no more than a timer's slack (50 us) and a little more, or by 1 %.
	sameSleep = 80 * time.Microsecond
	samePart  = 100
	// alike is how many sleeps of one length make a habit.
	alike = 3
)

// relative makes a thread's naps relative if most of them took the same time as others; those that did not were late. A
// timer that fires at regular moments, whenever the thread went to sleep, shows in the distances of its wake-ups instead:
// where these are as regular, the moments count.
func (t *thread) relative() {
	slept, every := make([]int64, len(t.naps)), make([]int64, 0, len(t.naps))
	for i, n := range t.naps {
		slept[i] = n.slept
		if i > 0 {
			every = append(every, n.at-t.naps[i-1].at)
		}
	}
	same, regular := habits(slept), habits(every)
	t.settled = 2*max(same, regular) > len(t.naps)
	if 2*same > len(t.naps) && same > regular+1 {
		t.loops()
	}
}

// loops makes all naps of a thread relative.
func (t *thread) loops() {
	for _, n := range t.naps {
		t.steps[n.step] = simulate.ReplayStep{Kind: simulate.StepSleep, For: time.Duration(n.slept)}
	}
}

// habits counts the times that have others like them.
func habits(times []int64) (n int) {
	slices.Sort(times)
	counted := 0 // of the first ones
	for i := 0; i+alike <= len(times); i++ {
		last := i + alike - 1
		if times[last]-times[i] <= max(sameSleep.Nanoseconds(), times[i]/samePart) {
			n += last + 1 - max(i, counted)
			counted = last + 1
		}
	}
	return n
}

// turn is what a thread does between two naps: how long it took to go to sleep again,
// and to wake up again.
type turn struct{ took, every float64 }

// turns are those of a thread in which nothing else put it to sleep.
func (t *thread) turns() (all []turn) {
	for i := 1; i < len(t.naps); i++ {
		last, next := t.naps[i-1], t.naps[i]
		if slices.ContainsFunc(t.steps[last.step+1:next.step], func(s simulate.ReplayStep) bool { return s.Kind > simulate.StepWake }) {
			continue
		}
		every := float64(next.at - last.at)
		all = append(all, turn{every - float64(next.slept), every})
	}
	return all
}

// leastTurns is how many of them say something.
const leastTurns = 20

// loop says whether threads sleep from when their work is done, for as long as
// chance will, rather than until moments of their own: then a turn that takes longer
// puts the next wake-up off by as much (a slope of 1), and else by nothing (0).
func loop(threads [][]turn) bool {
	n, xx, xy, yy := 0, 0.0, 0.0, 0.0
	for _, turns := range threads {
		var took, every float64
		for _, t := range turns {
			took += t.took / float64(len(turns))
			every += t.every / float64(len(turns))
		}
		for _, t := range turns {
			n++
			xx += (t.took - took) * (t.took - took)
			xy += (t.took - took) * (t.every - every)
			yy += (t.every - every) * (t.every - every)
		}
	}
	if n < leastTurns || xx == 0 {
		return false
	}
	slope := xy / xx
	off := math.Sqrt(math.Max(0, yy-slope*xy) / float64(n-1) / xx) // standard error
	return slope > 0.5+off
}

// relative makes naps relative by each thread's habits, and where these do not tell,
// those of pools whose threads loop.
func (b *Builder) relative() {
	turns := map[*Pool][][]turn{}
	for _, t := range b.order {
		if t.relative(); !t.settled {
			turns[t.pool] = append(turns[t.pool], t.turns())
		}
	}
	loops := map[*Pool]bool{}
	for p, all := range turns {
		loops[p] = loop(all)
	}
	for _, t := range b.order {
		if t.settled || !loops[t.pool] {
			continue
		}
		t.loops()
	}
}
