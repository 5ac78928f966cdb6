package agent

import (
	"slices"
	"time"
)

// What a trial rests on.
const (
	// spellRounds is how many rounds the owner is looked at, lent and not lent;
	// the round in which something was written belongs to neither.
	spellRounds = 5
	// trialPairs is how often lent and not lent take turns before it counts as
	// harm: if lending changed nothing, all three spells without it would come
	// out above all three with it in 1 of 20 cases only.
	trialPairs = 3
	// harmShare is the part of its CPU use, and harmCPUs the CPUs, that an owner
	// must gain while nothing is lent for lending to count as harm: what it does
	// varies by itself.
	harmShare, harmCPUs = 0.1, 0.05
	// trialInterval is how often an owner that was not harmed is looked at again,
	// changeInterval how often if it uses more or less than it did.
	trialInterval  = 10 * time.Minute
	changeInterval = 2 * time.Minute
)

// order is what a trial wants done.
type order int

const (
	nothing  order = iota
	takeBack       // from the secondaries
	giveAgain
)

// trial finds out for one owner whether lending its idle CPUs costs it anything:
// its CPU use with them lent and with them taken back, by turns, since what it
// does varies by itself and a before is no measure of an after. The first pair
// without a difference ends it.
type trial struct {
	cpus    string // that it is about: others are another trial
	out     bool   // taken back now
	running bool
	skip    bool // the next round lies in two spells
	spell   []float64
	with    []float64 // medians of the spells
	without []float64
	usual   float64 // use with the CPUs lent, as last found
	next    time.Time
	harmed  bool
}

// round takes in what the owner used in a round, nil where that was not
// measured, and says what is to be done. out tells whether its CPUs are taken
// back as things are: done by somebody else, the trial begins anew.
func (t *trial) round(cpus string, out bool, used *float64, now time.Time) order {
	switch {
	case t.cpus != cpus:
		*t = trial{cpus: cpus, out: out, running: true}
		if out { // by an agent before this one, or for other CPUs
			return t.give()
		}
		t.skip = true
		return nothing
	case t.out != out:
		*t = trial{cpus: cpus, out: out, next: now.Add(changeInterval), usual: t.usual}
		return nothing
	case t.harmed && !now.Before(t.next):
		// Lent again after a while, and looked at anew.
		*t = trial{cpus: cpus, running: true}
		return t.give()
	case t.harmed || used == nil:
		return nothing
	case t.skip:
		t.skip = false
		return nothing
	}
	if t.spell = append(t.spell, *used); len(t.spell) < spellRounds {
		return nothing
	}
	median := t.median()
	if !t.running {
		return t.idle(median, now)
	}
	if !t.out {
		t.with, t.usual = append(t.with, median), median
		t.out, t.skip = true, true
		return takeBack
	}
	t.without = append(t.without, median)
	switch {
	case !t.worse():
		t.running, t.next = false, now.Add(trialInterval)
		t.with, t.without = nil, nil
		return t.give()
	case len(t.without) == trialPairs:
		t.harmed, t.running, t.next = true, false, now.Add(RetryAfter)
		return nothing
	}
	return t.give()
}

// idle decides between trials whether another one is due.
func (t *trial) idle(median float64, now time.Time) order {
	changed := more(t.usual, median) || more(median, t.usual)
	soon := changed && !now.Before(t.next.Add(changeInterval-trialInterval))
	if now.Before(t.next) && !soon {
		return nothing
	}
	// This spell is the first with.
	t.with, t.usual, t.running = []float64{median}, median, true
	t.out, t.skip = true, true
	return takeBack
}

func (t *trial) give() order {
	t.out, t.skip = false, true
	return giveAgain
}

// median of the spell, which ends.
func (t *trial) median() float64 {
	slices.Sort(t.spell)
	m := t.spell[len(t.spell)/2]
	t.spell = t.spell[:0]
	return m
}

// worse tells whether the owner used more in every spell without lending than in
// every one with it.
func (t *trial) worse() bool { return more(slices.Min(t.without), slices.Max(t.with)) }

// more tells whether one use is above another by enough to count.
func more(a, b float64) bool { return a-b > harmCPUs && a > b*(1+harmShare) }
