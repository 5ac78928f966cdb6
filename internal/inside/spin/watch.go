package spin

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/unthrottle/unthrottle/internal/clock"
	"github.com/unthrottle/unthrottle/internal/inside"
)

// Share is how much of the limit a watch may use; it aims at aim, because it learns what a look takes by looking.
const (
	Share = 0.05
	aim   = 0.04
)

const (
	// minInterval and maxInterval bound the time between two looks of one thread.
	minInterval = 500 * time.Microsecond
	maxInterval = 200 * time.Millisecond
	// control is how often the interval is set anew.
	control = 100 * time.Millisecond
	// firstLook is what a look takes until it is measured.
	firstLook = 25 * time.Microsecond
)

// watch looks now and then on each CPU until forTime after the look began, or ctx ends.
func (l *look) watch(ctx context.Context, forTime time.Duration, limitCPUs float64) (inside.Watch, error) {
	w := inside.Watch{Start: l.now()}
	before := ownUsage()
	allowed := aim * limitCPUs
	var looks atomic.Int64
	var interval atomic.Int64
	set := func(perLook, rate float64) {
		interval.Store(int64(min(max(time.Duration(perLook*float64(len(l.cpus))/rate), minInterval), maxInterval)))
		w.Interval = max(w.Interval, time.Duration(interval.Load()))
	}
	set(float64(firstLook), allowed)
	var ended atomic.Bool
	var running sync.WaitGroup
	seen := make([][]inside.Gap, len(l.cpus))
	for i, cpu := range l.cpus {
		running.Add(1)
		err := onCPU(cpu, func() {
			defer running.Done()
			seen[i] = l.peek(&interval, &looks, &ended)
		})
		if err != nil {
			running.Done()
			ended.Store(true)
			running.Wait()
			return w, err
		}
	}
	for ctx.Err() == nil && l.now() < forTime {
		_ = clock.Sleep(ctx, min(control, max(forTime-l.now(), 0)))
		spent, elapsed := float64(ownUsage()-before), float64(l.now()-w.Start)
		// What was spent too much is made good within a second, but some looks are always left.
		left := (allowed*(elapsed+float64(time.Second)) - spent) / float64(time.Second)
		// The first looks are dear, and a few say little: as if so many had been as expected.
		const expected = 100
		perLook := (spent + expected*float64(firstLook)) / float64(looks.Load()+expected)
		set(perLook, min(max(left, allowed/4), allowed))
	}
	ended.Store(true)
	w.End = l.now()
	running.Wait()
	w.Spent = ownUsage() - before
	w.Gaps = slices.Concat(seen...)
	slices.SortStableFunc(w.Gaps, func(a, b inside.Gap) int { return int(a.End - b.End) })
	return w, nil
}

// peek sleeps and looks at the clock until the watch ends, and returns when it was late.
func (l *look) peek(interval, looks *atomic.Int64, ended *atomic.Bool) []inside.Gap {
	var gaps []inside.Gap
	last := l.now()
	for !ended.Load() && len(gaps) < maxGaps {
		due := last + time.Duration(interval.Load())
		sleepUntil(l.now, due)
		now := l.now()
		looks.Add(1)
		if now-due > minGap {
			gaps = append(gaps, inside.Gap{Ran: last, Start: due, End: now})
		}
		last = now
	}
	return gaps
}
