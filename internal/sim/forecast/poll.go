package forecast

import (
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

// Some threads look for work again and again, between sleeps of random lengths, and nobody wakes them for it: Cassandra's stages had 63,000
// wake-ups for 822 requests. Such a sleep ends at its recorded moment, as others of irregular length do. But the one
// after which the thread found
// a request ended for that request: under another remedy the request is read at another time, and the thread finds it then.

// poll is a timer's wake-up that began a run, of the thread itself or of the one that woke it.
type poll struct {
	by   *thread // nil: something else began the run
	step int
	at   int64
}

// foundByPoll is a request that a poll found: step of by ends when the reader has read it, which is step read of the reader.
type foundByPoll struct {
	poll
	reader *thread
	read   int
}

// pollsForEach is how many wake-ups by timers a thread has for each request that they found, at least: one that is
// woken once a request waits
// for something outside, whose end an interrupt tells as a timer's.
const pollsForEach = 10

// foundBy notes which poll found a request, once a thread writes its answer: the thread's own, or that of the threads
// which handed it the result
// since the request was read.
func (b *builder) foundBy(x *exchange, writer *thread, readNS int64) {
	p := writer.poll
	if p.by == nil || p.at < readNS || x.reader == nil || p.by == x.reader || x.readStep < 0 {
		return
	}
	b.polls = append(b.polls, foundByPoll{p, x.reader, x.readStep})
	x.readStep = -1 // it was found once
}

// joinPolls makes the sleeps of pollers that a request ended wait for it.
func (b *builder) joinPolls() {
	found := map[*thread]map[int]foundByPoll{}
	for _, f := range b.polls {
		if found[f.by] == nil {
			found[f.by] = map[int]foundByPoll{}
		}
		if _, twice := found[f.by][f.step]; !twice { // the first of several that one poll found
			found[f.by][f.step] = f
		}
	}
	for t, at := range found {
		if !t.timerKnown && len(t.timerSleeps) >= pollsForEach*len(at) {
			t.wait(at)
		}
	}
	b.polls = nil
}

// wait makes the thread wait in these steps for the requests that it found there.
func (t *thread) wait(at map[int]foundByPoll) {
	wakers, n := make([]*thread, 0, len(t.wakers)+len(at)), 0
	for i := range t.steps {
		f, is := at[i]
		switch {
		case is:
			f.reader.steps[f.read] = simulate.ReplayStep{Kind: simulate.StepWake, Thread: int32(t.index), For: time.Duration(i)}
			t.steps[i] = simulate.ReplayStep{Kind: simulate.StepAwait, For: time.Duration(f.at)}
			wakers = append(wakers, f.reader)
		case t.steps[i].Kind == simulate.StepAwait:
			wakers = append(wakers, t.wakers[n])
			n++
		}
	}
	t.wakers = wakers
	t.timerSleeps = slices.DeleteFunc(t.timerSleeps, func(s timerSleep) bool { _, is := at[s.step]; return is })
}
