package agent

import (
	"fmt"
	"time"
)

// Bounds on what the acting goroutine is busy with, beyond which it counts as hung.
const (
	// roundLimit is for one round: reading the host, reconciling, and choosing.
	roundLimit = time.Minute
	// moveLimit is for moving containers with their memory, which takes a second for about a gigabyte.
	moveLimit = 30 * time.Minute
)

// Without a round for missedRounds of the intervals in force, and at least for leastSilence, rounds count as ended.
const (
	missedRounds = 5
	leastSilence = 10 * time.Second
)

// task is what the acting goroutine is busy with; the zero value: it waits for the next round.
type task struct {
	what  string
	since time.Time
	limit time.Duration
}

// busy notes what the acting goroutine does from now on, and returns what it did before. Of that goroutine alone.
func (a *agent) busy(what string, limit time.Duration) task {
	return a.resume(task{what, time.Now(), limit})
}

// resume goes back to a task, whose time begins anew.
func (a *agent) resume(t task) task {
	if t.what != "" {
		t.since = time.Now()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.task
	a.task = t
	return before
}

// healthy returns an error when rounds do not come any more, or the acting goroutine hangs.
func (a *agent) healthy() error { return a.health(a.time()) }

func (a *agent) health(now time.Time) error {
	a.mu.Lock()
	silent, paced, doing := now.Sub(a.lastRound), a.lastInterval, a.task
	a.mu.Unlock()
	// A round that was begun while rounds were slow is slow still.
	if most := max(leastSilence, missedRounds*max(a.interval(), paced)); silent > most {
		return fmt.Errorf("no round for %v", silent.Round(time.Second))
	}
	if took := now.Sub(doing.since); doing.what != "" && took > doing.limit {
		return fmt.Errorf("acting hangs: %s for %v, and %v is the most it may take", doing.what, took.Round(time.Second), doing.limit)
	}
	return nil
}
