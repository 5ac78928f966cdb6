package forecast

import (
	"container/list"

	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

// crew finds out whether a pool's threads share their work: then whoever brings some wakes the thread that has slept
// longest, as queues of waiting threads do (futex and condition variables), or the one that fell asleep last, as pools
// that keep few threads warm do, and not the one whose work it is.
type crew struct {
	asleep list.List // *thread, in the order in which they fell asleep
	// told counts wake-ups by others' threads while several slept, oldest and newest those that chose by that order, and
	// chance how many would have if each of the sleepers was as likely; timed those by timers and devices.
	told, oldest, newest, timed int
	chance                      float64
}

// leastTold is how many wake-ups say something of a pool.
const leastTold = 30

// order is the crew's, NoCrew if the threads have work of their own: wake-ups must be nearer to an order than to chance.
func (c *crew) order() simulate.Crew {
	ordered := func(n int) bool { return float64(n)-c.chance >= float64(c.told)-float64(n) }
	switch {
	case c.told < leastTold || c.timed > c.told:
		return simulate.NoCrew
	case ordered(c.oldest):
		return simulate.OldestFirst
	case ordered(c.newest):
		return simulate.NewestFirst
	}
	return simulate.NoCrew
}

// lie notes that a thread fell asleep.
func (b *Builder) lie(t *thread) {
	b.rise(t)
	t.bed = b.crewOf(t.pool).asleep.PushBack(t)
}

// rise notes that a thread sleeps no longer, nobody knows why.
func (b *Builder) rise(t *thread) {
	if t.bed != nil {
		b.crewOf(t.pool).asleep.Remove(t.bed)
		t.bed = nil
	}
}

// told is how a thread stood among those of its pool that slept when others brought it work, or gave back a lock.
type told struct{ oldest, newest bool }

// idle says whether it had slept for want of work, in a crew that is woken in that order.
func (w told) idle(order simulate.Crew) bool {
	return order == simulate.OldestFirst && w.oldest || order == simulate.NewestFirst && w.newest
}

// roused notes that a thread was woken by another one of the container, or by somebody else; timed: by a timer or a
// device. True: it may have slept for want of work. Others bring that, and not those of its own pool, who give back locks.
func (b *Builder) roused(t, waker *thread, timed bool) bool {
	c := b.crewOf(t.pool)
	defer b.rise(t)
	if timed {
		c.timed++
		return false
	}
	if t.bed == nil || waker != nil && waker.pool == t.pool {
		return false
	}
	w := told{t.bed == c.asleep.Front(), t.bed == c.asleep.Back()}
	t.told = append(t.told, w)
	if c.asleep.Len() > 1 {
		c.told++
		c.chance += 1 / float64(c.asleep.Len())
		if w.oldest {
			c.oldest++
		}
		if w.newest {
			c.newest++
		}
	}
	return true
}

// settle leaves those of a thread's sleeps marked as idle that were, and says for each that may have been which of these
// it is; -1: it was not.
func (t *thread) settle(order simulate.Crew) (which []int) {
	which = make([]int, len(t.told))
	n, idle := 0, 0
	for i := range t.steps {
		s := &t.steps[i]
		if !s.Idle || s.Kind == simulate.StepWake {
			continue
		}
		if s.Idle = t.told[n].idle(order); s.Idle {
			which[n] = idle
			idle++
		} else {
			which[n] = -1
		}
		n++
	}
	return which
}

// join puts a thread into a pool.
func (b *Builder) join(t *thread, p *Pool) {
	lay := t.bed != nil
	b.rise(t)
	if t.pool = p; lay {
		b.lie(t)
	}
}

func (b *Builder) crewOf(p *Pool) *crew {
	c := b.crews[p]
	if c == nil {
		c = new(crew)
		b.crews[p] = c
	}
	return c
}

// crewed says how the threads of a pool share their work, where all of them may run on the same CPUs.
func (b *Builder) crewed(p *Pool, threads []*thread) simulate.Crew {
	for _, t := range threads {
		if t.allowed != threads[0].allowed {
			return simulate.NoCrew
		}
	}
	return b.crewOf(p).order()
}
