package spin

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/inside"
)

const (
	// anew is how often the processes in sight are listed.
	anew   = 100 * time.Millisecond
	minGap = 250 * time.Microsecond
	// maxGaps bounds what a thread keeps of one trial or watch.
	maxGaps = 20_000
)

// look is one look at the host: its clock, and the CPUs that this process may use.
type look struct {
	begun time.Time
	cpus  []int
	account
}

func (l *look) now() time.Duration { return time.Since(l.begun) }

// trial runs a thread on each CPU, for three quarters of a time as much as it can, then half of the time.
func (l *look) trial(lasts time.Duration) (inside.Trial, error) {
	fullTime := lasts * 3 / 4
	t := inside.Trial{CPUs: len(l.cpus), Tick: tick(), Light: fullTime, End: lasts}
	var running sync.WaitGroup
	seen := make([][]inside.Gap, len(l.cpus))
	var usedFull time.Duration
	for i, cpu := range l.cpus {
		running.Add(1)
		err := onCPU(cpu, func() {
			defer running.Done()
			seen[i] = l.spin(cpu, t.Light, t.End)
		})
		if err != nil {
			running.Done()
			return t, err
		}
	}
	for at := anew; at < fullTime; at += anew { // processes begin
		sleepUntil(l.now, at)
		l.see(inSight("/proc"))
	}
	sleepUntil(l.now, fullTime)
	t.Light, usedFull = l.now(), l.used()
	running.Wait()
	t.End, t.UsedFull, t.Used = l.now(), usedFull, l.used()
	t.Gaps = slices.Concat(seen...)
	slices.SortStableFunc(t.Gaps, func(a, b inside.Gap) int { return int(a.End - b.End) })
	return t, nil
}

// spin runs on one CPU until the trial ends, as much as it can at first, and returns when it could not run. It rests at random
// moments: a thread that takes turns with another at the kernel's ticks then does so at other ticks, and one under a quota is
// stopped later.
func (l *look) spin(cpu int, fullTime, trialTime time.Duration) []inside.Gap {
	gaps := make([]inside.Gap, 0, 1024)
	last := l.now()
	rest := last + time.Duration(rand.Int64N(int64(10*time.Millisecond)))
	late := func(ran, wanted, now time.Duration) {
		if now-wanted > minGap {
			gaps = append(gaps, inside.Gap{CPU: cpu, Ran: ran, Start: wanted, End: now, Used: l.used()})
		}
	}
	for last < trialTime && len(gaps) < maxGaps {
		now := l.now()
		late(last, last, now)
		if last = now; now < rest {
			continue
		}
		pause, run := restFor(now < fullTime)
		sleepUntil(l.now, now+pause)
		last = l.now()
		late(now, now+pause, last)
		rest = last + run
	}
	return gaps
}

// restFor is how long a thread rests and how long it runs after that: a twentieth or half of the time.
func restFor(full bool) (rest, run time.Duration) {
	random := func(least, most time.Duration) time.Duration {
		return least + time.Duration(rand.Int64N(int64(most-least)))
	}
	if full {
		return random(100*time.Microsecond, 900*time.Microsecond), random(5*time.Millisecond, 15*time.Millisecond)
	}
	return random(500*time.Microsecond, 1500*time.Microsecond), random(500*time.Microsecond, 1500*time.Microsecond)
}

// tick is the time between two ticks of the kernel's clock: what its coarse clock resolves.
func tick() time.Duration {
	var ts unix.Timespec
	if unix.ClockGetres(unix.CLOCK_MONOTONIC_COARSE, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
